//! Past states that were read lately, within a bound of memory.

use std::mem;
use std::sync::Arc;

use base::Index;
use state::State;

/// States that are held, whatever their size.
pub const OPENED_MAX: usize = 64;

/// Memory that a byte of an image becomes as rows, about.
const BYTES_PER_IMAGE_BYTE: usize = 3;
/// Memory that folding a byte of the log takes, about: the pages that it touches are copied.
const BYTES_PER_LOG_BYTE: usize = 32;

/// What a state was made of, as far as memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Tells the images that were opened apart. States folded from one share its pages.
    family: u64,
    /// Of the image, about.
    shared: usize,
}

pub(crate) struct Opened {
    /// The one used last at the end.
    states: Vec<Entry>,
    /// Held only until nobody reads them any more: a large state takes long to drop, and no reader shall have to do that.
    leaving: Vec<Arc<State>>,
    families: u64,
    bytes_max: usize,
}

struct Entry {
    state: Arc<State>,
    origin: Origin,
    own: usize,
}

impl Opened {
    pub fn new(bytes_max: usize) -> Opened {
        Opened { states: Vec::new(), leaving: Vec::new(), families: 0, bytes_max }
    }

    /// The newest state at `index` or before, from which a state at `index` shall be made.
    pub fn nearest(&mut self, index: Index) -> Option<(Arc<State>, Origin)> {
        let before = self.states.iter().enumerate().filter(|(_, entry)| entry.state.index <= index);
        let (at, _) = before.max_by_key(|(_, entry)| entry.state.index)?;
        let entry = self.states.remove(at);
        let found = (entry.state.clone(), entry.origin);
        self.states.push(entry);
        Some(found)
    }

    /// A state is made of an image of so many bytes.
    pub fn begin(&mut self, image_bytes: usize) -> Origin {
        self.families += 1;
        Origin { family: self.families, shared: image_bytes * BYTES_PER_IMAGE_BYTE }
    }

    /// Holds a state that lies so many bytes of log behind what it was made of. Those unused for longest go until all fit:
    /// this one too if it is larger than all may be.
    pub fn insert(&mut self, state: Arc<State>, origin: Origin, log_bytes: usize) {
        let same = self.states.extract_if(.., |entry| entry.state.index == state.index);
        self.leaving.extend(same.map(|entry| entry.state));
        let mut own = log_bytes * BYTES_PER_LOG_BYTE;
        if origin.shared > 0 {
            // At worst nothing of the image is shared any more.
            own = own.min(origin.shared + log_bytes * BYTES_PER_IMAGE_BYTE);
        }
        self.states.push(Entry { state, origin, own });
        while self.states.len() > OPENED_MAX || self.bytes() > self.bytes_max {
            self.leaving.push(self.states.remove(0).state);
        }
    }

    pub fn clear(&mut self) {
        self.leaving.extend(self.states.drain(..).map(|entry| entry.state));
    }

    /// States that are not held any more and that nobody reads, to be dropped where that is in nobody's way. Those that remain are
    /// at most as many as are being read.
    pub fn unread(&mut self) -> Vec<Arc<State>> {
        let left = mem::take(&mut self.leaving).into_iter();
        let (unread, read) = left.partition(|state| Arc::strong_count(state) == 1);
        self.leaving = read;
        unread
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// What the states take, about.
    pub fn bytes(&self) -> usize {
        let mut families: Vec<Origin> = self.states.iter().map(|entry| entry.origin).collect();
        families.sort_unstable_by_key(|origin| origin.family);
        families.dedup_by_key(|origin| origin.family);
        let shared: usize = families.iter().map(|origin| origin.shared).sum();
        shared + self.states.iter().map(|entry| entry.own).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(index: u64) -> Arc<State> {
        let mut state = State::default();
        state.index = Index(index);
        Arc::new(state)
    }

    fn held(opened: &Opened) -> Vec<u64> {
        opened.states.iter().map(|entry| entry.state.index.0).collect()
    }

    #[test]
    fn what_was_unused_for_longest_makes_room() {
        let mut opened = Opened::new(1_600);
        let origin = opened.begin(100);
        for index in [10, 20, 30] {
            opened.insert(state(index), origin, 10);
        }
        assert_eq!((held(&opened), opened.bytes()), (vec![10, 20, 30], 300 + 3 * 320));
        assert_eq!(opened.nearest(Index(19)).unwrap().0.index, Index(10));
        // That much log would be more than all that was shared.
        opened.insert(state(40), origin, 20);
        assert_eq!((held(&opened), opened.bytes()), (vec![30, 10, 40], 300 + 2 * 320 + 360));
        assert!(opened.nearest(Index(9)).is_none());
    }

    #[test]
    fn what_an_image_takes_counts_until_its_last_state_is_gone() {
        let mut opened = Opened::new(4_000);
        let first = opened.begin(1_000);
        opened.insert(state(1), first, 1);
        opened.insert(state(2), first, 1);
        let second = opened.begin(1_000);
        opened.insert(state(3), second, 1);
        assert_eq!(held(&opened), [3]);
    }

    #[test]
    fn what_left_stays_until_nobody_reads_it() {
        let mut opened = Opened::new(1_000);
        let origin = opened.begin(100);
        let read = state(1);
        opened.insert(read.clone(), origin, 0);
        opened.insert(state(2), origin, 0);
        opened.clear();
        let indexes = |states: Vec<Arc<State>>| states.iter().map(|state| state.index.0).collect::<Vec<_>>();
        assert_eq!((opened.len(), indexes(opened.unread())), (0, vec![2]));
        drop(read);
        assert_eq!(indexes(opened.unread()), [1]);
        assert!(opened.unread().is_empty());
    }

    #[test]
    fn a_state_larger_than_all_may_be_is_not_held() {
        let mut opened = Opened::new(1_000);
        let origin = opened.begin(1_000);
        opened.insert(state(1), origin, 0);
        assert_eq!((opened.len(), opened.bytes()), (0, 0));
    }
}
