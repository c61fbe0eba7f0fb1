//! A log without a disk, for tests, benches and forks.

use std::collections::{BTreeMap, VecDeque};

use base::{Index, Term};
use bytes::Bytes;
use model::{ChunkId, Image};
use parking_lot::Mutex;

use crate::frame::{BATCH_BYTES_MAX, EncodedBatch};
use crate::port::{
    Freshness, IndexCallback, Journal, KeepError, NotLeading, ProposeError, ReadError, Sink, fitting,
};

/// Proposals held back at once, as a real log bounds what is in flight.
pub const HELD_MAX: usize = 1024;

/// A [`Journal`] of one server in memory. A proposal is committed before [`Journal::propose`] returns, unless
/// commits are held back with [`MemoryJournal::hold`].
///
/// The sink may call back into the journal.
pub struct MemoryJournal {
    inner: Mutex<Inner>,
}

struct Inner {
    committed: Vec<EncodedBatch>,
    horizon: Index,
    term: Term,
    leading: bool,
    holding: bool,
    held: VecDeque<EncodedBatch>,
    news: VecDeque<News>,
    /// The image kept last, with the bytes of each chunk.
    kept: Option<Image>,
    /// Absent while a thread is calling it; that thread also delivers what arrives meanwhile.
    sink: Option<Box<dyn Sink>>,
}

enum News {
    Committed(EncodedBatch),
    Leading(Term),
    Following,
}

impl MemoryJournal {
    /// An empty log that leads in term 1 at once.
    pub fn new(sink: impl Sink) -> MemoryJournal {
        MemoryJournal::with(Vec::new(), sink)
    }

    /// A log that begins with `batches`: passes them to `sink`, then leads in term 1, as after a restart.
    ///
    /// # Panics
    /// If the batches are not the indexes 1, 2, 3 and so on.
    pub fn with(batches: Vec<EncodedBatch>, sink: impl Sink) -> MemoryJournal {
        let dense = batches.iter().zip(1..).all(|(batch, index)| batch.index() == Index(index));
        assert!(dense, "a log holds every index from 1 on");
        let mut news: VecDeque<News> = batches.iter().cloned().map(News::Committed).collect();
        news.push_back(News::Leading(Term(1)));
        let journal = MemoryJournal {
            inner: Mutex::new(Inner {
                committed: batches,
                horizon: Index(1),
                term: Term(1),
                leading: true,
                holding: false,
                held: VecDeque::new(),
                news,
                kept: None,
                sink: Some(Box::new(sink)),
            }),
        };
        journal.deliver();
        journal
    }

    /// From now on proposals stay in flight.
    pub fn hold(&self) {
        self.inner.lock().holding = true;
    }

    /// Commits what is held back, and from now on each proposal at once.
    pub fn release(&self) {
        self.inner.lock().release();
        self.deliver();
    }

    /// Commits the first `count` proposals held back and goes on holding.
    pub fn release_first(&self, count: usize) {
        let mut inner = self.inner.lock();
        for _ in 0..count {
            inner.commit_oldest();
        }
        drop(inner);
        self.deliver();
    }

    /// Leadership goes away. Proposals held back are lost, or stay to be committed by
    /// [`MemoryJournal::release`]: the proposer cannot know.
    pub fn depose(&self, lose_held: bool) {
        let mut inner = self.inner.lock();
        inner.leading = false;
        if lose_held {
            inner.held.clear();
        }
        inner.news.push_back(News::Following);
        drop(inner);
        self.deliver();
    }

    /// Leads again, in the next term. What was still held back is committed first, as a new leader does.
    pub fn lead(&self) {
        let mut inner = self.inner.lock();
        inner.release();
        inner.term = Term(inner.term.0 + 1);
        inner.leading = true;
        let term = inner.term;
        inner.news.push_back(News::Leading(term));
        drop(inner);
        self.deliver();
    }

    /// Batches before `index` can no longer be read.
    pub fn forget_before(&self, index: Index) {
        self.inner.lock().horizon = index;
    }

    /// Everything that is committed, for a restart with [`MemoryJournal::with`].
    pub fn batches(&self) -> Vec<EncodedBatch> {
        self.inner.lock().committed.clone()
    }

    /// The image kept last.
    pub fn kept(&self) -> Option<Image> {
        self.inner.lock().kept.clone()
    }

    fn deliver(&self) {
        let mut inner = self.inner.lock();
        let Some(mut sink) = inner.sink.take() else { return };
        while let Some(news) = inner.news.pop_front() {
            drop(inner);
            match news {
                News::Committed(batch) => sink.committed(batch),
                News::Leading(term) => sink.leading(term),
                News::Following => sink.following(None),
            }
            inner = self.inner.lock();
        }
        inner.sink = Some(sink);
    }
}

