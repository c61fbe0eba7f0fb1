use std::convert::Infallible;
use std::sync::Arc;

use api::{ClusterTag, Consistency};
use axum::Router;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::{Duration, Index};
use bytes::Bytes;
use feed::{Cursor, Encoder, Feed, STREAMS_MAX, Subscription, View};
use futures_util::stream;

use super::query::{self, From, StreamQuery, To};
use super::reader::TokenReader;
use super::{chains, cursors, histories, sinks};
use crate::access::Each;
use crate::answer::Answer;
use crate::app_state::{AppState, now};
use crate::error::{Failure, OLDEST};
use crate::request::Call;

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/event/stream", get(stream))
        .merge(cursors::router())
        .merge(sinks::router())
        .merge(histories::router())
        .merge(chains::router())
}

async fn stream(With(server): With<AppState>, call: Call<Each>, headers: HeaderMap) -> Answer {
    let Call { params, access, .. } = call;
    let (params, cursor) = cursors::chosen(&server, &access, params).await?;
    let topics = query::topics(&params)?;
    let reader = TokenReader::admitted(server.clone(), &access, topics, params.namespace())?;
    let mut query = StreamQuery::read(&params, &headers, Arc::new(reader))?;
    query.on(cursor);
    check_cluster(query.cluster, server.events.cluster())?;
    if let Some(from) = query.from {
        query.start = first_after(&server, from).await?;
    }
    if let Some(start) = query.start {
        check_not_ahead(&server, start).await?;
    }
    if let Some(to) = query.to {
        query.filter.end = Some(end(&server, to).await?);
    }
    subscribe(&server.events, query)
}

/// `None`: the oldest event there is.
pub(super) async fn first_after(server: &AppState, from: From) -> Result<Option<Cursor>, Failure> {
    let time = match from {
        From::Start => return Ok(None),
        From::Now => return Ok(Some(Cursor::at(server.events.newest()))),
        From::Place(place, cluster) => {
            check_cluster(cluster, server.events.cluster())?;
            return Ok(Some(place));
        }
        From::Time(time) => time,
        From::Ago(span) => now().plus(Duration(-span.0)),
    };
    let first = server.events.since(time).await;
    first.map(|index| Some(Cursor::at(index))).map_err(|error| Failure::internal(error.to_string()))
}

/// Right after the last event that is wanted.
async fn end(server: &AppState, to: To) -> Result<Cursor, Failure> {
    let time = match to {
        To::Now => return Ok(Cursor::at(server.events.newest())),
        To::Before(place, cluster) => {
            check_cluster(cluster, server.events.cluster())?;
            return Ok(place);
        }
        To::Time(time) if time > now() => {
            return Err(Failure::invalid("to: that time is still to come: leave it out to follow"));
        }
        To::Time(time) => time,
        To::Ago(span) => now().plus(Duration(-span.0)),
    };
    let later = server.events.since(time.plus(Duration(1))).await;
    later.map(Cursor::at).map_err(|error| Failure::internal(error.to_string()))
}

/// A position that names no cluster fits all, and a server that knows none yet takes every position.
pub(super) fn check_cluster(position: Option<ClusterTag>, own: Option<ClusterTag>) -> Result<(), Failure> {
    match (position, own) {
        (Some(position), Some(own)) if position != own => {
            Err(Failure::invalid("the position is in the stream of another cluster: begin anew"))
        }
        _ => Ok(()),
    }
}

/// This server may lag behind what the reader has seen; the cluster may not.
pub(super) async fn check_not_ahead(server: &AppState, start: Cursor) -> Result<(), Failure> {
    let is_ahead = || start.index > server.control.state().index.next();
    if is_ahead() {
        server.fresh(Consistency::Leased, Index::ZERO).await?;
    }
    if is_ahead() {
        let newest = server.control.state().index;
        return Err(Failure::invalid(format!(
            "index {} is ahead of the log: the newest is {newest}",
            start.index
        )));
    }
    Ok(())
}

/// # Errors
/// 429 when too many streams are open.
pub(super) fn subscribe(feed: &Feed, query: StreamQuery) -> Answer {
    let oldest = feed.oldest();
    let mut start = query.start.unwrap_or(Cursor::at(oldest));
    let gap = (start.index < oldest).then_some(start.index);
    match gap {
        Some(wanted) if !query.skips_gaps => return Ok(gone(wanted, oldest, query.cursor.as_deref())),
        Some(_) => start = Cursor::at(oldest),
        None => {}
    }
    let slot = feed.slot().ok_or_else(|| {
        Failure::too_many(format!("{STREAMS_MAX} event streams are open already: try again later"))
    })?;
    let (kind, encoder) = if query.messages {
        let encoder =
            if query.from.is_some() { Encoder::announced_messages(start) } else { Encoder::messages(start) };
        ("text/event-stream", encoder)
    } else if query.filter.view == View::CloudEvents {
        ("application/x-ndjson", Encoder::Lines)
    } else {
        ("application/json", Encoder::lines())
    };
    let encoder = match gap {
        Some(wanted) => encoder.after_gap(wanted, oldest),
        None => encoder,
    };
    let subscription = Subscription::new(feed.clone(), query.filter, start, encoder, slot);
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONNECTION, "close"),
        // Proxies that collect answers before they pass them on would hold back events.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let skipped = gap.map(|_| [(OLDEST, HeaderValue::from(oldest.0))]);
    Ok((headers, skipped, body(subscription)).into_response())
}

/// Asked for more only when the socket accepts more.
fn body(subscription: Subscription) -> Body {
    let next = async |mut subscription: Subscription| {
        let chunk = subscription.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), subscription))
    };
    Body::from_stream(stream::unfold(subscription, next))
}

/// Never a silent gap: a reader that asks for what is gone gets the oldest index there is.
pub(super) fn gone(index: Index, oldest: Index, cursor: Option<&str>) -> Response {
    let mut text = format!("index {index} is no longer kept: the oldest is {oldest}");
    if let Some(name) = cursor {
        text.push_str(&format!(": reset the cursor {name:?}, or read it with on_gap=skip"));
    }
    Failure::gone(text, oldest).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_position_of_another_cluster_is_refused() {
        let (own, other) = (Some(ClusterTag(1)), Some(ClusterTag(2)));
        assert!(check_cluster(other, own).is_err());
        // Read before this server knew its cluster, or by it before it knows.
        for (position, server) in [(own, own), (None, own), (own, None), (None, None)] {
            assert!(check_cluster(position, server).is_ok(), "{position:?} {server:?}");
        }
    }
}
