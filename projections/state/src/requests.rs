use base::{IdMap, Index};
use model::{EvalId, RequestId};

use crate::domain::Domain;
use crate::rows::Rows;

/// Most named requests that are remembered. A repetition that comes after so many others takes effect again: at 20,000
/// commands in a second they last 6 to 13 seconds, longer than servers repeat a command on their own.
pub const REQUESTS_KEPT: usize = 262_144;

/// Named requests of one generation: two are kept, so that forgetting is dropping a pointer.
const GENERATION: usize = REQUESTS_KEPT / 2;

/// The outcome of a named request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub index: Index,
    /// The first evaluation it created.
    pub eval: Option<EvalId>,
}

/// The table that makes a repeated command harmless.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    pub(crate) current: Generation,
    pub(crate) previous: Generation,
}

/// A request's id and its outcome.
pub(crate) type NamedRequest = (RequestId, Remembered);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Generation {
    by_id: IdMap<RequestId>,
    pub rows: Rows<NamedRequest>,
}

impl Requests {
    pub fn get(&self, id: RequestId) -> Option<Remembered> {
        self.current.get(id).or_else(|| self.previous.get(id))
    }

    pub fn remember(&mut self, id: RequestId, outcome: Remembered) {
        if self.current.rows.len() == GENERATION {
            self.previous = std::mem::take(&mut self.current);
        }
        let row = self.current.rows.push((id, outcome));
        self.current.by_id.insert(id, row);
    }

    pub fn digest(&self) -> u64 {
        combined(self.current.rows.sum(), self.previous.rows.sum())
    }

    pub fn recomputed_digest(&self) -> u64 {
        combined(self.current.rows.recomputed(hash), self.previous.rows.recomputed(hash))
    }

    pub fn settle_digest(&mut self) {
        self.current.rows.settle(hash);
        self.previous.rows.settle(hash);
    }
}

impl Generation {
    pub fn of(rows: Rows<NamedRequest>) -> Generation {
        let mut by_id = IdMap::default();
        (0..).zip(rows.iter()).for_each(|(row, (id, _))| by_id.insert(*id, row));
        Generation { by_id, rows }
    }

    fn get(&self, id: RequestId) -> Option<Remembered> {
        self.by_id.get(&id).map(|row| self.rows[row].1)
    }
}

/// The generation of a request is part of the digest: it decides when the request is forgotten.
fn combined(current: u64, previous: u64) -> u64 {
    current.wrapping_add(previous.rotate_left(32))
}

pub(crate) fn hash(row: u32, (id, outcome): &NamedRequest) -> u64 {
    let mut hash = Domain::Request.row(row);
    hash.id(*id);
    hash.pair(outcome.index.0, u64::from(outcome.eval.is_some()));
    hash.id(outcome.eval.unwrap_or_default());
    hash.finish()
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
