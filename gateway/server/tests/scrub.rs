//! Damage that no start would see, found while the server runs.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Index, Time};
use control::Leadership;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use model::event::NodeMessage;
use model::{Actor, Command, NodeId, Request};
use server::{ClusterSettings, Halted, Server, Settings, StartError, log_dir};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const SEGMENT_BYTES: u64 = 16 << 10;

/// In about 34 segments of six each.
const MESSAGES: usize = 200;

pub(crate) const NODE: NodeId = NodeId(base::Uuid(*b"the node of all."));

const RECORD_HEADER: usize = 64;
/// Consensus reads of it at every start, to see where the log begins.
const FIRST: &str = "00000000000000000001.seg";
/// Nobody reads it: consensus halves the log in search of terms that began near its ends.
const PASSED_BY: &str = "00000000000000000021.seg";

#[tokio::test(flavor = "multi_thread")]
async fn damage_that_a_start_passes_by_is_found_and_stops_a_lone_server() {
    let home = tempfile::tempdir().unwrap();
    let damaged = PASSED_BY;
    with_damage_behind_an_image(home.path(), damaged).await;
    // An image holds the outcome, so nobody needs to read it.
    let unaware = Server::start(Settings { scrub_every: None, ..settings(home.path()) }).await.unwrap();
    unaware.shutdown().await;

    let server = Server::start(settings(home.path())).await.unwrap();
    let Halted { why, again } = timeout(PATIENCE, server.halted()).await.unwrap();
    assert!(!again);
    assert!(why.contains(&format!("the log is damaged in segment {damaged} at byte ")), "{why}");
    assert!(why.ends_with(&format!("sojourn operator log repair {}", home.path().display())), "{why}");
    server.shutdown().await;
    assert!(is_suspected(home.path()));

    // From now on it is looked for before the log is opened.
    let refused = Server::start(Settings { scrub_every: None, ..settings(home.path()) }).await;
    assert!(matches!(refused.err(), Some(StartError::Damaged { .. })));
    let files = journal::store::Directory::open(&log_dir(home.path())).unwrap();
    journal::store::repair(&files, true).unwrap();
    drop(files);
    let server = Server::start(settings(home.path())).await.unwrap();
    assert!(!is_suspected(home.path()), "all of it was read, and is whole");
    server.shutdown().await;
}

