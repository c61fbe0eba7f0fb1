//! One log entry: the events of one or more commands, all or nothing.

use base::{Index, Time, Uuid};

use crate::digest::Digest;
use crate::event::Event;
use crate::object::{Actor, RequestId};

/// What the batches mean that this release writes at most. Each batch says in which epoch it was decided, and a fold whose
/// meaning changed asks: what is in the log keeps the meaning it had when it was written.
///
/// A cluster is at an epoch, too: that which its leader writes. It is raised once every server knows the next one, so that
/// servers of two releases can share a log, and the older release can be gone back to until then.
///
/// | epoch | since then |
/// |---|---|
/// | 2 | a purge leaves allocations that have not ended, until they have; the newest stable version of a job is kept |
/// | 3 | a piece of a state that is as large as one may be continues in the next; a restore ends unfinished after minutes;
/// | | a job may be registered stopped; versions keep their status; volumes have an index |
/// | 4 | the epoch is raised by a fact; before, leaders wrote the newest one that they knew. Key trees of variables; split cursors;
/// | | sinks of Kafka, and of traces |
pub const EPOCH: u16 = 4;

/// Where a cluster is that never raised its epoch.
pub const FIRST_EPOCH: u16 = 3;

/// What was decided together. Folding it moves the state from `previous` to `index`.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// See [`EPOCH`].
    pub epoch: u16,
    pub index: Index,
    /// The index it was decided on. Fold compares it: the third fence against two deciders.
    pub previous: Index,
    /// Of the state it was decided on. Fold compares it: a server whose state differs finds out at once.
    pub digest: Digest,
    /// The server's clock when it was decided, never earlier than the batch before.
    pub time: Time,
    /// The server that decided it.
    pub proposer: Uuid,
    pub commands: Vec<CommandRecord>,
    pub events: Vec<LoggedEvent>,
}

/// Who asked for a part of a batch, and under which name.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRecord {
    pub request: RequestId,
    /// The command's number; see `Command::kind`.
    pub kind: u16,
    pub actor: Actor,
}

/// An event, and the position in `Batch::commands` of the command it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedEvent {
    pub command: u16,
    pub event: Event,
}

impl Batch {
    /// Each event with its ordinal and the command it answers.
    pub fn events(&self) -> impl Iterator<Item = (u16, &CommandRecord, &Event)> {
        let record = |logged: &LoggedEvent| &self.commands[usize::from(logged.command)];
        self.events.iter().enumerate().map(move |(ordinal, e)| (ordinal as u16, record(e), &e.event))
    }
}
