use std::sync::Arc;

use std::sync::LazyLock;

use api::{EventId, TopicFilter};
use base::{Index, Time};
use bytes::Bytes;
use filter::{EvalError, Filter, Schema};
use model::EventPosition;
use serde_json::{Value, json};

use super::entries::Entry;
use super::rendered::RenderedBatch;
use super::share::Share;
use super::view::View;

/// Events are taken into a page until they reach this size; one more may exceed it. This is what a reader holds
/// while its socket takes nothing.
pub const PAGE_BYTES: usize = 64 << 10;
/// Events examined for one page, matching or not: bounds how long a reader with a narrow filter works in one go, at
/// about 1 us each.
const EXAMINED_MAX: usize = 16_384;
/// What looking into an event costs, in events that are examined.
const CONDITION_COST: usize = 32;

/// The next event to be read: the one at `ordinal` of the batch `index`, or what follows if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub index: Index,
    pub ordinal: u32,
}

impl Cursor {
    /// From the batch on.
    pub fn at(index: Index) -> Cursor {
        Cursor { index, ordinal: 0 }
    }

    /// Right after the event.
    pub fn after(id: EventId) -> Cursor {
        Cursor { index: id.index, ordinal: id.ordinal.saturating_add(1) }
    }

    /// What follows a position that is kept. After a whole batch that is in the next one: it may be the oldest there is.
    pub fn behind(EventPosition { index, ordinal }: EventPosition) -> Cursor {
        match ordinal {
            u32::MAX => Cursor::at(index.next()),
            ordinal => Cursor::after(EventId { index, ordinal }),
        }
    }
}

/// Who reads, as far as the stream has to know.
pub trait Viewer: Send + Sync {
    /// Asked for each event that matches.
    fn may_see(&self, entry: &Entry) -> bool;

    /// Asked before anything is sent: what the reader was let in with is still good.
    fn may_go_on(&self) -> bool;
}

/// It gets everything, for as long as it likes.
pub struct Everybody;

impl Viewer for Everybody {
    fn may_see(&self, _: &Entry) -> bool {
        true
    }

    fn may_go_on(&self) -> bool {
        true
    }
}

/// Which events a reader gets.
pub struct EventFilter {
    /// Empty means all.
    pub topics: Vec<TopicFilter>,
    /// `None` means all. What has no namespace passes either way.
    pub namespace: Option<String>,
    pub viewer: Arc<dyn Viewer>,
    pub condition: Option<Condition>,
    pub view: View,
    /// Events from here on are not for this reader.
    pub end: Option<Cursor>,
    /// The part of them that is for this reader; all without one.
    pub share: Option<Share>,
}

/// What a filter expression says about events.
pub struct Condition(Filter);

/// What an event has for conditions.
static EVENT: LazyLock<Schema> = LazyLock::new(|| {
    let fields = [
        ("Topic", "string"),
        ("Type", "string"),
        ("Key", "string"),
        ("Namespace", "string"),
        ("FilterKeys", "list<string>"),
        ("Index", "uint64"),
        ("Time", "string"),
        ("Actor", "string"),
        ("Requester", "any"),
        ("RequestID", "string"),
        ("Command", "string"),
        ("Fact", "string"),
        ("Cause", "any"),
        ("Payload", "any"),
    ];
    let fields = fields.map(|(name, kind)| json!({"name": name, "type": kind}));
    Schema::read(&json!({"Event": {"kind": "object", "fields": fields}})).expect("the types are known")
});

