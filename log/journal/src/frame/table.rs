//! The event table: 24 bytes an event.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 2 | kind |
//! | 2 | 2 | version |
//! | 4 | 2 | flags, zero so far |
//! | 6 | 1 | topic |
//! | 7 | 1 | sort of subject |
//! | 8 | 2 | position of its command in the command table |
//! | 10 | 2 | zero |
//! | 12 | 4 | hash of the subject |
//! | 16 | 4 | offset of the payload in the batch |
//! | 20 | 4 | length of the payload |

use model::{AllocId, DeploymentId, EvalId, Event, JobKey, LoggedEvent, NodeId};

use super::{ALIGN, FrameError};
use crate::registry;

pub(super) const ROW: usize = 24;

/// What an event is about in the sense of the event stream. Numbers on disk, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Topic {
    /// Of a kind that has none, or one a newer release added.
    Other = 0,
    Cluster = 1,
    Node = 2,
    Job = 3,
    Evaluation = 4,
    Plan = 5,
    Allocation = 6,
    Deployment = 7,
}

/// The one thing an event is chiefly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    Nothing,
    /// More than one thing of one kind: only the payload tells which.
    Several,
    Node(NodeId),
    Job(&'a JobKey),
    Eval(EvalId),
    Alloc(AllocId),
    Deployment(DeploymentId),
}

/// One line of the event table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: u16,
    pub version: u16,
    pub topic: Topic,
    /// The position of its command in [`super::EncodedBatch::commands`].
    pub command: u16,
    subject: u8,
    subject_hash: u32,
    pub(super) offset: u32,
    pub(super) len: u32,
}

impl Row {
    /// Whether the payload is worth a look for somebody who asks about `subject`.
    ///
    /// False is certain. True may be a clash of hashes, or an event about several things.
    pub fn may_be_about(&self, subject: &Subject<'_>) -> bool {
        self.subject == Subject::Several.sort() || (self.subject, self.subject_hash) == subject.key()
    }

    pub(super) fn of(logged: &LoggedEvent, offset: u32, len: u32) -> Row {
        let (topic, subject) = about(&logged.event);
        let (subject, subject_hash) = subject.key();
        let kind = logged.event.kind();
        let version = registry::version(kind);
        Row { kind, version, topic, command: logged.command, subject, subject_hash, offset, len }
    }

    pub(super) fn write(&self, to: &mut [u8]) {
        to[0..2].copy_from_slice(&self.kind.to_le_bytes());
        to[2..4].copy_from_slice(&self.version.to_le_bytes());
        to[6] = self.topic as u8;
        to[7] = self.subject;
        to[8..10].copy_from_slice(&self.command.to_le_bytes());
        to[12..16].copy_from_slice(&self.subject_hash.to_le_bytes());
        to[16..20].copy_from_slice(&self.offset.to_le_bytes());
        to[20..24].copy_from_slice(&self.len.to_le_bytes());
    }

    pub(super) fn read(row: &[u8]) -> Row {
        let u16 = |at: usize| u16::from_le_bytes([row[at], row[at + 1]]);
        let u32 = |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        Row {
            kind: u16(0),
            version: u16(2),
            topic: Topic::from_number(row[6]),
            subject: row[7],
            command: u16(8),
            subject_hash: u32(12),
            offset: u32(16),
            len: u32(20),
        }
    }

    pub(super) fn check(&self, payloads: usize, end: usize, commands: u16) -> Result<(), FrameError> {
        let (from, to) = (self.offset as usize, self.offset as usize + self.len as usize);
        if from < payloads || to > end || !from.is_multiple_of(ALIGN) {
            return Err(FrameError::Malformed("a payload lies outside of the payloads"));
        }
        if self.command >= commands {
            return Err(FrameError::Malformed("an event answers no command of its batch"));
        }
        Ok(())
    }
}

impl Topic {
    fn from_number(number: u8) -> Topic {
        match number {
            1 => Topic::Cluster,
            2 => Topic::Node,
            3 => Topic::Job,
            4 => Topic::Evaluation,
            5 => Topic::Plan,
            6 => Topic::Allocation,
            7 => Topic::Deployment,
            _ => Topic::Other,
        }
    }
}