impl Inner {
    fn last(&self) -> Index {
        Index((self.committed.len() + self.held.len()) as u64)
    }

    fn release(&mut self) {
        self.holding = false;
        while self.commit_oldest() {}
    }

    fn commit_oldest(&mut self) -> bool {
        let Some(batch) = self.held.pop_front() else { return false };
        self.committed.push(batch.clone());
        self.news.push_back(News::Committed(batch));
        true
    }
}

impl Journal for MemoryJournal {
    fn propose(&self, term: Term, batch: EncodedBatch) -> Result<(), ProposeError> {
        let mut inner = self.inner.lock();
        let last = inner.last();
        if !inner.leading || term != inner.term {
            return Err(ProposeError::NotLeading { term });
        }
        if batch.bytes().len() > BATCH_BYTES_MAX {
            return Err(ProposeError::TooLarge { bytes: batch.bytes().len(), max: BATCH_BYTES_MAX });
        }
        if batch.index() != last.next() {
            return Err(ProposeError::OutOfOrder { last, got: batch.index() });
        }
        if inner.held.len() >= HELD_MAX {
            return Err(ProposeError::Full);
        }
        inner.held.push_back(batch);
        if !inner.holding {
            inner.commit_oldest();
        }
        drop(inner);
        self.deliver();
        Ok(())
    }

    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let inner = self.inner.lock();
        let from = from.max(Index(1));
        if from < inner.horizon {
            return Err(ReadError::Compacted { from, oldest: inner.horizon });
        }
        let first = (from.0 - 1).min(inner.committed.len() as u64) as usize;
        Ok(fitting(inner.committed[first..].iter().cloned(), max_bytes))
    }

    fn committed(&self) -> Index {
        Index(self.inner.lock().committed.len() as u64)
    }

    fn horizon(&self) -> Index {
        self.inner.lock().horizon
    }

    fn keep(&self, mut image: Image) -> Result<(), KeepError> {
        let mut inner = self.inner.lock();
        if image.index.0 > inner.committed.len() as u64 {
            return Err(KeepError::NotCommitted(image.index));
        }
        let before = inner.kept.as_ref();
        if let Some(kept) = before.map(|kept| kept.index).filter(|kept| image.index <= *kept) {
            return Err(KeepError::NotNewer { index: image.index, kept });
        }
        let known = before.iter().flat_map(|kept| &kept.chunks);
        let known: BTreeMap<ChunkId, Bytes> =
            known.filter_map(|chunk| Some((chunk.id, chunk.bytes.clone()?))).collect();
        for chunk in &mut image.chunks {
            if chunk.bytes.is_none() {
                chunk.bytes = Some(known.get(&chunk.id).ok_or(KeepError::UnknownChunk(chunk.id))?.clone());
            }
        }
        inner.kept = Some(image);
        Ok(())
    }

    fn unkept_bytes(&self) -> u64 {
        let inner = self.inner.lock();
        let held = inner.kept.as_ref().map_or(0, |image| image.index.0 as usize);
        inner.committed[held..].iter().map(|batch| batch.bytes().len() as u64).sum()
    }

    fn read_index(&self, _: Freshness, callback: IndexCallback) {
        let inner = self.inner.lock();
        let index = Index(inner.committed.len() as u64);
        let answer = if inner.leading { Ok(index) } else { Err(NotLeading) };
        drop(inner);
        callback(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use base::{Time, Uuid};
    use model::{Batch, Chunk};

    use super::*;

    #[test]
    fn a_proposal_is_committed_at_once_and_can_be_read() {
        let (journal, heard) = journal();
        journal.propose(Term(1), batch(1)).unwrap();
        journal.propose(Term(1), batch(2)).unwrap();
        assert_eq!(said(&heard), ["leading 1", "committed 1", "committed 2"]);
        assert_eq!(journal.read(Index(0), usize::MAX).unwrap(), [batch(1), batch(2)]);
        assert_eq!(journal.read(Index(2), 0).unwrap(), [batch(2)]);
        assert_eq!(journal.read(Index(3), usize::MAX).unwrap(), []);
    }

    #[test]
    fn held_proposals_are_lost_with_leadership() {
        let (journal, heard) = journal();
        journal.hold();
        journal.propose(Term(1), batch(1)).unwrap();
        journal.propose(Term(1), batch(2)).unwrap();
        journal.release_first(1);
        journal.depose(true);
        assert_eq!(journal.propose(Term(1), batch(2)), Err(ProposeError::NotLeading { term: Term(1) }));
        journal.lead();
        assert_eq!(journal.propose(Term(1), batch(2)), Err(ProposeError::NotLeading { term: Term(1) }));
        journal.propose(Term(2), batch(2)).unwrap();
        assert_eq!(said(&heard), ["leading 1", "committed 1", "following", "leading 2", "committed 2"]);
    }

    #[test]
    fn a_gap_is_refused() {
        let (journal, _heard) = journal();
        let gap = ProposeError::OutOfOrder { last: Index(0), got: Index(2) };
        assert_eq!(journal.propose(Term(1), batch(2)), Err(gap));
    }

    #[test]
    fn no_more_than_the_bound_is_held() {
        let (journal, _heard) = journal();
        journal.hold();
        (1..=HELD_MAX as u64).for_each(|index| journal.propose(Term(1), batch(index)).unwrap());
        assert_eq!(journal.propose(Term(1), batch(HELD_MAX as u64 + 1)), Err(ProposeError::Full));
    }

    #[test]
    fn what_lies_below_the_horizon_is_refused() {
        let (journal, _heard) = journal();
        (1..=3).for_each(|index| journal.propose(Term(1), batch(index)).unwrap());
        journal.forget_before(Index(3));
        let compacted = ReadError::Compacted { from: Index(1), oldest: Index(3) };
        assert_eq!(journal.read(Index(0), usize::MAX), Err(compacted));
        assert_eq!(journal.read(Index(3), usize::MAX).unwrap(), [batch(3)]);
    }

    #[test]
    fn a_restart_hands_everything_over_again() {
        let (journal, _heard) = journal();
        journal.propose(Term(1), batch(1)).unwrap();
        let (sink, heard) = Heard::new();
        let _again = MemoryJournal::with(journal.batches(), sink);
        assert_eq!(said(&heard), ["committed 1", "leading 1"]);
    }

    #[test]
    fn an_image_stands_on_the_one_before() {
        let (journal, _heard) = journal();
        (1..=2).for_each(|index| journal.propose(Term(1), batch(index)).unwrap());
        let chunk = Chunk::new(Bytes::from_static(b"rows"));
        let unchanged = Chunk { id: chunk.id, bytes: None };
        let image = |index, chunk: &Chunk| Image { index: Index(index), chunks: vec![chunk.clone()] };
        assert_eq!(journal.keep(image(1, &unchanged)), Err(KeepError::UnknownChunk(chunk.id)));
        journal.keep(image(1, &chunk)).unwrap();
        assert_eq!(journal.unkept_bytes(), batch(2).bytes().len() as u64);
        journal.keep(image(2, &unchanged)).unwrap();
        assert_eq!(journal.kept(), Some(image(2, &chunk)));
        let stale = KeepError::NotNewer { index: Index(2), kept: Index(2) };
        assert_eq!(journal.keep(image(2, &chunk)), Err(stale));
        assert_eq!(journal.keep(image(3, &chunk)), Err(KeepError::NotCommitted(Index(3))));
    }

    struct Heard(mpsc::Sender<String>);

    impl Heard {
        fn new() -> (Heard, mpsc::Receiver<String>) {
            let (tx, rx) = mpsc::channel();
            (Heard(tx), rx)
        }
    }

    impl Sink for Heard {
        fn committed(&mut self, batch: EncodedBatch) {
            self.0.send(format!("committed {}", batch.index())).unwrap();
        }

        fn restored(&mut self, image: Image) {
            self.0.send(format!("restored {}", image.index)).unwrap();
        }

        fn leading(&mut self, term: Term) {
            self.0.send(format!("leading {}", term.0)).unwrap();
        }

        fn following(&mut self, _leader: Option<u64>) {
            self.0.send("following".to_string()).unwrap();
        }

        fn halted(&mut self, why: String) {
            self.0.send(why).unwrap();
        }
    }

    fn journal() -> (MemoryJournal, mpsc::Receiver<String>) {
        let (sink, heard) = Heard::new();
        (MemoryJournal::new(sink), heard)
    }

    fn said(heard: &mpsc::Receiver<String>) -> Vec<String> {
        heard.try_iter().collect()
    }

    fn batch(index: u64) -> EncodedBatch {
        crate::encode(&Batch {
            epoch: model::EPOCH,
            index: Index(index),
            previous: Index(index - 1),
            digest: model::Digest::default(),
            time: Time(1),
            proposer: Uuid::NIL,
            commands: vec![],
            events: vec![],
        })
    }
}
