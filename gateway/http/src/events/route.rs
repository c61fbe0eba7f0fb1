use std::sync::Arc;
use std::time::Duration;

use api::{AllocationHistory, AllocationTransition};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::Index;
use history::{HistoryError, Transition};
use model::AllocId;

use super::ask::Ask;
use super::encode::Encoder;
use super::feed::{Feed, STREAMS_MAX};
use super::page::Cursor;
use super::stream::Reader;
use crate::answer::{self, Answer, Meta};
use crate::error::Failure;
use crate::request;
use crate::server::Server;

const OLDEST: HeaderName = HeaderName::from_static("x-sojourn-oldest-index");

/// How long a reader of a life waits until what it sees in the state can also be told.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn router() -> Router<Server> {
    Router::new().route("/v1/event/stream", get(stream)).route("/v1/allocation/{id}/history", get(life))
}

async fn stream(With(server): With<Server>, parts: Parts) -> Answer {
    let params = request::params(&parts)?;
    server.check_region(params.get("region").unwrap_or_default())?;
    // Access control is off: everybody may see everything.
    let ask = Ask::read(&params, &parts.headers, Arc::new(|_| true))?;
    subscribe(&server.events, ask)
}

/// # Errors
/// 429 when too many streams are open.
pub(super) fn subscribe(feed: &Feed, ask: Ask) -> Answer {
    let oldest = feed.oldest();
    let start = ask.start.unwrap_or(Cursor::at(oldest));
    if start.index < oldest {
        return Ok(gone(start.index, oldest));
    }
    let seat = feed.seat().ok_or_else(|| {
        Failure::too_many(format!("{STREAMS_MAX} event streams are open already: try again later"))
    })?;
    let (kind, encoder) = if ask.messages {
        ("text/event-stream", Encoder::messages(start))
    } else {
        ("application/json", Encoder::lines())
    };
    let reader = Reader::new(feed.clone(), ask.want, start, encoder, seat);
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONNECTION, "close"),
        // Proxies that collect answers before they pass them on would hold back events.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, reader.into_body()).into_response())
}

/// Never a silent skip: what cannot be told any more is said so, with where one may begin.
fn gone(index: Index, oldest: Index) -> Response {
    let text = format!("index {index} is no longer kept: the oldest is {oldest}");
    (StatusCode::GONE, [(OLDEST, HeaderValue::from(oldest.0))], text).into_response()
}

async fn life(With(server): With<Server>, Path(id): Path<String>, parts: Parts) -> Answer {
    server.check_region(request::params(&parts)?.get("region").unwrap_or_default())?;
    let unknown = || Failure::not_found("alloc not found");
    let alloc: AllocId = id.parse().map_err(|_| unknown())?;
    let index = server.control.state().index;
    let history = server.history.clone();
    let told = tokio::task::spawn_blocking(move || history.transitions(alloc, index, PATIENCE)).await;
    let told = told.map_err(|panic| Failure::internal(panic.to_string()))?.map_err(|error| match error {
        HistoryError::Behind { .. } => Failure::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        error => Failure::internal(error.to_string()),
    })?;
    if told.is_empty() {
        return Err(unknown());
    }
    let view =
        AllocationHistory { id: alloc.to_string(), transitions: told.iter().map(transition).collect() };
    let meta = Meta { index, known_leader: server.known_leader(), next_token: None };
    Ok(answer::with_meta(answer::json(&view), &meta))
}

/// As the contract shows it.
pub(crate) fn transition(told: &Transition) -> AllocationTransition {
    let desired = |view: &history::View| view.desired.map(|d| d.to_string()).unwrap_or_default();
    let client = |view: &history::View| view.client.map(|c| c.to_string()).unwrap_or_default();
    AllocationTransition {
        index: told.index.0,
        ordinal: u32::from(told.ordinal),
        time: told.time.into(),
        old_desired: desired(&told.old),
        new_desired: desired(&told.new),
        old_client: client(&told.old),
        new_client: client(&told.new),
        actor: told.actor.to_string(),
        cause: told.cause.clone(),
        description: told.description.clone(),
    }
}
