//! Who may propose what, right now.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Index, Term};
use journal::{EncodedBatch, ProposeError};
use openraft::raft::ClientWriteResult;
use openraft::raft::responder::Responder;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::config::Types;

/// Proposals that are neither committed nor refused yet. Far more than the sequencer keeps in flight: this bounds
/// memory if it does not.
pub const IN_FLIGHT_MAX: usize = 1024;
/// The same in bytes: two of the largest batches.
pub const IN_FLIGHT_BYTES_MAX: usize = 2 * journal::frame::BATCH_BYTES_MAX;

/// Open while this server leads and everything before its term was handed over.
pub(crate) struct Gate {
    state: Mutex<State>,
    /// The last committed batch.
    committed: AtomicU64,
    /// The highest term in which a proposal was refused after it was taken.
    refused: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    term: Option<Term>,
    /// The last batch that was proposed, or committed before.
    last: Index,
    in_flight: usize,
    in_flight_bytes: usize,
}

/// Stands for one proposal inside openraft; what it reserved is given back when it is dropped.
pub(crate) struct Ticket {
    gate: Arc<Gate>,
    term: Term,
    bytes: usize,
}

impl Gate {
    pub fn new() -> Gate {
        let refused = watch::Sender::new(0);
        Gate { state: Mutex::default(), committed: AtomicU64::new(0), refused }
    }

    pub fn committed(&self) -> Index {
        Index(self.committed.load(Ordering::Acquire))
    }

    pub fn set_committed(&self, index: Index) {
        self.committed.store(index.0, Ordering::Release);
    }

    /// Terms with a refusal, as they come.
    pub fn refusals(&self) -> watch::Receiver<u64> {
        self.refused.subscribe()
    }

    pub fn open(&self, term: Term) {
        let mut state = self.state.lock();
        state.term = Some(term);
        state.last = self.committed();
    }

    pub fn close(&self) {
        self.state.lock().term = None;
    }

    /// Takes `batch` if it is the next one of the leading term, and `send` takes it too.
    pub fn pass(
        self: &Arc<Gate>,
        term: Term,
        batch: &EncodedBatch,
        send: impl FnOnce(Ticket) -> Result<(), ProposeError>,
    ) -> Result<(), ProposeError> {
        let bytes = batch.bytes().len();
        {
            let mut state = self.state.lock();
            if state.term != Some(term) {
                return Err(ProposeError::NotLeading { term });
            }
            if batch.index() != state.last.next() {
                return Err(ProposeError::OutOfOrder { last: state.last, got: batch.index() });
            }
            if state.in_flight >= IN_FLIGHT_MAX || state.in_flight_bytes + bytes > IN_FLIGHT_BYTES_MAX {
                return Err(ProposeError::Full);
            }
            state.in_flight += 1;
            state.in_flight_bytes += bytes;
        }
        send(Ticket { gate: self.clone(), term, bytes })?;
        let mut state = self.state.lock();
        // Unless the gate moved on meanwhile.
        if state.term == Some(term) {
            state.last = batch.index();
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.in_flight -= 1;
        state.in_flight_bytes -= self.bytes;
    }
}

impl<T: 'static> Responder<Types, T> for Ticket {
    fn on_complete(self, result: T) {
        // The library answers more than one kind of request through this type; only writes get a ticket.
        let write = (&result as &dyn Any).downcast_ref::<ClientWriteResult<Types>>();
        if let Some(Err(error)) = write {
            tracing::debug!(term = self.term.0, %error, "a proposal was refused");
            self.gate.refused.send_if_modified(|highest| {
                let newer = *highest < self.term.0;
                *highest = self.term.0.max(*highest);
                newer
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Time, Uuid};

    use super::*;

    #[test]
    fn what_is_in_flight_is_bounded_and_given_back() {
        let gate = Arc::new(Gate::new());
        gate.open(Term(1));
        let mut tickets = Vec::new();
        let mut take = |index: u64| {
            gate.pass(Term(1), &batch(index), |ticket| {
                tickets.push(ticket);
                Ok(())
            })
        };
        (1..=IN_FLIGHT_MAX as u64).for_each(|index| take(index).unwrap());
        let next = IN_FLIGHT_MAX as u64 + 1;
        assert_eq!(take(next), Err(ProposeError::Full));
        tickets.pop();
        gate.pass(Term(1), &batch(next), |_| Ok(())).unwrap();
    }

    #[test]
    fn what_was_not_sent_was_not_proposed() {
        let gate = Arc::new(Gate::new());
        gate.open(Term(1));
        assert_eq!(gate.pass(Term(1), &batch(1), |_| Err(ProposeError::Full)), Err(ProposeError::Full));
        gate.pass(Term(1), &batch(1), |_| Ok(())).unwrap();
    }

    #[test]
    fn a_refusal_is_heard_of() {
        let gate = Arc::new(Gate::new());
        let refusals = gate.refusals();
        gate.open(Term(4));
        let refuse = |ticket: Ticket| {
            let error = openraft::errors::ForwardToLeader::empty();
            let refused: ClientWriteResult<Types> =
                Err(openraft::errors::ClientWriteError::ForwardToLeader(error));
            ticket.on_complete(refused);
            Ok(())
        };
        gate.pass(Term(4), &batch(1), refuse).unwrap();
        assert!(refusals.has_changed().unwrap());
        assert_eq!(*refusals.borrow(), 4);
    }

    fn batch(index: u64) -> EncodedBatch {
        journal::encode(&model::Batch {
            index: Index(index),
            previous: Index(index - 1),
            digest: model::Digest::default(),
            time: Time(0),
            proposer: Uuid::NIL,
            commands: vec![],
            events: vec![],
        })
    }
}
