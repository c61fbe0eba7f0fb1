use std::sync::Arc;

use api::{EventId, TopicFilter};
use base::Index;
use bytes::Bytes;

use super::outline::Head;
use super::scene::Scene;

/// Events are taken into a page until they reach this size; one more may exceed it. This is what a reader holds
/// while its socket takes nothing.
pub const PAGE_BYTES: usize = 64 << 10;
/// Events looked at for one page, wanted or not: bounds how long a reader with a narrow filter works in one go, at
/// about 1 us each.
const LOOKS_MAX: usize = 16_384;

/// The next event to be told: the one at `ordinal` of the batch `index`, or what follows if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cursor {
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
}

/// Whether its caller may see an event: asked for each event it wants.
pub type Allows = Arc<dyn Fn(&Head) -> bool + Send + Sync>;

/// Which events a reader gets.
pub(super) struct Want {
    /// Empty means all.
    pub topics: Vec<TopicFilter>,
    /// `None` means all. What has no namespace passes either way.
    pub namespace: Option<String>,
    pub allows: Allows,
}

impl Want {
    fn wants(&self, head: &Head) -> bool {
        let keys = || std::iter::once(&head.key).chain(&head.filter_keys).map(String::as_str);
        let topic =
            self.topics.is_empty() || self.topics.iter().any(|filter| filter.matches(head.topic, keys()));
        let namespace = self.namespace.as_deref().is_none_or(|namespace| namespace == head.namespace);
        topic && (namespace || head.namespace.is_empty()) && (self.allows)(head)
    }
}

/// An event on its way to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub id: EventId,
    pub topic: &'static str,
    pub body: Bytes,
}

/// A stretch of the stream for one reader.
#[derive(Debug)]
pub(super) struct Page {
    pub events: Vec<Told>,
    /// What the next page begins with.
    pub next: Cursor,
    /// The last event that was looked at, wanted or not: to resume after it misses nothing. A batch of which nothing
    /// is told counts as one event.
    pub seen: Option<EventId>,
    bytes: usize,
    looks: usize,
}

impl Page {
    pub fn at(next: Cursor) -> Page {
        Page { events: Vec::new(), next, seen: None, bytes: 0, looks: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= PAGE_BYTES || self.looks >= LOOKS_MAX
    }

    /// Takes what the reader wants of the batch its cursor stands in, as far as there is room.
    pub fn take(&mut self, scene: &Scene, want: &Want) {
        assert_eq!(scene.index(), self.next.index, "a page goes on where it ended");
        let index = scene.index();
        self.looks += 1;
        while let Some(head) = scene.heads.get(self.next.ordinal as usize) {
            if self.is_full() {
                return;
            }
            let id = EventId { index, ordinal: self.next.ordinal };
            if want.wants(head) {
                let body = scene.body(self.next.ordinal as usize).clone();
                self.bytes += body.len();
                self.events.push(Told { id, topic: head.topic, body });
            }
            self.looks += 1;
            self.next.ordinal += 1;
            self.seen = Some(id);
        }
        if scene.heads.is_empty() {
            self.seen = Some(EventId { index, ordinal: 0 });
        }
        self.next = Cursor::at(index.next());
    }
}
