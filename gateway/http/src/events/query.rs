use api::{ClusterTag, Params, StreamPosition, TopicFilter};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use base::Index;
use feed::{AccessCheck, Cursor, EventFilter};

use crate::error::Failure;

const LAST_EVENT_ID: &str = "last-event-id";

/// A subscription, as its caller describes it.
pub(super) struct StreamQuery {
    pub filter: EventFilter,
    /// `None` begins with the oldest event there is.
    pub start: Option<Cursor>,
    /// The cluster whose stream the position is in, if it says so.
    pub cluster: Option<ClusterTag>,
    /// Server-sent events instead of lines of JSON.
    pub messages: bool,
}

impl StreamQuery {
    /// # Errors
    /// 400 with what cannot be understood.
    pub(super) fn read(
        params: &Params,
        headers: &HeaderMap,
        may_see: AccessCheck,
    ) -> Result<StreamQuery, Failure> {
        let topics = params.all("topic").map(str::parse).collect::<Result<Vec<TopicFilter>, _>>();
        let namespace = params.namespace();
        let filter = EventFilter {
            topics: topics.map_err(|error| Failure::invalid(error.to_string()))?,
            namespace: (namespace != "*").then(|| namespace.to_string()),
            may_see,
        };
        let (start, cluster) = match last_event_id(headers)? {
            Some(position) => (Some(Cursor::after(position.after)), position.cluster),
            None => (index(params)?.map(Cursor::at), None),
        };
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let messages = accepts.flat_map(|value| value.split(',')).any(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("text/event-stream")
        });
        Ok(StreamQuery { filter, start, cluster, messages })
    }
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
