//! Followers of a log that is written while they listen.

use std::time::Duration;

use monitor::{FOLLOWERS_MAX, Follow, FollowError, LINES_WAITING_MAX, Lines, Monitor};
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use wire::messages::AgentMonitorRequest;

const PLAIN: Follow = Follow { level: LevelFilter::INFO, json: false, location: false, plain: true };

/// Sends this thread's events to the monitor.
fn listening() -> (Monitor, tracing::subscriber::DefaultGuard) {
    let monitor = Monitor::default();
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(monitor.layer()));
    (monitor, guard)
}

async fn text(lines: &mut Lines) -> String {
    String::from_utf8(lines.next().await).unwrap()
}

/// Without the time before it, whose form is checked.
fn untimed(line: &str) -> &str {
    let (time, rest) = line.split_once(' ').unwrap();
    time.parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time.len(), "2026-01-02T03:04:05.678Z".len(), "{time}");
    rest
}

#[tokio::test]
async fn each_follower_gets_its_level_from_its_start() {
    let (monitor, _heard) = listening();
    tracing::error!("before anybody listened");
    let mut info = monitor.follow(&PLAIN).unwrap();
    let mut debug = monitor.follow(&Follow { level: LevelFilter::DEBUG, ..PLAIN }).unwrap();
    tracing::debug!(target: "raft", "small");
    tracing::info!(target: "node", node = "n 1", count = 3, "registered");
    let info = text(&mut info).await;
    assert_eq!(untimed(&info), "[INFO]  node: registered: node=\"n 1\" count=3\n");
    let debug = text(&mut debug).await;
    let lines: Vec<_> = debug.lines().map(untimed).collect();
    assert_eq!(lines, ["[DEBUG] raft: small", "[INFO]  node: registered: node=\"n 1\" count=3"]);
}

#[tokio::test]
async fn an_event_names_what_the_spans_around_it_name() {
    let (monitor, _heard) = listening();
    let mut lines = monitor.follow(&Follow { level: LevelFilter::DEBUG, ..PLAIN }).unwrap();
    let outer = tracing::debug_span!("request", path = "/v1/jobs");
    outer.in_scope(|| tracing::debug!(target: "http", status = 200_u64, "answered"));
    assert_eq!(untimed(&text(&mut lines).await), "[DEBUG] http: answered: status=200 path=/v1/jobs\n");
}

#[tokio::test]
async fn lines_may_be_objects_with_their_location() {
    let (monitor, _heard) = listening();
    let mut lines = monitor.follow(&Follow { json: true, location: true, ..PLAIN }).unwrap();
    tracing::warn!(target: "node", error = %"no way", "lost");
    let line: Value = serde_json::from_str(&text(&mut lines).await).unwrap();
    let shown = (&line["@level"], &line["@module"], &line["@message"], &line["error"]);
    assert_eq!(shown, (&"warn".into(), &"node".into(), &"lost".into(), &"no way".into()));
    assert!(line["@caller"].as_str().unwrap().contains("followers.rs:"), "{line}");
    assert!(line["@timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
}

#[tokio::test(start_paused = true)]
async fn frames_carry_lines_and_heartbeats() {
    let (monitor, _heard) = listening();
    let mut lines = monitor.follow(&Follow { plain: false, ..PLAIN }).unwrap();
    tracing::info!("here");
    let frame: api::StreamFrame = serde_json::from_slice(&lines.next().await).unwrap();
    assert!(String::from_utf8(frame.data.0).unwrap().ends_with("here\n"));
    let began = tokio::time::Instant::now();
    assert_eq!(text(&mut lines).await, "{}");
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}

#[tokio::test]
async fn a_slow_follower_gets_the_number_of_missed_lines() {
    let (monitor, _heard) = listening();
    let mut lines = monitor.follow(&PLAIN).unwrap();
    for number in 0..LINES_WAITING_MAX + 7 {
        tracing::info!("number {number}");
    }
    let piece = text(&mut lines).await;
    let lines: Vec<_> = piece.lines().map(untimed).collect();
    assert_eq!(lines.len(), LINES_WAITING_MAX + 1);
    assert!(lines[LINES_WAITING_MAX - 1].ends_with(&format!("number {}", LINES_WAITING_MAX - 1)));
    assert_eq!(lines[LINES_WAITING_MAX], "[WARN]  monitor: Monitor dropped 7 logs during monitor request");
}

#[tokio::test]
async fn a_follower_that_leaves_makes_room() {
    let (monitor, _heard) = listening();
    let followers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| monitor.follow(&PLAIN).unwrap()).collect();
    assert_eq!(monitor.follow(&PLAIN).unwrap_err(), FollowError::Full);
    drop(followers);
    assert!(monitor.follow(&PLAIN).is_ok());
}

#[tokio::test]
async fn libraries_log_warnings_only() {
    let (monitor, _heard) = listening();
    let mut lines = monitor.follow(&Follow { level: LevelFilter::TRACE, ..PLAIN }).unwrap();
    tracing::debug!(target: "hyper::proto", "flushed");
    tracing::warn!(target: "openraft::engine", "vote changed");
    tracing::warn!(target: "hyper::proto", "odd");
    let piece = text(&mut lines).await;
    assert_eq!(piece.lines().map(untimed).collect::<Vec<_>>(), ["[WARN]  hyper::proto: odd"]);
}

#[test]
fn levels_go_by_their_names() {
    let asked = |level: &str| {
        Follow::try_from(&AgentMonitorRequest {
            log_level: level.to_string(),
            ..AgentMonitorRequest::default()
        })
    };
    assert_eq!(asked("").unwrap().level, LevelFilter::INFO);
    assert_eq!(asked("WARN").unwrap().level, LevelFilter::WARN);
    assert_eq!(asked("loud").unwrap_err().to_string(), "Unknown log level: loud");
}
