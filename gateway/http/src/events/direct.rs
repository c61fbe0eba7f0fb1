//! A reader of the stream without a runtime and without a socket: what a simulator runs.

use std::sync::Arc;

use api::EventId;
use base::Index;
use bytes::Bytes;

use super::feed::{Feed, FeedError};
use super::page::{Cursor, Want};

/// Reads every event that follows on a place, in the same pages as a stream over HTTP.
pub struct Reader {
    feed: Feed,
    next: Cursor,
    want: Want,
}

/// A stretch of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Each event with its JSON.
    pub events: Vec<(EventId, Bytes)>,
    /// Every batch below has been told.
    pub told_before: Index,
}

impl Reader {
    /// Begins after `last`; without one, at the oldest event there is.
    pub fn after(feed: &Feed, last: Option<EventId>) -> Reader {
        let next = last.map_or_else(|| Cursor::at(feed.oldest()), Cursor::after);
        let want = Want { topics: Vec::new(), namespace: None, allows: Arc::new(|_| true) };
        Reader { feed: feed.clone(), next, want }
    }

    /// What comes next; `None` when everything that is published has been told.
    ///
    /// # Errors
    /// [`FeedError`]: the stream cannot go on.
    pub fn poll(&mut self) -> Result<Option<Stretch>, FeedError> {
        let Some(page) = self.feed.page_now(self.next, &self.want)? else { return Ok(None) };
        self.next = page.next;
        let events = page.events.into_iter().map(|told| (told.id, told.body)).collect();
        Ok(Some(Stretch { events, told_before: page.next.index }))
    }
}
