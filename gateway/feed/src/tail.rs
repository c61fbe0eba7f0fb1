use std::collections::VecDeque;
use std::sync::Arc;

use base::Index;
use state::State;

use super::rendered::RenderedBatch;

/// Most batches kept for readers at the head.
pub const TAIL_BATCHES: usize = 1_024;
/// Most bytes kept for them, about. The newest batch is kept whatever its size.
pub const TAIL_BYTES: usize = 64 << 20;
/// Batches given to a reader at once.
const BATCHES_AT_ONCE: usize = 64;

/// The newest batches, kept once for all readers. What falls out of it is folded again by those who need it.
#[derive(Default)]
pub(crate) struct Tail {
    /// The state the next batch follows on.
    head: State,
    /// Dense, ending at `head`.
    batches: VecDeque<Arc<RenderedBatch>>,
}

/// Batches that fell out: each may be the last to hold a part of an old state, and freeing that takes a while.
#[must_use = "freed once the tail is unlocked"]
pub(crate) struct Dropped(#[expect(dead_code, reason = "only to be dropped")] Vec<Arc<RenderedBatch>>);

/// Where a batch can be found.
pub(crate) enum Lookup {
    /// Here, with those that follow it.
    Held(Vec<Arc<RenderedBatch>>),
    /// Not folded yet.
    Ahead,
    /// No longer kept.
    Behind,
}

impl Tail {
    pub(crate) fn head(&self) -> &State {
        &self.head
    }

    /// The oldest batch that is kept, or the one that would be next.
    fn oldest(&self) -> Index {
        self.batches.front().map_or(self.head.index.next(), |batch| batch.index())
    }

    /// The oldest batch that can be read from here, with a log that begins at `horizon`.
    pub(crate) fn reaches(&self, horizon: Index) -> Option<Index> {
        // A batch that is kept needs no log, but those that follow the last one do.
        (self.head.index.next() >= horizon).then(|| self.oldest())
    }

    pub(crate) fn find(&self, index: Index) -> Lookup {
        if index > self.head.index {
            return Lookup::Ahead;
        }
        match index.0.checked_sub(self.oldest().0) {
            Some(at) => {
                Lookup::Held(self.batches.iter().skip(at as usize).take(BATCHES_AT_ONCE).cloned().collect())
            }
            None => Lookup::Behind,
        }
    }

    /// Gives back what fell out.
    ///
    /// # Panics
    /// If the batch is not the next one.
    pub(crate) fn push(&mut self, batch: Arc<RenderedBatch>) -> Dropped {
        assert_eq!(batch.index(), self.head.index.next(), "the tail is dense");
        self.head = batch.state().clone();
        self.batches.push_back(batch);
        self.trim()
    }

    /// Drops the oldest until what was rendered since fits again, and gives them back.
    pub(crate) fn trim(&mut self) -> Dropped {
        let mut total = 0;
        let fits = |batch: &&Arc<RenderedBatch>| {
            total += batch.bytes();
            total <= TAIL_BYTES
        };
        let kept = self.batches.iter().rev().take(TAIL_BATCHES).take_while(fits).count().max(1);
        let surplus = self.batches.len().saturating_sub(kept);
        Dropped(self.batches.drain(..surplus).collect())
    }

    /// Forgets everything and goes on after `state`.
    pub(crate) fn restart(&mut self, state: State) {
        (self.head, self.batches) = (state, VecDeque::new());
    }

    pub(crate) fn batches(&self) -> usize {
        self.batches.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes()).sum()
    }
}