/// What a disk does that says it has written and has not: the end of the log is as if it had never been.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_server_does_not_take_a_log_that_lost_its_end_for_whole() {
    let home = tempfile::tempdir().unwrap();
    let (kept, seen) = without_its_end(home.path()).await;
    let whole =
        journal::store::repair(&journal::store::Directory::open(&log_dir(home.path())).unwrap(), false);
    assert!(matches!(whole, Err(journal::store::StoreError::Undamaged)), "{whole:?}");
    let refused = Server::start(settings(home.path())).await.err();
    let Some(StartError::LostTail { lost, .. }) = &refused else { panic!("{refused:?}") };
    assert!(lost.kept == kept && lost.seen >= seen, "{lost:?}: kept {kept:?}, seen {seen:?}");
    assert_eq!(server::lost_tail(home.path()).unwrap().as_ref(), Some(lost));

    server::lose_up_to(home.path(), kept).unwrap();
    assert_eq!(server::lost_tail(home.path()).unwrap(), None);
    let server = Server::start(settings(home.path())).await.unwrap();
    leads(&server).await;
    say(&server).await;
    let index = server.control.state().index;
    assert!(index > seen, "batch {index} was given before: {seen} was the last");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_others_puts_a_log_that_lost_its_end_aside() {
    let home = tempfile::tempdir().unwrap();
    without_its_end(home.path()).await;
    let number = raft_number(home.path());
    let server = Server::start(among_others(home.path())).await.unwrap();
    assert!(home.path().join("server/log.damaged-1").exists());
    assert_ne!(raft_number(home.path()), number);
    server.shutdown().await;
    let again = Server::start(among_others(home.path())).await.unwrap();
    assert!(!home.path().join("server/log.damaged-2").exists(), "the new log has lost nothing");
    again.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_others_puts_a_damaged_log_aside_when_it_starts_again() {
    let home = tempfile::tempdir().unwrap();
    let damaged = PASSED_BY;
    with_damage_behind_an_image(home.path(), damaged).await;
    let number = raft_number(home.path());
    let server = Server::start(among_others(home.path())).await.unwrap();
    let Halted { why, again } = timeout(PATIENCE, server.halted()).await.unwrap();
    assert!(again, "{why}");
    server.shutdown().await;

    let server = Server::start(among_others(home.path())).await.unwrap();
    let aside = home.path().join("server/log.damaged-1");
    assert!(aside.join(damaged).exists());
    assert_ne!(raft_number(home.path()), number);
    assert_eq!(server.control.state().index, Index::ZERO);
    assert!(!is_suspected(home.path()), "all of it was read, and is whole");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_that_consensus_comes_upon_is_damage_too() {
    let home = tempfile::tempdir().unwrap();
    with_damage_behind_an_image(home.path(), FIRST).await;
    // The first entry: the members. Who starts asks for its term.
    let path = log_dir(home.path()).join(FIRST);
    let mut bytes = fs::read(&path).unwrap();
    let members = bytes.windows(6).position(|six| six == b"SJR1\x01\x03").expect("a record of members");
    bytes[members + RECORD_HEADER] ^= 0x20;
    fs::write(path, bytes).unwrap();
    let refused = Server::start(Settings { scrub_every: None, ..settings(home.path()) }).await.err();
    assert!(matches!(refused, Some(StartError::Damaged { .. })), "{refused:?}");
}

/// One byte of a segment is not what was written.
async fn with_damage_behind_an_image(home: &Path, segment: &str) {
    let server = Server::start(Settings { scrub_every: None, ..settings(home) }).await.unwrap();
    leads(&server).await;
    register(&server).await;
    for _ in 0..MESSAGES {
        say(&server).await;
    }
    let control = server.control.clone();
    tokio::task::spawn_blocking(move || control.keep_image()).await.unwrap().unwrap();
    server.shutdown().await;
    let segments =
        fs::read_dir(log_dir(home)).unwrap().filter(|entry| is_segment(entry.as_ref().unwrap())).count();
    assert!((31..38).contains(&segments), "{segments} segments");
    let path = log_dir(home).join(segment);
    let mut bytes = fs::read(&path).unwrap();
    bytes[SEGMENT_BYTES as usize / 2] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

/// The disk has forgotten the last batches, of which history had seen all. Returns where the log ends, and where it ended.
async fn without_its_end(home: &Path) -> (Index, Index) {
    let server = Server::start(settings(home)).await.unwrap();
    leads(&server).await;
    register(&server).await;
    server.shutdown().await;
    // Asked once nothing more is written: the leader may have had a batch of its own on its way.
    let kept = raft::log_end(&log_dir(home)).unwrap().unwrap().index;
    let early: Vec<(PathBuf, Vec<u8>)> = files_of(&log_dir(home));

    let server = Server::start(settings(home)).await.unwrap();
    leads(&server).await;
    say(&server).await;
    let (seen, history) = (server.control.state().index, server.history.clone());
    let reach = move || history.allocs_with_prefix("", 1, seen, PATIENCE);
    tokio::task::spawn_blocking(reach).await.unwrap().unwrap();
    server.shutdown().await;
    assert!(seen > kept);
    fs::remove_dir_all(log_dir(home)).unwrap();
    fs::create_dir(log_dir(home)).unwrap();
    early.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    (kept, seen)
}

fn files_of(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Nobody answers there, but it is not alone.
fn among_others(home: &Path) -> Settings {
    let cluster = ClusterSettings {
        bootstrap_expect: 0,
        peers: vec!["127.0.0.1:1".to_string()],
        ..ClusterSettings::alone()
    };
    Settings { cluster, ..settings(home) }
}

pub(crate) async fn leads(server: &Server) {
    let mut leadership = server.control.leadership();
    let mine = |who: &Leadership| *who == Leadership::Mine;
    timeout(PATIENCE, leadership.wait_for(mine)).await.unwrap().unwrap();
}

pub(crate) async fn register(server: &Server) {
    let document = model::document::Node {
        id: NODE.to_string(),
        secret_id: "secret".into(),
        name: "node".into(),
        datacenter: "dc1".into(),
        attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
        ..Default::default()
    };
    submit(server, Command::RegisterNode { document: Box::new(document) }).await;
}

pub(crate) async fn say(server: &Server) {
    let message = NodeMessage::new("Test", &"text".repeat(500), Time::from_secs(1));
    submit(server, Command::EmitNodeMessages { node: NODE, messages: vec![message] }).await;
}

fn is_segment(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().ends_with(".seg")
}

async fn submit(server: &Server, command: Command) {
    let request = Request::unnamed(Actor::ANONYMOUS, command);
    server.control.submit(request).await.unwrap();
}

/// Whether the next start reads everything first.
fn is_suspected(home: &Path) -> bool {
    home.join("server/log-is-damaged").exists()
}

fn raft_number(home: &Path) -> String {
    fs::read_to_string(home.join("server/raft-number")).unwrap()
}

pub(crate) fn settings(home: &Path) -> Settings {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Settings {
        name: "one".to_string(),
        region: "global".to_string(),
        datacenter: "dc1".to_string(),
        data_dir: PathBuf::from(home),
        http: anywhere,
        rpc: anywhere,
        advertise_http: None,
        advertise_rpc: None,
        node: None,
        garbage: Default::default(),
        introduction: Default::default(),
        access: Default::default(),
        root_keys: Default::default(),
        oidc_issuer: None,
        scheduler: Default::default(),
        heartbeats: HeartbeatSettings {
            min_ttl: base::Duration::from_secs(10),
            grace: base::Duration::from_secs(10),
            failover_ttl: base::Duration::from_secs(300),
        },
        broker: BrokerSettings::default(),
        job_count_max: 50_000,
        history: server::HistorySettings::default(),
        identities: Default::default(),
        workers: 1,
        segment_bytes: SEGMENT_BYTES,
        scrub_every: Some(Duration::from_millis(10)),
        tls: None,
        federation: Default::default(),
        cluster: ClusterSettings::alone(),
        version: "0.0.0".to_string(),
        config: std::sync::Arc::new(serde_json::Map::new()),
        log: Default::default(),
        audit: None,
        limits: Default::default(),
        debug: false,
        prometheus: true,
        metrics_host: false,
        ui: true,
        ui_folder: None,
        node_figures: Default::default(),
        node_routes: Default::default(),
        sink_addresses: Default::default(),
        response_headers: Default::default(),
    }
}
