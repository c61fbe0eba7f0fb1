use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Duration, Instant, sleep_until};

use super::encode::Encoder;
use super::feed::{Feed, FeedError};
use super::page::{Cursor, EventFilter};

/// A stream sends something at least this often.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// One open stream. It is asked for more only when its socket accepts more; until then it holds this and nothing else.
pub struct Subscription {
    feed: Feed,
    filter: Arc<EventFilter>,
    cursor: Cursor,
    encoder: Encoder,
    begun: bool,
    ended: bool,
    /// When it has to send something.
    beat: Instant,
    closed: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
}

impl Subscription {
    pub fn new(
        feed: Feed,
        filter: EventFilter,
        cursor: Cursor,
        encoder: Encoder,
        slot: OwnedSemaphorePermit,
    ) -> Subscription {
        let (filter, closed) = (Arc::new(filter), feed.closed());
        let beat = Instant::now() + HEARTBEAT;
        Subscription { feed, filter, cursor, encoder, begun: false, ended: false, beat, closed, _slot: slot }
    }

    /// The next bytes; `None` ends the stream.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        if !self.begun {
            self.begun = true;
            return Some(self.encoder.opening(self.feed.cluster()));
        }
        loop {
            if self.filter.ends_before(self.cursor) {
                return self.end();
            }
            let page = tokio::select! {
                biased;
                _ = self.closed.wait_for(|closed| *closed) => return None,
                page = self.feed.page(self.cursor, &self.filter) => Some(page),
                () = sleep_until(self.beat) => None,
            };
            let mut chunk = match page {
                Some(Ok(page)) => {
                    self.cursor = page.next;
                    self.encoder.page(&page, self.feed.cluster())
                }
                Some(Err(error)) => {
                    self.report(&error);
                    return None;
                }
                None => Vec::new(),
            };
            if !self.filter.viewer.may_go_on() {
                return None;
            }
            if chunk.is_empty() && Instant::now() >= self.beat {
                chunk = self.encoder.heartbeat(self.feed.cluster());
            }
            if !chunk.is_empty() {
                self.beat = Instant::now() + HEARTBEAT;
                return Some(chunk);
            }
            // One with a narrow filter finds nothing for a long time: others filter the thread too.
            tokio::task::yield_now().await;
        }
    }

    /// Says once that nothing more comes.
    fn end(&mut self) -> Option<Vec<u8>> {
        let said = std::mem::replace(&mut self.ended, true);
        (!said).then(|| self.encoder.end(self.cursor, self.feed.cluster())).filter(|chunk| !chunk.is_empty())
    }

    /// A client that comes back gets the reason why it cannot go on, if it cannot.
    fn report(&self, error: &FeedError) {
        let Cursor { index, ordinal } = self.cursor;
        match error {
            FeedError::Ended => {}
            FeedError::Gone => tracing::info!(index = index.0, ordinal, "a stream fell behind what is kept"),
            FeedError::Failed(_) => {
                tracing::error!(index = index.0, ordinal, %error, "a stream ended")
            }
        }
    }
}
