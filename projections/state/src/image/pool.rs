use std::collections::HashMap;
use std::sync::Mutex;

/// Things that rows of several chunks share, found again by what they are: memory is shared after a restart as it
/// was before.
pub(super) struct Pool<T>(Mutex<HashMap<u64, T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<T: Clone + PartialEq> Pool<T> {
    /// The thing that is like `new` and was here first. Two that differ and have one hash are not mixed up: the
    /// second is not shared.
    pub fn share(&self, hash: u64, new: T) -> T {
        let mut known = self.0.lock().expect("nobody panics while holding the pool");
        let first = known.entry(hash).or_insert_with(|| new.clone());
        if *first == new { first.clone() } else { new }
    }
}
