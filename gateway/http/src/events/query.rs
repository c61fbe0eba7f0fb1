use std::sync::Arc;

use api::{ClusterTag, Params, StreamPosition, TopicFilter};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use base::{Duration, Index, Time};
use feed::{Cursor, EventFilter, Viewer};
use model::document::Timestamp;

use crate::error::Failure;

const LAST_EVENT_ID: &str = "last-event-id";

/// A subscription, as its caller describes it.
pub(super) struct StreamQuery {
    pub filter: EventFilter,
    /// `None` begins with the oldest event there is.
    pub start: Option<Cursor>,
    /// Where the server finds out what that is. Never with a start.
    pub from: Option<From>,
    /// The cluster whose stream the position is in, if it says so.
    pub cluster: Option<ClusterTag>,
    /// Server-sent events instead of lines of JSON.
    pub messages: bool,
}

/// A place in the stream that a reader does not know the index of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The oldest event there is.
    Start,
    /// What comes next.
    Now,
    Time(Time),
    /// This long ago.
    Ago(Duration),
}

impl StreamQuery {
    /// # Errors
    /// 400 with what cannot be understood.
    pub(super) fn read(
        params: &Params,
        headers: &HeaderMap,
        viewer: Arc<dyn Viewer>,
    ) -> Result<StreamQuery, Failure> {
        let namespace = params.namespace();
        let filter = EventFilter {
            topics: topics(params)?,
            namespace: (namespace != "*").then(|| namespace.to_string()),
            viewer,
        };
        let (index, from) = (index(params)?.map(Cursor::at), from(params)?);
        if index.is_some() && from.is_some() {
            return Err(Failure::invalid("index and from exclude each other"));
        }
        // A reader that comes back says what it has read, and repeats its first question.
        let (start, from, cluster) = match last_event_id(headers)? {
            Some(position) => (Some(Cursor::after(position.after)), None, position.cluster),
            None => (index, from, None),
        };
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let messages = accepts.flat_map(|value| value.split(',')).any(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("text/event-stream")
        });
        Ok(StreamQuery { filter, start, from, cluster, messages })
    }
}

/// What a reader asks for; nothing means everything.
///
/// # Errors
/// 400 for what is no topic.
pub(super) fn topics(params: &Params) -> Result<Vec<TopicFilter>, Failure> {
    let topics = params.all("topic").map(str::parse).collect::<Result<Vec<TopicFilter>, _>>();
    topics.map_err(|error| Failure::invalid(error.to_string()))
}

/// A browser that has seen no id yet sends none, or an empty one.
fn last_event_id(headers: &HeaderMap) -> Result<Option<StreamPosition>, Failure> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.trim().is_empty() {
        return Ok(None);
    }
    text.trim()
        .parse()
        .map(Some)
        .map_err(|error| Failure::invalid(format!("Unable to parse Last-Event-ID: {error}")))
}

fn from(params: &Params) -> Result<Option<From>, Failure> {
    let text = params.get("from").unwrap_or_default();
    let ago = || text.parse().ok().filter(|span| *span >= Duration::ZERO).map(From::Ago);
    let time = || text.parse::<Timestamp>().ok().map(|stamp| From::Time(stamp.time()));
    let unknown = || {
        let text = format!("Unable to parse from: {text:?} is not start, now, a span like 10m, or a time");
        Failure::invalid(text)
    };
    match text {
        "" => Ok(None),
        "start" => Ok(Some(From::Start)),
        "now" => Ok(Some(From::Now)),
        _ => ago().or_else(time).map(Some).ok_or_else(unknown),
    }
}

fn index(params: &Params) -> Result<Option<Index>, Failure> {
    let text = params.get("index").unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let index: u64 = text
        .parse()
        .map_err(|_| Failure::invalid(format!("Unable to parse index: {text:?} is not a whole number")))?;
    Ok((index > 0).then_some(Index(index)))
}
