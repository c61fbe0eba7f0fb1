//! What waits for the sequencer's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use base::Term;
use journal::{EncodedBatch, Sink};
use model::Image;
use parking_lot::{Condvar, Mutex};

use crate::lanes::{Lane, Lanes};
use crate::replica::Notice;
use crate::sequencer::{Submission, SubmitError};

/// When the next batch may begin.
#[derive(Clone, Copy, Debug)]
pub enum Fill {
    /// Not before the log says something: too many are on their way.
    NotYet,
    /// As soon as a command waits.
    AtOnce,
    /// With so many commands, or from then on with any.
    Gathered { commands: usize, from: Instant },
}

/// What the sequencer's thread wakes up for.
#[derive(Default)]
pub struct Waiting {
    /// Not bounded here: the log reports what is durable, and its own reader decides how fast.
    pub notices: VecDeque<Notice>,
    pub lanes: Lanes<Submission>,
    pub closed: bool,
}

/// The only way to the sequencer's thread: commands come in by lane, the log by notices.
#[derive(Clone, Default)]
pub struct Inbox {
    shared: Arc<(Mutex<Waiting>, Condvar)>,
}

impl Inbox {
    /// # Errors
    /// Through the answer: `Busy` when the lane is full, `NotLeading` when the server shuts down.
    pub fn submit(&self, submission: Submission) {
        self.submit_all([submission]);
    }

    /// All of them before the sequencer looks again: as far as there is room, they share a batch.
    ///
    /// # Errors
    /// As above, for each of them.
    pub fn submit_all(&self, submissions: impl IntoIterator<Item = Submission>) {
        let mut refused = Vec::new();
        let mut waiting = self.shared.0.lock();
        for submission in submissions {
            if waiting.closed {
                refused.push((submission, SubmitError::NotLeading));
                continue;
            }
            let lane = Lane::of(&submission.request.command);
            if let Err(submission) = waiting.lanes.push(lane, submission) {
                refused.push((submission, SubmitError::Busy));
            }
        }
        drop(waiting);
        self.shared.1.notify_one();
        refused.into_iter().for_each(|(submission, error)| (submission.answer)(Err(error)));
    }

    /// Blocks until there is something to do, and returns what `work` makes of it.
    pub fn wait<T>(&self, fill: Fill, work: impl FnOnce(&mut Waiting) -> T) -> T {
        let mut waiting = self.shared.0.lock();
        while waiting.notices.is_empty() && !waiting.closed {
            match fill {
                Fill::AtOnce if !waiting.lanes.is_empty() => break,
                Fill::Gathered { commands, .. } if waiting.lanes.len() >= commands => break,
                Fill::Gathered { from, .. } if !waiting.lanes.is_empty() => {
                    if self.shared.1.wait_until(&mut waiting, from).timed_out() {
                        break;
                    }
                }
                Fill::NotYet | Fill::AtOnce | Fill::Gathered { .. } => self.shared.1.wait(&mut waiting),
            }
        }
        work(&mut waiting)
    }

    pub fn pop(&self) -> Option<Submission> {
        self.shared.0.lock().lanes.pop()
    }

    pub fn close(&self) {
        self.shared.0.lock().closed = true;
        self.shared.1.notify_all();
    }

    /// Commands that wait in all lanes.
    pub fn waiting(&self) -> usize {
        self.shared.0.lock().lanes.len()
    }

    fn notice(&self, notice: Notice) {
        self.shared.0.lock().notices.push_back(notice);
        self.shared.1.notify_one();
    }
}

impl Sink for Inbox {
    fn committed(&mut self, batch: EncodedBatch) {
        self.notice(Notice::Committed(batch));
    }

    fn restored(&mut self, image: Image) {
        self.notice(Notice::Restored(image));
    }

    fn leading(&mut self, term: Term) {
        self.notice(Notice::Leading(term));
    }

    fn following(&mut self, leader: Option<u64>) {
        self.notice(Notice::Following(leader));
    }

    fn halted(&mut self, why: String) {
        self.notice(Notice::Halted(why));
    }
}
