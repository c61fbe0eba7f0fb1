use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Index;
use bytes::Bytes;
use journal::EncodedBatch;
use state::State;

use super::body;
use super::entries::{self, Entry};
use super::feed::FeedError;

/// What keeping one event costs besides its JSON: the entry, the row it holds on to and its part of a page.
const HELD_BYTES: usize = 1_536;

/// One batch of the stream: its entries, and the state it led to. An event is rendered when the first reader needs it,
/// once for all.
pub struct RenderedBatch {
    pub entries: Vec<Entry>,
    state: State,
    bodies: Vec<OnceLock<Bytes>>,
    rendered: AtomicUsize,
}

impl RenderedBatch {
    /// Folds the batch that follows on `state`.
    ///
    /// # Errors
    /// [`FeedError::Failed`]: the log is not what it was, or holds what this server cannot read.
    pub fn after(mut state: State, batch: &EncodedBatch) -> Result<RenderedBatch, FeedError> {
        let entries = entries::list(&mut state, &batch.decode()?)?;
        let bodies = std::iter::repeat_with(OnceLock::new).take(entries.len()).collect();
        Ok(RenderedBatch { entries, state, bodies, rendered: AtomicUsize::new(0) })
    }

    pub fn index(&self) -> Index {
        self.state.index
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn into_state(self) -> State {
        self.state
    }

    /// The JSON of the event at `ordinal`.
    pub fn body(&self, ordinal: usize) -> &Bytes {
        self.bodies[ordinal].get_or_init(|| {
            let body = body::render(&self.state, self.index(), &self.entries[ordinal]);
            self.rendered.fetch_add(body.len(), Ordering::Relaxed);
            body
        })
    }

    /// What keeping it costs, about.
    pub fn bytes(&self) -> usize {
        (self.entries.len() + 1) * HELD_BYTES + self.rendered.load(Ordering::Relaxed)
    }
}
