//! What the leader's loops and readers see of the log. No runtime and no consensus shows through.

use base::{Index, Term};
use model::{ChunkId, Image};

use crate::frame::EncodedBatch;
use crate::store::KeptSpan;

/// Receives what the log decides, in order.
///
/// Called from the log's own thread, one call at a time. A call that blocks holds up every commit: hand over
/// and return.
pub trait Sink: Send + 'static {
    /// A batch that can no longer be lost. Each comes once, in index order, also those found at the start.
    fn committed(&mut self, batch: EncodedBatch);

    /// The state after batch `image.index`, in place of the batches up to it: what a restart begins from, or what a
    /// server that was too far behind was sent. Each chunk has its bytes, and they were verified.
    fn restored(&mut self, image: Image);

    /// This server may propose under `term`. Everything decided before was passed to `committed`.
    fn leading(&mut self, term: Term);

    /// This server may not propose any more; proposals in flight have an unknown fate.
    /// `leader` is who leads now, if that is known.
    fn following(&mut self, leader: Option<u64>);

    /// The log has failed; no further call follows. After an orderly shutdown there is no call: the sink is dropped.
    fn halted(&mut self, why: String);
}

/// The replicated log. Proposals come from one thread, reads from any.
pub trait Journal: Send + Sync + 'static {
    /// Asks that `batch` becomes the next one. Returns at once: its commit arrives at the sink, and if it is lost,
    /// `following` does. Proposals of one term commit in the order they were made, without gaps.
    ///
    /// # Errors
    /// The batch was not written and never will be.
    fn propose(&self, term: Term, batch: EncodedBatch) -> Result<(), ProposeError>;

    /// Committed batches from `from` on, in order: as many as fit `max_bytes`, but always one if there is one.
    /// Empty when `from` lies beyond the end. Index 0 means the first.
    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError>;

    /// The index of the last committed batch; 0 before the first.
    fn committed(&self) -> Index;

    /// The oldest index that can be read.
    fn horizon(&self) -> Index;

    /// What is left of batches from `from` to `until` that lie below the horizon, in order: parts of batches, which can be read
    /// and not folded, see [`EncodedBatch::part`]. As many as fit `max_bytes`, but always one if there is one; none where
    /// nothing is kept.
    ///
    /// # Errors
    /// They cannot be read.
    fn kept(&self, _from: Index, _until: Index, _max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        Ok(Vec::new())
    }

    /// Of which parts of the log below the horizon something is left, oldest first.
    fn kept_spans(&self) -> Vec<KeptSpan> {
        Vec::new()
    }

    /// Keeps the state at one committed index beside the log, in place of the image kept before. Returns when that
    /// is safe: call it from a thread that may block.
    ///
    /// # Errors
    /// The image kept before stays the one that counts.
    fn keep(&self, image: Image) -> Result<(), KeepError>;

    /// Bytes of committed batches that the image kept last does not hold: what a restart has to fold.
    fn unkept_bytes(&self) -> u64;

    /// Tells the index a reader must have seen to miss nothing that was acknowledged before this call. Only who
    /// leads knows; a follower has to ask the leader.
    fn read_index(&self, freshness: Freshness, callback: IndexCallback);
}

/// Takes the answer to [`Journal::read_index`], on any thread. Must not block.
pub type IndexCallback = Box<dyn FnOnce(Result<Index, NotLeading>) + Send>;

/// How sure a leader must be that it still is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// A majority confirmed it so recently that none can have elected another: no round trip, but it trusts that clocks
    /// run at about the same speed.
    Lease,
    /// A majority confirms it after the question was asked.
    Confirmed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this server does not lead, or cannot be sure that it does")]
pub struct NotLeading;

/// Why an image is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    #[error("an image of index {kept} is kept already: {index} is not newer")]
    NotNewer { index: Index, kept: Index },
    #[error("index {0} is not committed")]
    NotCommitted(Index),
    /// A chunk came without its bytes, and the image kept before does not have it.
    #[error("{0:?} is not in the image kept before")]
    UnknownChunk(ChunkId),
    #[error("the disk of the log is full: the image is not kept")]
    DiskFull,
    #[error("the image is not kept: {0}")]
    Failed(String),
}

/// Why a batch was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    #[error("this server does not lead in term {}", term.0)]
    NotLeading { term: Term },
    /// As many proposals as allowed are in flight: try again after the next commit.
    #[error("the log has as many proposals in flight as it takes")]
    Full,
    #[error("a batch of {bytes} bytes is larger than the {max} that the log takes")]
    TooLarge { bytes: usize, max: usize },
    /// Proposals of one term are dense: this one does not follow the last one.
    #[error("batch {got} does not follow batch {last}")]
    OutOfOrder { last: Index, got: Index },
    #[error("the disk of the log is full: new writes are refused until there is space")]
    DiskFull,
    #[error("the log has stopped: {0}")]
    Halted(String),
}

/// Why batches cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("index {from} is no longer kept: the oldest is {oldest}")]
    Compacted { from: Index, oldest: Index },
    #[error("batch {index} cannot be read: {why}")]
    Failed { index: Index, why: String },
}

/// The first batch of `from..until` that `reaches` what is looked for; `until` when none does. After one that does, all do: half
/// of what is left is dropped with each batch that is read, 64 at most.
///
/// # Errors
/// The log cannot be read there.
pub fn first_batch(
    journal: &dyn Journal,
    from: Index,
    until: Index,
    reaches: impl Fn(&EncodedBatch) -> bool,
) -> Result<Index, ReadError> {
    let (mut first, mut after) = (from, until);
    while first < after {
        let middle = Index(first.0 + (after.0 - first.0) / 2);
        let batches = journal.read(middle, 1)?;
        let missing = || ReadError::Failed { index: middle, why: "it is not in the log".to_string() };
        if reaches(batches.first().ok_or_else(missing)?) {
            after = middle;
        } else {
            first = middle.next();
        }
    }
    Ok(first)
}

/// Takes from `batches` as many as fit `max_bytes`, but always one if there is one.
pub(crate) fn fitting(batches: impl Iterator<Item = EncodedBatch>, max_bytes: usize) -> Vec<EncodedBatch> {
    let mut total = 0;
    let fits = |batch: &EncodedBatch| {
        let first = total == 0;
        total += batch.bytes().len();
        first || total <= max_bytes
    };
    batches.take_while(fits).collect()
}
