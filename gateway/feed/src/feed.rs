use std::sync::Arc;

use api::ClusterTag;
use base::{Index, Time};
use journal::{EncodedBatch, FrameError, Journal, ReadError, first_batch};
use parking_lot::Mutex;
use state::{FoldError, State};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::page::{Cursor, EventFilter, Page};
use super::rendered::RenderedBatch;
use super::replay::{REPLAYS_MAX, Replays};
use super::tail::{Lookup, TAIL_BATCHES, Tail};

/// Streams that may be open at the same time; one more is answered 429. Each takes a socket, its buffers and one
/// page.
pub const STREAMS_MAX: usize = 1_024;
/// Bytes of log folded for the head at once.
const ADVANCE_BYTES: usize = 1 << 20;

/// The log and what was folded of it: what a feed reads.
pub trait Source: Send + Sync + 'static {
    fn journal(&self) -> &Arc<dyn Journal>;
    /// The newest published state.
    fn state(&self) -> Arc<State>;
    /// The state of that index, if it was published a moment ago.
    fn state_at(&self, index: Index) -> Option<Arc<State>>;
    /// A state that the log's oldest batches follow on.
    fn origin(&self) -> Arc<State>;
    /// Notified of each newly published index. Events of later batches are not sent yet, so that a reader who gets one
    /// can also read its state. When it ends, so do all streams.
    fn watch(&self) -> watch::Receiver<Index>;
}

/// Why a stream cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error("the events are no longer kept")]
    Gone,
    #[error("the server stops")]
    Ended,
    #[error("the log cannot be read: {0}")]
    Failed(String),
}

impl From<ReadError> for FeedError {
    fn from(error: ReadError) -> FeedError {
        match error {
            ReadError::Compacted { .. } => FeedError::Gone,
            ReadError::Failed { .. } => FeedError::Failed(error.to_string()),
        }
    }
}

impl From<FrameError> for FeedError {
    fn from(error: FrameError) -> FeedError {
        FeedError::Failed(error.to_string())
    }
}

impl From<FoldError> for FeedError {
    fn from(error: FoldError) -> FeedError {
        FeedError::Failed(error.to_string())
    }
}

/// What all streams share; a clone is a pointer copy.
///
/// It does nothing by itself: the first reader who matches a batch has it folded, and all others find it. While nobody
/// reads, what was read last stays, so that a reader who comes back a moment later goes on at once.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    source: Box<dyn Source>,
    /// The state the server began with, as far as the tail and the replays know.
    origin: Mutex<Arc<State>>,
    tail: Mutex<Tail>,
    /// Held by whoever extends the tail.
    advancing: Arc<tokio::sync::Mutex<()>>,
    replays: Replays,
    /// Turns to replay.
    turns: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

impl Feed {
    pub fn new(source: impl Source) -> Feed {
        Feed(Arc::new(Inner {
            source: Box::new(source),
            origin: Mutex::default(),
            tail: Mutex::new(Tail::default()),
            advancing: Arc::default(),
            replays: Replays::new(),
            turns: Arc::new(Semaphore::new(REPLAYS_MAX)),
            slots: Arc::new(Semaphore::new(STREAMS_MAX)),
            closed: watch::channel(false).0,
        }))
    }

    /// Known before the first event is sent: the log begins with the founding of its cluster.
    pub fn cluster(&self) -> Option<ClusterTag> {
        ClusterTag::of(self.0.source.state().cluster)
    }

    /// Ends every stream, those that are still to come at once.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    /// The oldest batch that can be read.
    pub fn oldest(&self) -> Index {
        let inner = &self.0;
        inner.begin();
        let horizon = inner.source.journal().horizon();
        let replayed = inner.replays.oldest(horizon);
        let kept = inner.tail.lock().reaches(horizon);
        // If all else is gone, the stream begins here.
        replayed.into_iter().chain(kept).min().unwrap_or_else(|| inner.source.state().index.next())
    }

