//! Sinks: where the leader sends the stream by itself. Each has a cursor, which says how far it has come.

use std::sync::Arc;

use api::{EventCursor, EventSink, EventSinkRequest};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{get, put};
use base::Duration;
use feed::{Feed, Recent};
use model::{
    Command, EventCursorSettings, EventSinkSettings, EventSinkTarget, SetEventSink, VariableKey,
    cursor_of_sink,
};
use serde_json::Value;
use state::State;
use state::sink::{Sink, Status};

use super::cursors::{self, unreadable};
use super::query;
use crate::access::{ReadOperator, denied};
use crate::answer::{self, Answer, Meta, done, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::page;
use crate::request::{Json, ReadNow, Reading, Write};

const ATTEMPTS: u32 = 10;
const TIMEOUT: Duration = Duration::from_secs(30);
const FILE_BYTES: u64 = 64 << 20;
const FILES: u32 = 4;

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
    let feed = server.events.clone();
    let view = move |state: &State, read: &Reading| {
        let all = state.sinks.iter().filter(|(name, _)| name.starts_with(&read.options.prefix));
        let shown = page(all.map(|(name, sink)| (name.to_string(), (name, sink))), &read.options)?;
        let positions = shown.items.iter().filter_map(|(name, _)| state.cursors.get(&cursor_of_sink(name)));
        let behind = positions.map(|cursor| cursor.position.index).min().unwrap_or(state.index);
        let recent = feed.recent(behind).map_err(|error| unreadable(&error))?;
        let items = shown.items.iter().map(|(name, sink)| view(&feed, &recent, state, name, sink));
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
    let EventSinkRequest { kind, url, address, subject, max_bytes, max_files, .. } = wanted;
    let of_kinds = [
        ("URL", "webhook", !url.is_empty()),
        ("Address", "nats", !address.is_empty()),
        ("Subject", "nats", !subject.is_empty()),
        ("MaxBytes", "file", *max_bytes > 0),
        ("MaxFiles", "file", *max_files > 0),
    ];
    if let Some((field, of, _)) = of_kinds.into_iter().find(|(_, of, given)| *given && of != kind) {
        return Err(Failure::invalid(format!("{field}: is of sinks of the kind {of}, and Kind is {kind:?}")));
    }
    let target = match kind.as_str() {
        "webhook" => EventSinkTarget::Webhook { url: url.clone() },
        "nats" => EventSinkTarget::Nats { address: address.clone(), subject: subject.clone() },
        "file" => EventSinkTarget::File {
            max_bytes: if *max_bytes == 0 { FILE_BYTES } else { *max_bytes },
            max_files: if *max_files == 0 { FILES } else { *max_files },
        },
        other => {
            return Err(Failure::invalid(format!("Kind: expected webhook, nats or file, not {other:?}")));
        }
    };
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

fn changed(state: &State) -> base::Index {
    state.sinks.changed()
}

/// Reads the log: not on the threads that serve everybody.
async fn shown(server: &AppState, state: &Arc<State>, name: String) -> Result<EventSink, Failure> {
    let (feed, state) = (server.events.clone(), state.clone());
    let shown = tokio::task::spawn_blocking(move || {
        let sink = state.sinks.get(&name);
        let sink = sink.ok_or_else(|| Failure::not_found(format!("event sink {name:?} not found")))?;
        let cursor = state.cursors.get(&cursor_of_sink(&name));
        let recent = feed.recent(cursor.map_or(state.index, |cursor| cursor.position.index));
        view(&feed, &recent.map_err(|error| unreadable(&error))?, &state, &name, sink)
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
        EventSinkTarget::Nats { address, subject } => {
            shown.kind = "nats".to_string();
            (shown.address, shown.subject) = (address.clone(), subject.clone());
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
