//! Sinks: where the leader sends the stream by itself. Each has a cursor, which says how far it has come.

use std::sync::Arc;

use api::{EventCursor, EventSink, EventSinkRequest};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{get, put};
use base::Duration;
use delivery::{Report, Reports, syslog};
use feed::{Feed, FeedError, Recent};
use metrics::Gauge;
use model::document::Timestamp;
use model::{
    Command, EventCursorSettings, EventSinkSettings, EventSinkTarget, OtlpSignal, SetEventSink,
    SyslogTransport, VariableKey, cursor_of_sink,
};
use serde_json::Value;
use state::State;
use state::sink::{Sink, Status};

use super::cursors::{self, unreadable};
use super::query;
use crate::access::{ReadOperator, denied};
use crate::answer::{self, Answer, Meta, done, written};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::page::page;
use crate::request::{Json, ReadNow, Reading, Write};

const ATTEMPTS: u32 = 10;
const TIMEOUT: Duration = Duration::from_secs(30);
const FILE_BYTES: u64 = 64 << 20;
const FILES: u32 = 4;
const FACILITY: &str = "local0";
const APP_NAME: &str = "sojourn";
const SIGNALS: [(&str, OtlpSignal); 2] = [("logs", OtlpSignal::Logs), ("traces", OtlpSignal::Traces)];
const TRANSPORTS: [(&str, SyslogTransport); 3] =
    [("udp", SyslogTransport::Udp), ("tcp", SyslogTransport::Tcp), ("tls", SyslogTransport::Tls)];

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/event/sinks", get(list))
        .route("/v1/event/sink/{name}", get(show).put(set).post(set).delete(remove))
        .route("/v1/event/sink/{name}/pause", put(pause).post(pause))
        .route("/v1/event/sink/{name}/resume", put(resume).post(resume))
        .route("/v1/event/sink/{name}/retry", put(resume).post(resume))
        .route("/v1/event/sink/{name}/skip", put(skip).post(skip))
}

async fn list(With(server): With<AppState>, ReadNow(read): ReadNow<ReadOperator>) -> Answer {
    read.without_filter()?;
    let (feed, reports) = (server.events.clone(), server.sinks.clone());
    let view = move |state: &State, read: &Reading| {
        let all = state.sinks.iter().filter(|(name, _)| name.starts_with(&read.options.prefix));
        let shown = page(all.map(|(name, sink)| (name.to_string(), (name, sink))), &read.options)?;
        let positions = shown.items.iter().filter_map(|(name, _)| state.cursors.get(&cursor_of_sink(name)));
        let behind = positions.map(|cursor| cursor.position.index).min().unwrap_or(state.index);
        let recent = feed.recent(behind).map_err(|error| unreadable(&error))?;
        let items = shown.items.iter().map(|(name, sink)| view(&feed, &recent, state, name, sink));
        let items = items.map(|sink| sink.map(|sink| reported(&reports, sink)));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Ok(crate::page::Page { items, next: shown.next })
    };
    server.list(read, changed, view).await
}

async fn show(
    With(server): With<AppState>,
    Path(name): Path<String>,
    ReadNow(read): ReadNow<ReadOperator>,
) -> Answer {
    let (state, known_leader) = server.newer(&read, &changed).await?;
    read.check_again(&server)?;
    let index = changed(&state);
    let sink = shown(&server, &state, name).await?;
    Ok(answer::with_meta(answer::json(&sink), &Meta { index, known_leader, next_token: None }))
}

async fn set(
    With(server): With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<Value>,
) -> Answer {
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    let wanted: EventSinkRequest =
        serde_json::from_value(wanted).map_err(|error| Failure::invalid(error.to_string()))?;
    let settings = settings(&wanted)?;
    let EventSinkRequest { from, topics, namespace, filter, .. } = wanted;
    let namespace = if namespace.is_empty() { "default".to_string() } else { namespace };
    let events = EventCursorSettings {
        topics: topics.0,
        namespace,
        filter,
        from,
        reader: String::new(),
        ttl: Duration::ZERO,
        members: 0,
    };
    let mut wanted = Box::new(SetEventSink { name: name.clone(), settings, events, start: None });
    wanted.events.topics.iter().try_for_each(|topic| cursors::check_topic(topic))?;
    query::conditioned(&wanted.events.filter, "Filter")?;
    wanted.start = match cursors::place(&server, &wanted.events.from, "From").await? {
        Ok(start) => start,
        // Where one that exists has begun may be gone by now.
        Err(_) if server.control.state().sinks.get(&name).is_some() => None,
        Err(gone) => return Ok(gone),
    };
    let receipt = server.submit(&write, Command::SetEventSink(wanted)).await?;
    let state = server.after(&receipt).await?;
    written(receipt.index, &shown(&server, &state, name).await?)
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    let receipt = server.submit(&write, Command::DeleteEventSink { name }).await?;
    Ok(done(receipt.index))
}

