//! The log as this layer has it: one list, whoever leads, and what may be lost when that changes.

use std::collections::VecDeque;

use base::{Index, Term};
use journal::{EncodedBatch, ProposeError};

use crate::shown::Committed;

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

    pub fn leads(&self, server: usize) -> bool {
        self.leader == Some(server)
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

    /// Commits the first `count` batches in flight, and returns them.
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
