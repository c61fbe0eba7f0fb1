//! What waits for the sequencer's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Term;
use journal::{EncodedBatch, Sink};
use model::Image;
use parking_lot::{Condvar, Mutex};

use crate::lanes::{Lane, Lanes};
use crate::replica::Notice;
use crate::sequencer::{Submission, SubmitError};

/// How long a command is held back because schedulers are behind. Then it is rejected: who asked gets an answer, and
/// may try again.
const HELD_MAX: Duration = Duration::from_secs(2);

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
    pub lanes: Lanes<Queued>,
    pub closed: bool,
}

/// A submission, and since when it waits.
pub struct Queued {
    since: Instant,
    submission: Submission,
}

impl Waiting {
    /// When the sequencer has something to do, if nothing else comes.
    fn due(&self, fill: Fill, now: Instant) -> Option<Instant> {
        let batch = match fill {
            Fill::NotYet => None,
            _ if self.lanes.is_empty() => None,
            Fill::AtOnce => Some(now),
            Fill::Gathered { commands, .. } if self.lanes.len() >= commands => Some(now),
            Fill::Gathered { from, .. } => Some(from),
        };
        let late = self.lanes.held().map(|queued| queued.since + HELD_MAX);
        batch.into_iter().chain(late).min()
    }

    /// What was held back for too long.
    fn take_late(&mut self, now: Instant) -> Vec<Submission> {
        let mut late = Vec::new();
        while self.lanes.held().is_some_and(|queued| queued.since + HELD_MAX <= now) {
            late.extend(self.lanes.pop_held().map(|queued| queued.submission));
        }
        late
    }
}

/// The only way to the sequencer's thread: commands come in by lane, the log by notices.
#[derive(Clone, Default)]
pub struct Inbox {
    shared: Arc<(Mutex<Waiting>, Condvar)>,
}

impl Inbox {
    /// # Errors
    /// Through the answer: `Busy` when the lane is full or it was held back for too long, `NotLeading` when the server shuts down.
    pub fn submit(&self, submission: Submission) {
        self.submit_all([submission]);
    }

    /// All of them before the sequencer looks again: as far as there is room, they share a batch.
    ///
    /// # Errors
    /// As above, for each of them.
    pub fn submit_all(&self, submissions: impl IntoIterator<Item = Submission>) {
        let (mut refused, since) = (Vec::new(), Instant::now());
        let mut waiting = self.shared.0.lock();
        for submission in submissions {
            if waiting.closed {
                refused.push((submission, SubmitError::NotLeading));
                continue;
            }
            let lane = Lane::of(&submission.request.command);
            if let Err(queued) = waiting.lanes.push(lane, Queued { since, submission }) {
                refused.push((queued.submission, SubmitError::Busy));
            }
        }
        drop(waiting);
        self.shared.1.notify_one();
        refused.into_iter().for_each(|(submission, error)| (submission.answer)(Err(error)));
    }

    /// Blocks until there is something to do, and returns what `work` makes of it. What was held back for too long by then
    /// is rejected.
    pub fn wait<T>(&self, fill: Fill, work: impl FnOnce(&mut Waiting) -> T) -> T {
        let mut waiting = self.shared.0.lock();
        while waiting.notices.is_empty() && !waiting.closed {
            let now = Instant::now();
            match waiting.due(fill, now) {
                Some(due) if due <= now => break,
                Some(due) => drop(self.shared.1.wait_until(&mut waiting, due)),
                None => self.shared.1.wait(&mut waiting),
            }
        }
        let late = waiting.take_late(Instant::now());
        let worked = work(&mut waiting);
        drop(waiting);
        late.into_iter().for_each(|submission| (submission.answer)(Err(SubmitError::Busy)));
        worked
    }

    pub fn pop(&self) -> Option<Submission> {
        self.shared.0.lock().lanes.pop().map(|queued| queued.submission)
    }

    /// Whether commands that have schedulers place more are held back.
    pub fn hold_work(&self, held: bool) {
        if self.shared.0.lock().lanes.hold_work(held) {
            self.shared.1.notify_one();
        }
    }

    pub fn close(&self) {
        self.shared.0.lock().closed = true;
        self.shared.1.notify_all();
    }

    /// Commands that could be taken out now.
    pub fn ready(&self) -> usize {
        self.shared.0.lock().lanes.len()
    }

    /// Commands that wait in all lanes.
    pub fn waiting(&self) -> usize {
        self.shared.0.lock().lanes.waiting()
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