async fn pause(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    turn(&server, &write, name.clone(), Command::PauseEventSink { name }).await
}

async fn resume(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    turn(&server, &write, name.clone(), Command::ResumeEventSink { name }).await
}

async fn skip(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    turn(&server, &write, name.clone(), Command::SkipEventSink { name }).await
}

async fn turn(server: &AppState, write: &Write, name: String, command: Command) -> Answer {
    let receipt = server.submit(write, command).await?;
    let state = server.after(&receipt).await?;
    written(receipt.index, &shown(server, &state, name).await?)
}

/// # Errors
/// 400 with the field that is not of this kind.
fn settings(wanted: &EventSinkRequest) -> Result<EventSinkSettings, Failure> {
    let (kind, target) = (wanted.kind.as_str(), target(wanted)?);
    let (path, namespace) = (&wanted.secret_variable, &wanted.secret_namespace);
    if path.is_empty() && !namespace.is_empty() {
        return Err(Failure::invalid("SecretNamespace: expected SecretVariable with it"));
    }
    if !path.is_empty() && kind == "file" {
        return Err(Failure::invalid("SecretVariable: a file has no use for it"));
    }
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    Ok(EventSinkSettings {
        target,
        secret: (!path.is_empty()).then(|| VariableKey::new(namespace, path)),
        attempts_max: if wanted.max_attempts == 0 { ATTEMPTS } else { wanted.max_attempts },
        timeout: if wanted.timeout.0 == Duration::ZERO { TIMEOUT } else { wanted.timeout.0 },
    })
}

/// # Errors
/// As [`settings`].
fn target(wanted: &EventSinkRequest) -> Result<EventSinkTarget, Failure> {
    let EventSinkRequest { kind, url, address, subject, tls, transport, facility, app_name, .. } = wanted;
    let EventSinkRequest { max_bytes, max_files, signal, .. } = wanted;
    let of_kinds: [(_, &[&str], _); 10] = [
        ("URL", &["webhook", "otlp"], !url.is_empty()),
        ("Signal", &["otlp"], !signal.is_empty()),
        ("Address", &["nats", "kafka", "syslog"], !address.is_empty()),
        ("Subject", &["nats", "kafka"], !subject.is_empty()),
        ("TLS", &["nats", "kafka"], *tls),
        ("Transport", &["syslog"], !transport.is_empty()),
        ("Facility", &["syslog"], !facility.is_empty()),
        ("AppName", &["syslog"], !app_name.is_empty()),
        ("MaxBytes", &["file"], *max_bytes > 0),
        ("MaxFiles", &["file"], *max_files > 0),
    ];
    let is_other = |of: &[&str], given| given && !of.contains(&kind.as_str());
    if let Some((field, of, _)) = of_kinds.into_iter().find(|(_, of, given)| is_other(of, *given)) {
        let of = of.join(" or ");
        return Err(Failure::invalid(format!("{field}: is of sinks of the kind {of}, and Kind is {kind:?}")));
    }
    let or = |given: u64, default| if given == 0 { default } else { given };
    Ok(match kind.as_str() {
        "webhook" => EventSinkTarget::Webhook { url: url.clone() },
        "nats" => EventSinkTarget::Nats { address: address.clone(), subject: subject.clone(), tls: *tls },
        "file" => EventSinkTarget::File {
            max_bytes: or(*max_bytes, FILE_BYTES),
            max_files: if *max_files == 0 { FILES } else { *max_files },
        },
        "syslog" => EventSinkTarget::Syslog {
            address: address.clone(),
            transport: transport_of(transport)?,
            facility: facility_of(facility)?,
            app_name: if app_name.is_empty() { APP_NAME.to_string() } else { app_name.clone() },
        },
        "otlp" => EventSinkTarget::Otlp { url: url.clone(), signal: signal_of(signal)? },
        "kafka" if !cfg!(feature = "kafka") => {
            let text = "Kind: this program was built without kafka, the feature that sends to it";
            return Err(Failure::invalid(text));
        }
        "kafka" => EventSinkTarget::Kafka { address: address.clone(), topic: subject.clone(), tls: *tls },
        other => {
            let text = format!("Kind: expected webhook, nats, kafka, file, syslog or otlp, not {other:?}");
            return Err(Failure::invalid(text));
        }
    })
}

