//! Who may propose what, right now.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Index, Term};
use journal::{EncodedBatch, ProposeError};
use openraft::raft::ClientWriteResult;
use openraft::raft::responder::Responder;
use openraft::rt::{Watch, WatchSender};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config::Types;
use crate::runtime::{Changes, Receiver, Sender};

/// Proposals that are neither committed nor refused yet. Far more than the sequencer keeps in flight: this bounds
/// memory if it does not.
pub const IN_FLIGHT_MAX: usize = 1024;
/// The same in bytes: two of the largest batches.
pub const IN_FLIGHT_BYTES_MAX: usize = 2 * journal::frame::BATCH_BYTES_MAX;

/// Accepts proposals while this server leads and the sink has everything from before its term.
///
/// A term *breaks* when one of its proposals is refused after it was taken, or when this leader was without contact to a
/// majority for too long: what was decided next stands on what may never be. It is *mended*, in the same term, when
/// nothing of it is in flight any more and a majority has confirmed it.
pub(crate) struct Proposals {
    state: Mutex<State>,
    /// The last committed batch.
    committed: AtomicU64,
    breaks: Sender<Breaks>,
    /// Nothing is in flight.
    idle: Notify,
}

/// How often a term broke, and which one is not mended yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaks {
    pub count: u64,
    pub term: Option<Term>,
}

#[derive(Default)]
struct State {
    term: Option<Term>,
    /// Leadership is being transferred: nothing is taken until that has happened or failed.
    held: bool,
    /// The last batch that was proposed, or committed before.
    last: Index,
    in_flight: usize,
    in_flight_bytes: usize,
}

/// Stands for one proposal inside openraft; what it reserved is given back when it is dropped.
pub(crate) struct Ticket {
    proposals: Arc<Proposals>,
    term: Term,
    bytes: usize,
}

impl Proposals {
    pub fn new() -> Proposals {
        let ((breaks, _), idle) = (Changes::channel(Breaks::default()), Notify::new());
        Proposals { state: Mutex::default(), committed: AtomicU64::new(0), breaks, idle }
    }

    pub fn committed(&self) -> Index {
        Index(self.committed.load(Ordering::Acquire))
    }

    /// What is sent again after an image was committed before.
    pub fn set_committed(&self, index: Index) {
        self.committed.fetch_max(index.0, Ordering::Release);
    }

    /// As terms break and are mended.
    pub fn breaks(&self) -> Receiver<Breaks> {
        self.breaks.subscribe()
    }

    /// The term this server may propose under.
    pub fn term(&self) -> Option<Term> {
        self.state.lock().term
    }

    /// Opens for `term`, unless it broke again since `breaks` was their count.
    pub fn open(&self, term: Term, breaks: u64) -> bool {
        let mut state = self.state.lock();
        if self.breaks.borrow_watched().count != breaks {
            return false;
        }
        state.term = Some(term);
        state.held = false;
        state.last = self.committed();
        true
    }

    pub fn close(&self) {
        self.state.lock().term = None;
    }

    /// `term` breaks: from now on nothing of it is taken. That an older one breaks is of no interest.
    pub fn fail(&self, term: Term) {
        let mut state = self.state.lock();
        if state.term == Some(term) {
            state.term = None;
        }
        // Under the lock, so that proposals are not opened for a term that has just broken.
        self.breaks.send_if_modified(|breaks| {
            let newer = breaks.term < Some(term);
            if newer {
                *breaks = Breaks { count: breaks.count + 1, term: Some(term) };
            }
            newer
        });
    }

    /// `term` is whole again, or over.
    pub fn mend(&self, term: Term) {
        self.breaks.send_if_modified(|breaks| {
            let mended = breaks.term == Some(term);
            if mended {
                breaks.term = None;
            }
            mended
        });
    }

    /// Takes nothing more, but keeps what is in flight. None when this server does not lead, or is held already.
    pub fn hold(&self) -> Option<Term> {
        let mut state = self.state.lock();
        let term = state.term.filter(|_| !state.held)?;
        state.held = true;
        Some(term)
    }

    /// Returns when nothing is in flight.
    pub async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.state.lock().in_flight == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Takes `batch` if it is the next one of the leading term, and `send` takes it too.
    pub fn pass(
        self: &Arc<Proposals>,
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
            let full =
                state.in_flight >= IN_FLIGHT_MAX || state.in_flight_bytes + bytes > IN_FLIGHT_BYTES_MAX;
            if full || state.held {
                return Err(ProposeError::Full);
            }
            state.in_flight += 1;
            state.in_flight_bytes += bytes;
        }
        send(Ticket { proposals: self.clone(), term, bytes })?;
        let mut state = self.state.lock();
        // Unless another term began meanwhile.
        if state.term == Some(term) {
            state.last = batch.index();
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.proposals.state.lock();
        state.in_flight -= 1;
        state.in_flight_bytes -= self.bytes;
        if state.in_flight == 0 {
            self.proposals.idle.notify_waiters();
        }
    }
}

