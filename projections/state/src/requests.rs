use std::sync::Arc;

use base::{IdMap, Index};
use model::{EvalId, RequestId};

/// Most named requests that are remembered. A repetition that comes after so many others takes effect again.
pub const REQUESTS_KEPT: usize = 16_384;

/// Named requests of one generation: two are kept, so that forgetting is dropping a pointer.
const GENERATION: usize = REQUESTS_KEPT / 2;

/// What became of a request that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub index: Index,
    /// The first evaluation it created.
    pub eval: Option<EvalId>,
}

/// The table that makes a repeated command harmless.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    current: Generation,
    previous: Generation,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Generation {
    by_id: IdMap<RequestId>,
    outcomes: Arc<Vec<Remembered>>,
}

impl Requests {
    pub fn get(&self, id: RequestId) -> Option<Remembered> {
        self.current.get(id).or_else(|| self.previous.get(id))
    }

    pub fn remember(&mut self, id: RequestId, outcome: Remembered) {
        if self.current.outcomes.len() == GENERATION {
            self.previous = std::mem::take(&mut self.current);
        }
        let outcomes = Arc::make_mut(&mut self.current.outcomes);
        self.current.by_id.insert(id, outcomes.len() as u32);
        outcomes.push(outcome);
    }
}

impl Generation {
    fn get(&self, id: RequestId) -> Option<Remembered> {
        self.by_id.get(&id).map(|row| self.outcomes[row as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_are_remembered_and_the_oldest_forgotten() {
        let mut requests = Requests::default();
        let id = |n: u64| RequestId(u128::from(n).into());
        for n in 0..REQUESTS_KEPT as u64 + 1 {
            requests.remember(id(n), Remembered { index: Index(n), eval: None });
        }
        assert_eq!(requests.get(id(0)), None);
        assert_eq!(requests.get(id(GENERATION as u64)).map(|r| r.index), Some(Index(GENERATION as u64)));
        assert_eq!(
            requests.get(id(REQUESTS_KEPT as u64)).map(|r| r.index),
            Some(Index(REQUESTS_KEPT as u64))
        );
    }
}
