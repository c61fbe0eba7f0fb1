use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Duration, Instant, sleep_until};

use super::encode::Encoder;
use super::feed::{Feed, FeedError};
use super::page::{Cursor, Want};

/// A stream says something at least this often.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(30);

/// One open stream. It is asked for more only when its socket takes more; until then it holds this and nothing else.
pub(super) struct Reader {
    feed: Feed,
    want: Arc<Want>,
    cursor: Cursor,
    encoder: Encoder,
    begun: bool,
    /// When it has to say something.
    beat: Instant,
    closed: watch::Receiver<bool>,
    _seat: OwnedSemaphorePermit,
}

impl Reader {
    pub fn new(
        feed: Feed,
        want: Want,
        cursor: Cursor,
        encoder: Encoder,
        seat: OwnedSemaphorePermit,
    ) -> Reader {
        let (want, closed) = (Arc::new(want), feed.closed());
        let beat = Instant::now() + HEARTBEAT;
        Reader { feed, want, cursor, encoder, begun: false, beat, closed, _seat: seat }
    }

    pub fn into_body(self) -> Body {
        let next = async |mut reader: Reader| {
            let chunk = reader.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(chunk)), reader))
        };
        Body::from_stream(stream::unfold(self, next))
    }

    /// The next bytes; `None` ends the stream.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        if !self.begun {
            self.begun = true;
            return Some(self.encoder.hello());
        }
        loop {
            let page = tokio::select! {
                biased;
                _ = self.closed.wait_for(|closed| *closed) => return None,
                page = self.feed.page(self.cursor, &self.want) => Some(page),
                () = sleep_until(self.beat) => None,
            };
            let mut chunk = match page {
                Some(Ok(page)) => {
                    self.cursor = page.next;
                    self.encoder.page(&page)
                }
                Some(Err(error)) => {
                    self.report(&error);
                    return None;
                }
                None => Vec::new(),
            };
            if chunk.is_empty() && Instant::now() >= self.beat {
                chunk = self.encoder.heartbeat();
            }
            if !chunk.is_empty() {
                self.beat = Instant::now() + HEARTBEAT;
                return Some(chunk);
            }
            // One with a narrow filter finds nothing for a long time: others want the thread too.
            tokio::task::yield_now().await;
        }
    }

    /// A client that comes back is told why it cannot go on, if it cannot.
    fn report(&self, error: &FeedError) {
        let Cursor { index, ordinal } = self.cursor;
        match error {
            FeedError::Ended => {}
            FeedError::Gone => tracing::info!(index = index.0, ordinal, "a stream fell behind what is kept"),
            FeedError::Failed(_) | FeedError::TooFar { .. } => {
                tracing::error!(index = index.0, ordinal, %error, "a stream ended")
            }
        }
    }
}
