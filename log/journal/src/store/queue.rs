//! The writer's queue.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::position::Position;
use super::{Done, Entry, LogId, StoreError};

/// Payload written as one group at most: about 10 ms of a slow disk, so that a burst does not make the first one
/// in it wait for the last.
pub const GROUP_BYTES_MAX: usize = 8 << 20;

pub(super) enum Op {
    Append {
        entries: Vec<Entry>,
        done: Done,
    },
    Truncate {
        from: u64,
        done: Done,
    },
    Vote {
        vote: Bytes,
        done: Done,
    },
    Committed {
        upto: LogId,
    },
    Purged {
        upto: LogId,
        done: Done,
    },
    /// The log goes on after `base`, and what is there is void.
    Reset {
        base: Position,
        done: Done,
    },
}

/// What is written with one sync.
pub(super) struct Group {
    pub ops: Vec<Op>,
    /// The next to be written, and the next entry of it.
    pub op: usize,
    pub entry: usize,
}

/// It has no bound of its own: proposals in flight are bounded where they come in.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    ops: VecDeque<Op>,
    closed: bool,
}

impl Op {
    fn len(&self) -> usize {
        match self {
            Op::Append { entries, .. } => entries.iter().map(|entry| entry.payload.len()).sum(),
            Op::Vote { vote, .. } => vote.len(),
            Op::Truncate { .. } | Op::Committed { .. } | Op::Purged { .. } | Op::Reset { .. } => 0,
        }
    }

    /// It finds everything asked for before it in the files, and what it does there before what comes after it.
    fn is_alone(&self) -> bool {
        matches!(self, Op::Truncate { .. } | Op::Reset { .. })
    }
}

impl Queue {
    pub fn put(&self, op: Op) -> Result<(), StoreError> {
        let mut waiting = self.inner.lock();
        if waiting.closed {
            return Err(StoreError::Stopped);
        }
        waiting.ops.push_back(op);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// What is there is still written; nothing more comes in.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.filled.notify_one();
    }

    /// The next group, once there is one; `None` at the end.
    pub fn wait(&self) -> Option<Group> {
        let mut waiting = self.inner.lock();
        while waiting.ops.is_empty() && !waiting.closed {
            self.filled.wait(&mut waiting);
        }
        gather(waiting)
    }

    /// The next group, if there is one.
    pub fn take(&self) -> Option<Group> {
        gather(self.inner.lock())
    }
}

fn gather(mut waiting: MutexGuard<'_, Waiting>) -> Option<Group> {
    let mut ops = vec![waiting.ops.pop_front()?];
    let mut bytes = ops[0].len();
    while let Some(next) = waiting.ops.front() {
        bytes += next.len();
        if next.is_alone() || ops[0].is_alone() || bytes > GROUP_BYTES_MAX {
            break;
        }
        ops.extend(waiting.ops.pop_front());
    }
    Some(Group { ops, op: 0, entry: 0 })
}