fn transport_of(text: &str) -> Result<SyslogTransport, Failure> {
    if text.is_empty() {
        return Ok(SyslogTransport::default());
    }
    let found = TRANSPORTS.into_iter().find(|(name, _)| *name == text);
    let expected = || Failure::invalid(format!("Transport: expected udp, tcp or tls, not {text:?}"));
    found.map(|(_, transport)| transport).ok_or_else(expected)
}

fn signal_of(text: &str) -> Result<OtlpSignal, Failure> {
    if text.is_empty() {
        return Ok(OtlpSignal::default());
    }
    let found = SIGNALS.into_iter().find(|(name, _)| *name == text);
    let expected = || Failure::invalid(format!("Signal: expected logs or traces, not {text:?}"));
    found.map(|(_, signal)| signal).ok_or_else(expected)
}

fn facility_of(text: &str) -> Result<u8, Failure> {
    let text = if text.is_empty() { FACILITY } else { text };
    let number = (0_u8..).zip(syslog::FACILITIES).find(|(_, name)| *name == text).map(|(number, _)| number);
    number.ok_or_else(|| {
        let known = syslog::FACILITIES.join(", ");
        Failure::invalid(format!("Facility: expected one of {known}, not {text:?}"))
    })
}

/// Those of all sinks, for metrics. Reads the log.
///
/// # Errors
/// [`FeedError`]: the log cannot be read.
pub(crate) fn gauges(server: &AppState, state: &State) -> Result<Vec<Gauge>, FeedError> {
    let all = || state.sinks.iter().filter_map(|(name, sink)| Some((name, sink, cursor_of(state, name)?)));
    let Some(furthest) = all().map(|(_, _, cursor)| cursor.position.index).min() else {
        return Ok(Vec::new());
    };
    let recent = server.events.recent(furthest)?;
    let mut gauges = Vec::new();
    for (name, sink, cursor) in all() {
        let lag = server.events.lag(&recent, cursor.position.index)?;
        let behind = lag.since.map_or(Duration::ZERO, |since| now().since(since));
        let of_sink = |gauge: Gauge| gauge.with("sink", name);
        gauges.push(of_sink(Gauge::new("sojourn.sinks.lag_batches", lag.batches as f64)));
        gauges.push(of_sink(Gauge::new("sojourn.sinks.lag_seconds", (behind.0.max(0) as f64) / 1e9)));
        let parked = matches!(sink.status, Status::Parked(_));
        gauges.push(of_sink(Gauge::new("sojourn.sinks.parked", u8::from(parked))));
        if let Some(report) = server.sinks.get(name) {
            gauges.push(of_sink(Gauge::new("sojourn.sinks.attempts", report.attempts)));
        }
    }
    Ok(gauges)
}

fn cursor_of<'a>(state: &'a State, sink: &str) -> Option<&'a state::cursor::Cursor> {
    state.cursors.get(&cursor_of_sink(sink))
}

fn changed(state: &State) -> base::Index {
    state.sinks.changed()
}

