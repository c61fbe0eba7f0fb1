//! The log as this layer has it: one list, whoever leads, and what may be lost when that changes.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Index, Term};
use journal::{EncodedBatch, Freshness, Journal, KeepError, NotLeading, ProposeError, ReadError, TellIndex};
use model::Image;
use parking_lot::Mutex;

/// The committed batches, as every server may read them.
pub type Committed = Arc<Mutex<Vec<EncodedBatch>>>;

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposed {
    InFlight,
    /// The proposer does not know yet that it leads no more: nobody will ever see this batch.
    Lost,
}

/// One replicated list. What is committed stays; of what is in flight, a new leader keeps the first part.
#[derive(Default)]
pub struct ModelLog {
    pub committed: Committed,
    in_flight: VecDeque<EncodedBatch>,
    term: Term,
    leader: Option<usize>,
    /// A new leader may lead once it has learned of so many batches.
    opens_at: usize,
    /// Planted: appends of a deposed leader are taken.
    pub fenceless: bool,
}

impl ModelLog {
    pub fn term(&self) -> Term {
        self.term
    }

    pub fn leader(&self) -> Option<usize> {
        self.leader
    }

    pub fn len(&self) -> usize {
        self.committed.lock().len()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Who may lead in the current term, having learned of `learned` batches.
    pub fn may_lead(&self, server: usize, learned: usize) -> bool {
        self.leader == Some(server) && learned >= self.opens_at
    }

    /// # Errors
    /// As [`Journal::propose`].
    pub fn propose(
        &mut self,
        server: usize,
        term: Term,
        batch: EncodedBatch,
    ) -> Result<Proposed, ProposeError> {
        let leads = self.leader == Some(server) && self.term == term;
        let last = Index((self.len() + self.in_flight.len()) as u64);
        let slips_in = self.fenceless && batch.index() == last.next();
        if !leads && !slips_in {
            return Ok(Proposed::Lost);
        }
        if batch.index() != last.next() {
            return Err(ProposeError::OutOfOrder { last, got: batch.index() });
        }
        self.in_flight.push_back(batch);
        Ok(Proposed::InFlight)
    }

    /// Commits the first `count` batches in flight, and hands them over.
    pub fn commit(&mut self, count: usize) -> Vec<EncodedBatch> {
        let batches: Vec<EncodedBatch> = self.in_flight.drain(..count.min(self.in_flight.len())).collect();
        self.committed.lock().extend(batches.iter().cloned());
        batches
    }

    /// Nobody leads. What is in flight is decided by who leads next.
    pub fn depose(&mut self) {
        self.leader = None;
    }

    /// A new term, whose leader has the first `kept` batches in flight and no others.
    pub fn elect(&mut self, server: usize, kept: usize) {
        self.in_flight.truncate(kept);
        self.term = Term(self.term.0 + 1);
        self.leader = Some(server);
        self.opens_at = self.len() + self.in_flight.len();
    }
}

/// The log as the readers of one server see it. Proposals take another way.
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

    fn read_index(&self, _: Freshness, tell: TellIndex) {
        tell(Err(NotLeading));
    }
}