impl Condition {
    /// None of an empty text.
    ///
    /// # Errors
    /// It is no expression, or names a field that events do not have.
    pub fn parse(text: &str) -> Result<Option<Condition>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let filter = Filter::parse(text).map_err(|error| error.to_string())?;
        match filter.matches(&EVENT, "Event", &json!({})) {
            // Payloads differ, so what does not fit one event may fit another.
            Ok(_) | Err(EvalError::Unfit { .. }) => Ok(Some(Condition(filter))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn holds(&self, event: &Value) -> bool {
        self.0.matches(&EVENT, "Event", event).unwrap_or(false)
    }
}

impl EventFilter {
    /// Everything of these topics (of all, where there are none), as Nomad shows it.
    pub fn of_topics(topics: Vec<TopicFilter>, viewer: Arc<dyn Viewer>) -> EventFilter {
        EventFilter {
            topics,
            namespace: None,
            viewer,
            condition: None,
            view: View::Nomad,
            end: None,
            share: None,
        }
    }

    /// Nothing is left to read from there on.
    pub(crate) fn ends_before(&self, cursor: Cursor) -> bool {
        self.end.is_some_and(|end| cursor >= end)
    }

    fn matches(&self, entry: &Entry) -> bool {
        let keys = || std::iter::once(&entry.key).chain(&entry.filter_keys).map(String::as_str);
        let topic =
            self.topics.is_empty() || self.topics.iter().any(|filter| filter.matches(entry.topic, keys()));
        let namespace = self.namespace.as_deref().is_none_or(|namespace| namespace == entry.namespace);
        let share = self.share.is_none_or(|share| share.has(entry));
        topic && (namespace || entry.namespace.is_empty()) && share && self.viewer.may_see(entry)
    }
}

/// An event on its way to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    pub id: EventId,
    /// The servers' time, of its batch.
    pub time: Time,
    pub topic: &'static str,
    /// The type.
    pub kind: &'static str,
    /// The position in its batch of the fact in the log that it is listed for.
    pub fact: u16,
    pub body: Bytes,
}

/// A part of the stream for one reader.
#[derive(Debug)]
pub struct Page {
    pub events: Vec<StreamEvent>,
    /// What the next page begins with.
    pub next: Cursor,
    /// The last event that was examined, matching or not: to resume after it misses nothing. A batch of which nothing
    /// is listed counts as one event.
    pub seen: Option<EventId>,
    bytes: usize,
    examined: usize,
}

impl Page {
    pub fn at(next: Cursor) -> Page {
        Page { events: Vec::new(), next, seen: None, bytes: 0, examined: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= PAGE_BYTES || self.examined >= EXAMINED_MAX
    }

    /// Takes what the reader matches of the batch its cursor stands in, as far as there is room.
    pub fn take(&mut self, batch: &RenderedBatch, filter: &EventFilter) {
        assert_eq!(batch.index(), self.next.index, "a page goes on where it ended");
        let index = batch.index();
        self.examined += 1;
        while let Some(entry) = batch.entries.get(self.next.ordinal as usize) {
            if self.is_full() {
                return;
            }
            if filter.ends_before(self.next) {
                break;
            }
            let (id, ordinal) = (EventId { index, ordinal: self.next.ordinal }, self.next.ordinal as usize);
            if filter.matches(entry) && self.holds(batch, ordinal, filter) {
                let body = batch.shown(ordinal, filter.view);
                let (time, topic, kind) = (batch.state().time, entry.topic, entry.kind);
                let fact = entry.fact;
                let event = StreamEvent { id, time, topic, kind, fact, body };
                self.bytes += event.body.len();
                self.events.push(event);
            }
            self.examined += 1;
            self.next.ordinal += 1;
            self.seen = Some(id);
        }
        // A checkpoint for an acknowledgement would be acknowledged in its turn, and so on.
        if batch.entries.is_empty() && !batch.is_of_cursors() {
            self.seen = Some(EventId { index, ordinal: 0 });
        }
        self.next = Cursor::at(index.next());
    }

    fn holds(&mut self, batch: &RenderedBatch, ordinal: usize, filter: &EventFilter) -> bool {
        let Some(condition) = &filter.condition else { return true };
        self.examined += CONDITION_COST;
        condition.holds(batch.document(ordinal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_whole_batch_is_in_the_next_one() {
        let index = Index(5);
        assert_eq!(Cursor::behind(EventPosition { index, ordinal: u32::MAX }), Cursor::at(Index(6)));
        assert_eq!(Cursor::behind(EventPosition { index, ordinal: 2 }), Cursor { index, ordinal: 3 });
    }
}
