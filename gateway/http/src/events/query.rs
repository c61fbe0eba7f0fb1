use std::sync::Arc;

use api::{ClusterTag, EventId, Params, StreamPosition, TopicFilter, go_bool};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use base::{Duration, Index, Time};
use feed::{Condition, Cursor, EventFilter, View, Viewer};
use model::document::Timestamp;

use super::cursors::Chosen;
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
    /// The last place to read. `None` reads on for ever.
    pub to: Option<To>,
    /// Begin with the oldest event there is if what was asked for is no longer kept.
    pub skips_gaps: bool,
    /// Server-sent events instead of lines of JSON.
    pub messages: bool,
    /// The cursor that says where to begin, for what is answered when that is gone.
    pub cursor: Option<String>,
}

/// Where a reader wants its stream to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// With what there is now.
    Now,
    Before(Cursor, Option<ClusterTag>),
    Time(Time),
    Ago(Duration),
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
    Place(Cursor, Option<ClusterTag>),
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
            namespace: (namespace != "*").then(|| namespace.to_string()),
            condition: condition(params)?,
            ..EventFilter::of_topics(topics(params)?, viewer)
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
        let filter = EventFilter { view: view(params, messages)?, ..filter };
        let (to, skips_gaps) = (to(params)?, skips_gaps(params)?);
        Ok(StreamQuery { filter, start, from, cluster, to, skips_gaps, messages, cursor: None })
    }

    /// Begins where the cursor is, unless the reader says what it has read since.
    pub(super) fn on(&mut self, cursor: Option<Chosen>) {
        let Some(Chosen { name, place, share }) = cursor else { return };
        self.filter.share = share;
        if self.start.is_none() {
            self.from = Some(From::Place(place, None));
            self.cursor = Some(name);
        }
    }
}

fn condition(params: &Params) -> Result<Option<Condition>, Failure> {
    conditioned(params.get("filter").unwrap_or_default(), "Unable to parse filter")
}

/// # Errors
/// 400 for what is no condition of events, which begins with `context`.
pub(super) fn conditioned(text: &str, context: &str) -> Result<Option<Condition>, Failure> {
    Condition::parse(text).map_err(|why| Failure::invalid(format!("{context}: {why}")))
}

/// Lines of JSON are as Nomad has them, unless more is asked for; messages say who and when.
fn view(params: &Params, messages: bool) -> Result<View, Failure> {
    let (view, format) = (params.get("view").unwrap_or_default(), params.get("format").unwrap_or_default());
    let view = match view {
        "" if messages => View::Full,
        "" => View::Nomad,
        "full" => View::Full,
        "key" => View::Key,
        "diff" => View::Diff,
        other => {
            let text = format!("Unable to parse view: {other:?} is not full, key or diff");
            return Err(Failure::invalid(text));
        }
    };
    match format {
        "" => Ok(view),
        "cloudevents" => match params.get("view").unwrap_or_default() {
            "" | "full" => Ok(View::CloudEvents),
            view => Err(Failure::invalid(format!("format=cloudevents and view={view} exclude each other"))),
        },
        other => Err(Failure::invalid(format!("Unable to parse format: {other:?} is not cloudevents"))),
    }
}

fn to(params: &Params) -> Result<Option<To>, Failure> {
    let follows = match params.get("follow").unwrap_or_default() {
        "" => true,
        text => go_bool(text).ok_or_else(|| {
            Failure::invalid(format!("Unable to parse follow: {text:?} is not true or false"))
        })?,
    };
    let text = params.get("to").unwrap_or_default();
    let place = || {
        text.parse::<StreamPosition>()
            .ok()
            .map(|position| To::Before(Cursor::after(position.after), position.cluster))
    };
    let time = || text.parse::<Timestamp>().ok().map(|stamp| To::Time(stamp.time()));
    match text {
        "" if follows => Ok(None),
        "" | "now" => Ok(Some(To::Now)),
        _ => match place().or_else(|| ago(text).map(To::Ago)).or_else(time) {
            Some(to) => Ok(Some(to)),
            None => Err(Failure::invalid(format!("Unable to parse to: {text:?} is not now, {PLACES}"))),
        },
    }
}

const PLACES: &str = "an event id, an index, a span like -10m, or a time";

/// A span before now, with or without its sign.
fn ago(text: &str) -> Option<Duration> {
    let span: Duration = text.strip_prefix('-').unwrap_or(text).parse().ok()?;
    (span >= Duration::ZERO).then_some(span)
}

fn skips_gaps(params: &Params) -> Result<bool, Failure> {
    match params.get("on_gap").unwrap_or_default() {
        "" | "fail" => Ok(false),
        "skip" => Ok(true),
        other => Err(Failure::invalid(format!("Unable to parse on_gap: {other:?} is not fail or skip"))),
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
    place(params.get("from").unwrap_or_default(), "Unable to parse from")
}

/// # Errors
/// 400 for what is no place in the stream, which begins with `context`.
pub(super) fn place(text: &str, context: &str) -> Result<Option<From>, Failure> {
    // The event itself, or all of the index.
    let place = || {
        let at = |id: EventId| match id.ordinal {
            u32::MAX => Cursor::at(id.index),
            ordinal => Cursor { index: id.index, ordinal },
        };
        text.parse::<StreamPosition>().ok().map(|position| From::Place(at(position.after), position.cluster))
    };
    let time = || text.parse::<Timestamp>().ok().map(|stamp| From::Time(stamp.time()));
    let unknown = || Failure::invalid(format!("{context}: {text:?} is not start, now, {PLACES}"));
    match text {
        "" => Ok(None),
        "start" | "oldest" => Ok(Some(From::Start)),
        "now" => Ok(Some(From::Now)),
        _ => place().or_else(|| ago(text).map(From::Ago)).or_else(time).map(Some).ok_or_else(unknown),
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