/// Reads the log: not on the threads that serve everybody.
async fn shown(server: &AppState, state: &Arc<State>, name: String) -> Result<EventSink, Failure> {
    let (feed, state, reports) = (server.events.clone(), state.clone(), server.sinks.clone());
    let shown = tokio::task::spawn_blocking(move || {
        let sink = state.sinks.get(&name);
        let sink = sink.ok_or_else(|| Failure::not_found(format!("event sink {name:?} not found")))?;
        let cursor = state.cursors.get(&cursor_of_sink(&name));
        let recent = feed.recent(cursor.map_or(state.index, |cursor| cursor.position.index));
        let sink = view(&feed, &recent.map_err(|error| unreadable(&error))?, &state, &name, sink)?;
        Ok(reported(&reports, sink))
    });
    shown.await?
}

fn view(feed: &Feed, recent: &Recent, state: &State, name: &str, sink: &Sink) -> Result<EventSink, Failure> {
    let cursor = cursor_of_sink(name);
    let kept = state.cursors.get(&cursor).map(|kept| cursors::view(feed, recent, &cursor, kept));
    let EventCursor { from, topics, namespace, filter, position, lag_batches, lag_seconds, acked_at, .. } =
        kept.transpose()?.unwrap_or_default();
    let EventSinkSettings { target, secret, attempts_max, timeout } = &sink.settings;
    let mut shown = EventSink {
        name: name.to_string(),
        secret_variable: secret.as_ref().map(|secret| secret.path.clone()).unwrap_or_default(),
        secret_namespace: secret.as_ref().map(|secret| secret.namespace.clone()).unwrap_or_default(),
        max_attempts: *attempts_max,
        timeout: (*timeout).into(),
        from,
        topics,
        namespace,
        filter,
        cursor,
        position,
        lag_batches,
        lag_seconds,
        acked_at,
        create_index: sink.created.0,
        modify_index: sink.modified.0,
        ..EventSink::default()
    };
    match target {
        EventSinkTarget::Webhook { url } => (shown.kind, shown.url) = ("webhook".to_string(), url.clone()),
        EventSinkTarget::Nats { address, subject, tls } => {
            shown.kind = "nats".to_string();
            (shown.address, shown.subject, shown.tls) = (address.clone(), subject.clone(), *tls);
        }
        EventSinkTarget::Syslog { address, transport, facility, app_name } => {
            shown.kind = "syslog".to_string();
            (shown.address, shown.app_name) = (address.clone(), app_name.clone());
            let name = TRANSPORTS.into_iter().find(|(_, known)| known == transport).map(|(name, _)| name);
            shown.transport = name.unwrap_or_default().to_string();
            shown.facility = syslog::FACILITIES.get(usize::from(*facility)).unwrap_or(&"").to_string();
        }
        EventSinkTarget::Otlp { url, signal } => {
            (shown.kind, shown.url) = ("otlp".to_string(), url.clone());
            let name = SIGNALS.into_iter().find(|(_, known)| known == signal).map(|(name, _)| name);
            shown.signal = name.unwrap_or_default().to_string();
        }
        EventSinkTarget::Kafka { address, topic, tls } => {
            shown.kind = "kafka".to_string();
            (shown.address, shown.subject, shown.tls) = (address.clone(), topic.clone(), *tls);
        }
        EventSinkTarget::File { max_bytes, max_files } => {
            shown.kind = "file".to_string();
            (shown.max_bytes, shown.max_files) = (*max_bytes, *max_files);
        }
    }
    shown.status = match &sink.status {
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Parked(parked) => {
            shown.parked_event = cursors::id(feed, parked.event);
            shown.parked_attempts = parked.attempts;
            shown.parked_reason = parked.reason.clone();
            shown.parked_at = Some(parked.at.into());
            "parked"
        }
    }
    .to_string();
    Ok(shown)
}

/// With what the server that sends to it knows.
fn reported(reports: &Reports, sink: EventSink) -> EventSink {
    let Some(report) = reports.get(&sink.name) else { return sink };
    let Report { sent, failures, last_failure, attempts, next_attempt } = report;
    let failed = last_failure.as_ref();
    EventSink {
        reported: true,
        sent,
        failures,
        failed_attempts: attempts,
        next_attempt_at: next_attempt.map(Timestamp::from),
        last_failure_event: failed.map(|failed| failed.what.clone()).unwrap_or_default(),
        last_failure_reason: failed.map(|failed| failed.why.clone()).unwrap_or_default(),
        last_failure_at: failed.map(|failed| failed.at.into()),
        ..sink
    }
}