    /// A batch of the log, read on the caller's thread.
    ///
    /// # Errors
    /// [`FeedError::Gone`] when it is no longer kept.
    pub fn batch(&self, index: Index) -> Result<EncodedBatch, FeedError> {
        let batches = self.0.source.journal().read(index, 1)?;
        batches.into_iter().next().filter(|batch| batch.index() == index).ok_or(FeedError::Gone)
    }

    /// Some of the log, read on the caller's thread.
    pub(crate) fn read_log(&self, from: Index, bytes: usize) -> Result<Vec<EncodedBatch>, FeedError> {
        Ok(self.0.source.journal().read(from, bytes)?)
    }

    /// The first batch that can be read and is of that time or later; the next one to come when there is none.
    ///
    /// # Errors
    /// [`FeedError::Failed`]: the log cannot be read.
    pub async fn since(&self, time: Time) -> Result<Index, FeedError> {
        let (feed, oldest) = (self.clone(), self.oldest());
        blocking(move || {
            let (source, end) = (&feed.0.source, feed.newest());
            Ok(first_batch(&**source.journal(), oldest, end, |batch| batch.time() >= time)?)
        })
        .await
    }

    /// The next batch to come.
    pub fn newest(&self) -> Index {
        self.0.source.state().index.next()
    }

    pub fn closed(&self) -> watch::Receiver<bool> {
        self.0.closed.subscribe()
    }

    /// A connection slot; `None` when all are taken.
    pub fn slot(&self) -> Option<OwnedSemaphorePermit> {
        self.0.slots.clone().try_acquire_owned().ok()
    }

    /// What comes next at `from`, which is waited for. Nothing is lost when the future is dropped.
    ///
    /// A page may be without events; its cursor has moved all the same.
    pub async fn page(&self, from: Cursor, filter: &Arc<EventFilter>) -> Result<Page, FeedError> {
        self.0.begin();
        let mut published = self.0.source.watch();
        loop {
            let reached = published.wait_for(|index| *index >= from.index).await;
            let end = *reached.map_err(|_| FeedError::Ended)?;
            let found = self.0.tail.lock().find(from.index);
            match found {
                Lookup::Held(batches) => return Ok(self.collect(from, &batches, filter)),
                Lookup::Ahead => self.advance(from.index).await?,
                Lookup::Behind => return self.replay(from, end, filter).await,
            }
        }
    }

    /// What comes next at `from` if it is published, all of it done on the caller's thread: for readers without a
    /// runtime.
    pub fn page_now(&self, from: Cursor, filter: &EventFilter) -> Result<Option<Page>, FeedError> {
        let end = *self.0.source.watch().borrow();
        if from.index > end {
            return Ok(None);
        }
        loop {
            let found = self.0.tail.lock().find(from.index);
            match found {
                Lookup::Held(batches) => return Ok(Some(self.collect(from, &batches, filter))),
                Lookup::Ahead => self.0.advance()?,
                Lookup::Behind => {
                    return self.0.replays.page(&**self.0.source.journal(), from, end, filter).map(Some);
                }
            }
        }
    }

    fn collect(&self, from: Cursor, batches: &[Arc<RenderedBatch>], filter: &EventFilter) -> Page {
        let mut page = Page::at(from);
        for batch in batches {
            page.take(batch, filter);
            if page.is_full() || filter.ends_before(page.next) {
                break;
            }
        }
        if !page.events.is_empty() {
            let dropped = self.0.tail.lock().trim();
            drop(dropped);
        }
        page
    }