impl<'a> Subject<'a> {
    // Numbers on disk, never reused.
    const fn sort(&self) -> u8 {
        match self {
            Subject::Nothing => 0,
            Subject::Several => 1,
            Subject::Node(_) => 2,
            Subject::Job(_) => 3,
            Subject::Eval(_) => 4,
            Subject::Alloc(_) => 5,
            Subject::Deployment(_) => 6,
        }
    }

    fn key(&self) -> (u8, u32) {
        let hash = match self {
            Subject::Nothing | Subject::Several => 0,
            Subject::Node(id) => crc32c::crc32c(&id.0.0),
            Subject::Eval(id) => crc32c::crc32c(&id.0.0),
            Subject::Alloc(id) => crc32c::crc32c(&id.0.0),
            Subject::Deployment(id) => crc32c::crc32c(&id.0.0),
            Subject::Job(key) => {
                // A zero byte between: no name contains one, so no two keys read the same.
                let namespace = crc32c::crc32c_append(crc32c::crc32c(key.namespace.as_bytes()), &[0]);
                crc32c::crc32c_append(namespace, key.id.as_bytes())
            }
        };
        (self.sort(), hash)
    }

    fn of_evals(evals: &[EvalId]) -> Subject<'a> {
        match evals {
            [] => Subject::Nothing,
            [one] => Subject::Eval(*one),
            _ => Subject::Several,
        }
    }

    fn of_allocs(allocs: &[AllocId]) -> Subject<'a> {
        match allocs {
            [] => Subject::Nothing,
            [one] => Subject::Alloc(*one),
            _ => Subject::Several,
        }
    }
}

fn about(event: &Event) -> (Topic, Subject<'_>) {
    match event {
        Event::ClusterFounded(_)
        | Event::NodePoolUpserted(_)
        | Event::NodePoolDeleted(_)
        | Event::NamespaceUpserted(_)
        | Event::NamespaceDeleted(_)
        | Event::AutopilotConfigured(_)
        | Event::SchedulerConfigured(_)
        | Event::VolumeRegistered(_)
        | Event::VolumeDeregistered(_)
        | Event::StateChunkGiven(_)
        | Event::StateRestored(_) => (Topic::Cluster, Subject::Nothing),
        Event::NodeRegistered(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeUpdated(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeStatusChanged(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeEligibilityChanged(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeMessagesEmitted(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeDrainStarted(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeDrainUpdated(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeDrainEnded(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeDeregistered(e) => (Topic::Node, Subject::Node(e.node)),
        Event::NodeAllocsReported(e) => (Topic::Node, Subject::Node(e.node)),
        Event::JobRegistered(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobStopped(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobPurged(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobStabilityChanged(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobLaunched(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobScaled(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobVersionTagged(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::JobVersionUntagged(e) => (Topic::Job, Subject::Job(&e.key)),
        Event::EvalCreated(e) => (Topic::Evaluation, Subject::Eval(e.eval.id)),
        Event::EvalUpdated(e) => (Topic::Evaluation, Subject::Eval(e.eval)),
        Event::EvalAcked(e) => (Topic::Evaluation, Subject::Eval(e.eval)),
        Event::EvalsCanceled(e) => (Topic::Evaluation, Subject::of_evals(&e.evals)),
        Event::PlanCommitted(e) => (Topic::Plan, Subject::Eval(e.eval)),
        Event::AllocsPlaced(e) => (Topic::Allocation, Subject::of_allocs(&e.ids)),
        Event::AllocsUpdatedInPlace(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocsStopped(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocsPreempted(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocsMarkedUnknown(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocsReconnected(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocReported(e) => (Topic::Allocation, Subject::Alloc(e.alloc)),
        Event::AllocTransitionRequested(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::AllocHealthSet(e) => (Topic::Allocation, Subject::of_allocs(&e.allocs)),
        Event::DeploymentCreated(e) => (Topic::Deployment, Subject::Deployment(e.deployment)),
        Event::DeploymentGoalsChanged(e) => (Topic::Deployment, Subject::Deployment(e.deployment)),
        Event::DeploymentStatusChanged(e) => (Topic::Deployment, Subject::Deployment(e.deployment)),
        Event::DeploymentPromoted(e) => (Topic::Deployment, Subject::Deployment(e.deployment)),
    }
}
