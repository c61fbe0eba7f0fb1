use std::collections::VecDeque;
use std::sync::Arc;

use base::Index;
use state::State;

use super::scene::Scene;

/// Most batches kept for readers at the head.
pub const TAIL_BATCHES: usize = 1_024;
/// Most bytes kept for them, about. The newest batch is kept whatever its size.
pub const TAIL_BYTES: usize = 64 << 20;
/// Batches handed to a reader at once.
const STRETCH: usize = 64;

/// The newest batches, kept once for all readers. What falls out of it is folded again by those who need it.
#[derive(Default)]
pub(super) struct Tail {
    /// The state the next batch follows on.
    head: State,
    /// Dense, ending at `head`.
    scenes: VecDeque<Arc<Scene>>,
}

/// Batches that fell out: each may be the last to hold a part of an old state, and freeing that takes a while.
#[must_use = "freed once the tail is unlocked"]
pub(super) struct Dropped(#[expect(dead_code, reason = "only to be dropped")] Vec<Arc<Scene>>);

/// Where a batch is to be had.
pub(super) enum Place {
    /// Here, with those that follow it.
    Kept(Vec<Arc<Scene>>),
    /// Not folded yet.
    Ahead,
    /// No longer kept.
    Behind,
}

impl Tail {
    pub fn head(&self) -> &State {
        &self.head
    }

    /// The oldest batch that is kept, or the one that would be next.
    fn oldest(&self) -> Index {
        self.scenes.front().map_or(self.head.index.next(), |scene| scene.index())
    }

    /// The oldest batch that can be told from here, with a log that begins at `horizon`.
    pub fn reaches(&self, horizon: Index) -> Option<Index> {
        // A batch that is kept needs no log, but those that follow the last one do.
        (self.head.index.next() >= horizon).then(|| self.oldest())
    }

    pub fn place(&self, index: Index) -> Place {
        if index > self.head.index {
            return Place::Ahead;
        }
        match index.0.checked_sub(self.oldest().0) {
            Some(at) => Place::Kept(self.scenes.iter().skip(at as usize).take(STRETCH).cloned().collect()),
            None => Place::Behind,
        }
    }

    /// Gives back what fell out.
    ///
    /// # Panics
    /// If the batch is not the next one.
    pub fn push(&mut self, scene: Arc<Scene>) -> Dropped {
        assert_eq!(scene.index(), self.head.index.next(), "the tail is dense");
        self.head = scene.state().clone();
        self.scenes.push_back(scene);
        self.trim()
    }

    /// Drops the oldest until what was rendered since fits again, and gives them back.
    pub fn trim(&mut self) -> Dropped {
        let mut total = 0;
        let fits = |scene: &&Arc<Scene>| {
            total += scene.bytes();
            total <= TAIL_BYTES
        };
        let kept = self.scenes.iter().rev().take(TAIL_BATCHES).take_while(fits).count().max(1);
        let surplus = self.scenes.len().saturating_sub(kept);
        Dropped(self.scenes.drain(..surplus).collect())
    }

    /// Forgets everything and goes on after `state`.
    pub fn restart(&mut self, state: State) {
        (self.head, self.scenes) = (state, VecDeque::new());
    }

    #[cfg(test)]
    pub fn batches(&self) -> usize {
        self.scenes.len()
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.scenes.iter().map(|scene| scene.bytes()).sum()
    }
}
