//! The event table: 24 bytes an event.
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 2 | kind |
//! | 2 | 2 | version |
//! | 4 | 2 | flags: 1 where the payload was left out, see [`super::EncodedBatch::part`] |
//! | 6 | 1 | topic |
//! | 7 | 1 | sort of subject |
//! | 8 | 2 | position of its command in the command table |
//! | 10 | 2 | zero |
//! | 12 | 4 | hash of the subject |
//! | 16 | 4 | offset of the payload in the batch |
//! | 20 | 4 | length of the payload |

use model::{LoggedEvent, Subject, Topic};

use super::{ALIGN, FrameError};
use crate::registry;

pub(super) const ROW: usize = 24;
const LEFT_OUT: u16 = 1;

// Sorts of subjects. Numbers in the log, never reused.
const NOTHING: u8 = 0;
/// More than one object of a kind: only the payload says which.
const SEVERAL: u8 = 1;

/// One line of the event table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: u16,
    pub version: u16,
    pub topic: Topic,
    /// The position of its command in [`super::EncodedBatch::commands`].
    pub command: u16,
    /// The payload is not in the batch: it is of one that only a part is left of.
    pub left_out: bool,
    subject: u8,
    subject_hash: u32,
    pub(super) offset: u32,
    pub(super) len: u32,
}

impl Row {
    /// Whether the payload is worth a look for a reader who looks for `subject`.
    ///
    /// False is certain. True may be a collision of hashes, or an event about several objects.
    pub fn may_be_about(&self, subject: &Subject<'_>) -> bool {
        self.subject == SEVERAL || (self.subject, self.subject_hash) == key(subject)
    }

    pub(super) fn of(logged: &LoggedEvent, offset: u32, len: u32) -> Row {
        let event = &logged.event;
        let (subject, subject_hash) = key(&event.subject());
        let (kind, topic) = (event.kind(), event.topic());
        let version = registry::version(event);
        let (command, left_out) = (logged.command, false);
        Row { kind, version, topic, command, left_out, subject, subject_hash, offset, len }
    }

    pub(super) fn write(&self, to: &mut [u8]) {
        to[0..2].copy_from_slice(&self.kind.to_le_bytes());
        to[2..4].copy_from_slice(&self.version.to_le_bytes());
        to[4..6].copy_from_slice(&if self.left_out { LEFT_OUT } else { 0 }.to_le_bytes());
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
            left_out: u16(4) & LEFT_OUT != 0,
            subject_hash: u32(12),
            offset: u32(16),
            len: u32(20),
        }
    }

    pub(super) fn check(&self, payloads: usize, end: usize, commands: u16) -> Result<(), FrameError> {
        let (from, to) = (self.offset as usize, self.offset as usize + self.len as usize);
        if !self.left_out && (from < payloads || to > end || !from.is_multiple_of(ALIGN)) {
            return Err(FrameError::Malformed("a payload lies outside of the payloads"));
        }
        if self.command >= commands {
            return Err(FrameError::Malformed("an event answers no command of its batch"));
        }
        Ok(())
    }
}

/// What the table says of a subject: its sort, and a hash of its name. Both stand in the log.
fn key(subject: &Subject<'_>) -> (u8, u32) {
    match subject {
        Subject::Cluster | Subject::Evals([]) | Subject::Allocs([]) => (NOTHING, 0),
        Subject::Evals([_, _, ..]) | Subject::Allocs([_, _, ..]) => (SEVERAL, 0),
        Subject::Node(id) => (2, crc32c::crc32c(&id.0.0)),
        // A zero byte between: no name contains one, so no two keys read the same.
        Subject::Job(key) => {
            let namespace = crc32c::crc32c_append(crc32c::crc32c(key.namespace.as_bytes()), &[0]);
            (3, crc32c::crc32c_append(namespace, key.id.as_bytes()))
        }
        Subject::Evals([id]) => (4, crc32c::crc32c(&id.0.0)),
        Subject::Allocs([id]) => (5, crc32c::crc32c(&id.0.0)),
        Subject::Deployment(id) => (6, crc32c::crc32c(&id.0.0)),
    }
}
