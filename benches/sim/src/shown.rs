//! What readers of the event stream see of a server, without the server.

use std::sync::Arc;

use base::{Index, Term};
use feed::{Feed, Source};
use journal::{
    EncodedBatch, Freshness, IndexCallback, Journal, KeepError, NotLeading, ProposeError, ReadError,
};
use model::Image;
use parking_lot::Mutex;
use state::State;
use tokio::sync::watch;

/// The log and the published state of one life of a server.
pub struct Shown {
    journal: Arc<dyn Journal>,
    /// What its log leads on from.
    origin: Mutex<Arc<State>>,
    state: Mutex<Arc<State>>,
    index: watch::Sender<Index>,
}

struct Reads(Arc<Shown>);

impl Shown {
    pub fn new(journal: Arc<dyn Journal>) -> Shown {
        let index = watch::channel(Index::ZERO).0;
        Shown { journal, origin: Mutex::default(), state: Mutex::default(), index }
    }

    pub fn feed(self: &Arc<Shown>) -> Feed {
        Feed::new(Reads(self.clone()))
    }

    pub fn state(&self) -> Arc<State> {
        self.state.lock().clone()
    }

    pub fn publish(&self, state: &Arc<State>) {
        *self.state.lock() = state.clone();
        self.index.send_replace(state.index);
    }

    /// The log may begin after this state now.
    pub fn begin(&self, state: &Arc<State>) {
        *self.origin.lock() = state.clone();
        self.publish(state);
    }
}

impl Source for Reads {
    fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    fn state(&self) -> Arc<State> {
        self.0.state()
    }

    fn state_at(&self, index: Index) -> Option<Arc<State>> {
        Some(self.0.state()).filter(|state| state.index == index)
    }

    fn origin(&self) -> Arc<State> {
        self.0.origin.lock().clone()
    }

    fn watch(&self) -> watch::Receiver<Index> {
        self.0.index.subscribe()
    }
}

/// The committed batches, from the first on.
pub type Committed = Arc<Mutex<Vec<EncodedBatch>>>;

/// A log that is only read. Proposals take another way.
pub struct Shelf(pub Committed);

impl Journal for Shelf {
    fn propose(&self, _: Term, _: EncodedBatch) -> Result<(), ProposeError> {
        Err(ProposeError::Halted("a shelf is read only".to_string()))
    }

    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let committed = self.0.lock();
        let first = (from.0.max(1) - 1).min(committed.len() as u64) as usize;
        let mut bytes = 0;
        let fits = |batch: &&EncodedBatch| {
            let fits = bytes == 0 || bytes + batch.bytes().len() <= max_bytes;
            bytes += batch.bytes().len();
            fits
        };
        Ok(committed[first..].iter().take_while(fits).cloned().collect())
    }

    fn committed(&self) -> Index {
        Index(self.0.lock().len() as u64)
    }

    fn horizon(&self) -> Index {
        Index(1)
    }

    fn keep(&self, _: Image) -> Result<(), KeepError> {
        Err(KeepError::Failed("a shelf is read only".to_string()))
    }

    fn unkept_bytes(&self) -> u64 {
        0
    }

    fn read_index(&self, _: Freshness, tell: IndexCallback) {
        tell(Err(NotLeading));
    }
}
