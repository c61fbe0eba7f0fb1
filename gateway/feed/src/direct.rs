//! A reader of the stream without a runtime and without a socket, as the simulator needs it.

use std::sync::Arc;

use api::EventId;
use base::Index;
use bytes::Bytes;

use super::feed::{Feed, FeedError};
use super::page::{Cursor, EventFilter, Everybody};

/// Reads every event after a position, in the same pages as a stream over HTTP.
pub struct Reader {
    feed: Feed,
    next: Cursor,
    filter: EventFilter,
}

/// A part of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Each event with its JSON.
    pub events: Vec<(EventId, Bytes)>,
    /// Every batch below this index has been read.
    pub read_before: Index,
}

impl Reader {
    /// Begins after `last`; without one, at the oldest event there is.
    pub fn after(feed: &Feed, last: Option<EventId>) -> Reader {
        let next = last.map_or_else(|| Cursor::at(feed.oldest()), Cursor::after);
        let filter = EventFilter::of_topics(Vec::new(), Arc::new(Everybody));
        Reader { feed: feed.clone(), next, filter }
    }

    /// What comes next; `None` when everything that is published has been read.
    ///
    /// # Errors
    /// [`FeedError`]: the stream cannot go on.
    pub fn poll(&mut self) -> Result<Option<Segment>, FeedError> {
        let Some(page) = self.feed.page_now(self.next, &self.filter)? else { return Ok(None) };
        self.next = page.next;
        let events = page.events.into_iter().map(|event| (event.id, event.body)).collect();
        Ok(Some(Segment { events, read_before: page.next.index }))
    }
}