    async fn replay(&self, from: Cursor, end: Index, filter: &Arc<EventFilter>) -> Result<Page, FeedError> {
        let turn = self.0.turns.clone().acquire_owned().await.map_err(|_| FeedError::Ended)?;
        let (inner, filter) = (self.0.clone(), filter.clone());
        let page = blocking(move || {
            let _turn = turn;
            inner.replays.page(&**inner.source.journal(), from, end, &filter)
        });
        let page = page.await?;
        if page.next == from {
            return Err(FeedError::Failed(format!(
                "batch {} was published but is not in the log",
                from.index
            )));
        }
        Ok(page)
    }

    /// Extends the tail, unless somebody else has done it up to `wanted`.
    async fn advance(&self, wanted: Index) -> Result<(), FeedError> {
        let turn = self.0.advancing.clone().lock_owned().await;
        if self.0.tail.lock().head().index >= wanted {
            return Ok(());
        }
        let inner = self.0.clone();
        blocking(move || {
            let _turn = turn;
            inner.advance()
        })
        .await
    }

    /// What it holds in memory, for those who watch its bounds.
    pub fn held(&self) -> Held {
        let tail = self.0.tail.lock();
        let (parked, checkpoints) = self.0.replays.held();
        Held { batches: tail.batches(), bytes: tail.bytes(), parked, checkpoints }
    }
}

/// What a feed holds in memory.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub batches: usize,
    /// Of those batches, about.
    pub bytes: usize,
    /// States left by readers of old batches.
    pub parked: usize,
    pub checkpoints: usize,
}

impl Inner {
    /// Makes sure that a reader who begins at the head gets what comes next.
    fn begin(&self) {
        self.take_origin();
        let (now, horizon) = (self.source.state(), self.source.journal().horizon());
        let mut tail = self.tail.lock();
        if tail.head().index.next() < horizon {
            // Nobody has read for so long that the log leads on from here no more.
            tail.restart(State::clone(&now));
        }
    }

    /// Takes note of another state to begin with. What was folded of the one before may be wrong.
    fn take_origin(&self) {
        let now = self.source.origin();
        let mut origin = self.origin.lock();
        if Arc::ptr_eq(&origin, &now) {
            return;
        }
        self.replays.begin(&now, self.source.journal().horizon());
        self.tail.lock().restart(State::clone(&now));
        *origin = now;
    }

    /// Folds a stretch of the log onto the tail. One that lies too far back begins again at the published state.
    fn advance(&self) -> Result<(), FeedError> {
        let published = *self.source.watch().borrow();
        let mut state = self.tail.lock().head().clone();
        if published.0.saturating_sub(state.index.0) > TAIL_BATCHES as u64 {
            self.restart(&state);
            return Ok(());
        }
        let journal = self.source.journal();
        let batches = match journal.read(state.index.next(), ADVANCE_BYTES) {
            Err(ReadError::Compacted { .. }) => {
                self.restart(&state);
                return Ok(());
            }
            read => read?,
        };
        if batches.is_empty() {
            let missing = state.index.next();
            return Err(FeedError::Failed(format!("batch {missing} was published but is not in the log")));
        }
        let horizon = journal.horizon();
        for batch in batches.iter().filter(|batch| batch.index() <= published) {
            let rendered = match self.source.state_at(batch.index()) {
                Some(published) => RenderedBatch::folded(state, &published, batch)?,
                None => RenderedBatch::after(state, batch)?,
            };
            let rendered = Arc::new(rendered);
            state = rendered.state().clone();
            self.replays.offer(&state, horizon);
            let dropped = self.tail.lock().push(rendered);
            drop(dropped);
        }
        Ok(())
    }

    fn restart(&self, old: &State) {
        let horizon = self.source.journal().horizon();
        // Readers were here a moment ago, and may come back for what follows.
        self.replays.keep(old, horizon);
        let now = self.source.state();
        self.replays.keep(&now, horizon);
        self.tail.lock().restart(State::clone(&now));
    }
}

/// Folding and rendering are work for a processor: not on the threads that serve everybody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FeedError> + Send + 'static,
) -> Result<T, FeedError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(FeedError::Failed(panic.to_string())))
}