impl<T: 'static> Responder<Types, T> for Ticket {
    fn on_complete(self, result: T) {
        // The library answers more than one kind of request through this type; only writes get a ticket.
        let write = (&result as &dyn Any).downcast_ref::<ClientWriteResult<Types>>();
        if let Some(Err(error)) = write {
            tracing::debug!(term = self.term.0, %error, "a proposal was refused");
            self.proposals.fail(self.term);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Time, Uuid};
    use futures_util::FutureExt;
    use openraft::rt::WatchReceiver;

    use super::*;

    #[test]
    fn what_is_in_flight_is_bounded_and_given_back() {
        let proposals = Arc::new(Proposals::new());
        assert!(proposals.open(Term(1), 0));
        let mut tickets = Vec::new();
        let mut take = |index: u64| {
            proposals.pass(Term(1), &batch(index), |ticket| {
                tickets.push(ticket);
                Ok(())
            })
        };
        (1..=IN_FLIGHT_MAX as u64).for_each(|index| take(index).unwrap());
        let next = IN_FLIGHT_MAX as u64 + 1;
        assert_eq!(take(next), Err(ProposeError::Full));
        tickets.pop();
        proposals.pass(Term(1), &batch(next), |_| Ok(())).unwrap();
    }

    #[test]
    fn what_was_not_sent_was_not_proposed() {
        let proposals = Arc::new(Proposals::new());
        assert!(proposals.open(Term(1), 0));
        assert_eq!(proposals.pass(Term(1), &batch(1), |_| Err(ProposeError::Full)), Err(ProposeError::Full));
        proposals.pass(Term(1), &batch(1), |_| Ok(())).unwrap();
    }

    #[test]
    fn a_refusal_closes_the_gate_at_once_and_is_heard_of() {
        let proposals = Arc::new(Proposals::new());
        let breaks = proposals.breaks();
        assert!(proposals.open(Term(4), 0));
        let mut later = None;
        proposals
            .pass(Term(4), &batch(1), |ticket| {
                later = Some(ticket);
                Ok(())
            })
            .unwrap();
        refuse(later.take().unwrap());
        assert_eq!(*breaks.borrow_watched(), Breaks { count: 1, term: Some(Term(4)) });
        assert_eq!(
            proposals.pass(Term(4), &batch(2), |_| Ok(())),
            Err(ProposeError::NotLeading { term: Term(4) })
        );
    }

    #[test]
    fn an_old_refusal_does_not_hide_a_newer_one() {
        let proposals = Proposals::new();
        let breaks = proposals.breaks();
        proposals.fail(Term(5));
        proposals.fail(Term(4));
        proposals.mend(Term(4));
        assert_eq!(breaks.borrow_watched().term, Some(Term(5)));
        proposals.mend(Term(5));
        assert_eq!(*breaks.borrow_watched(), Breaks { count: 1, term: None });
        assert!(!proposals.open(Term(5), 0));
        assert!(proposals.open(Term(5), 1));
    }

    #[test]
    fn a_held_gate_takes_nothing_and_waits_for_what_it_took() {
        let proposals = Arc::new(Proposals::new());
        assert_eq!(proposals.hold(), None);
        assert!(proposals.open(Term(1), 0));
        let mut tickets = Vec::new();
        proposals
            .pass(Term(1), &batch(1), |ticket| {
                tickets.push(ticket);
                Ok(())
            })
            .unwrap();
        assert_eq!((proposals.hold(), proposals.hold()), (Some(Term(1)), None));
        assert_eq!(proposals.pass(Term(1), &batch(2), |_| Ok(())), Err(ProposeError::Full));
        let mut idle = Box::pin(proposals.idle());
        assert!((&mut idle).now_or_never().is_none());
        tickets.clear();
        assert!(idle.now_or_never().is_some());
    }

    fn refuse(ticket: Ticket) {
        let error = openraft::errors::ForwardToLeader::empty();
        let refused: ClientWriteResult<Types> =
            Err(openraft::errors::ClientWriteError::ForwardToLeader(error));
        ticket.on_complete(refused);
    }

    fn batch(index: u64) -> EncodedBatch {
        journal::encode(&model::Batch {
            epoch: model::EPOCH,
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
