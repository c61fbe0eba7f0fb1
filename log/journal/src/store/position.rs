//! Where a log stands: what a segment begins with, and what makes a log that begins beyond 0 one that goes on.

use bytes::Bytes;

use super::LogId;
use super::record::Chain;

/// A place between two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// Raft index of the entry after it.
    pub next: u64,
    /// Term of the entry before it; 0 at the very beginning.
    pub term: u64,
    /// Index of the last batch before it; 0 when there is none.
    pub batch: u64,
    /// The chain at the entry before it.
    pub chain: Chain,
}

/// What this server noted for itself.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Notes {
    pub vote: Option<Bytes>,
    pub committed: Option<LogId>,
    pub purged: Option<LogId>,
}

/// What the first record of a segment says, so that the segments before it need not be read, or be there at all.
///
/// | at | size | field |
/// |---|---|---|
/// | 0 | 40 | [`Position`]: next, term, batch, chain |
/// | 40 | 8 | where the seal of the segment before it stands; 0 when nothing continues from there |
/// | 48 | 8 | which follow: 1 committed, 2 purged, 4 vote |
/// | 56 | 16 | committed: raft index, term |
/// | 72 | 16 | purged: raft index, term |
/// | 88 | | vote |
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Begin {
    pub position: Position,
    pub notes: Notes,
    pub previous_seal: u64,
}

const HAS_COMMITTED: u64 = 1;
const HAS_PURGED: u64 = 2;
const HAS_VOTE: u64 = 4;

impl Position {
    pub const LEN: usize = 40;

    /// The entry before it.
    pub fn last(&self) -> Option<LogId> {
        Some(LogId { index: self.next.checked_sub(1)?, term: self.term })
    }

    pub fn bytes(&self) -> [u8; Position::LEN] {
        let mut bytes = [0; Position::LEN];
        bytes[0..8].copy_from_slice(&self.next.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.term.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.batch.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.chain.0);
        bytes
    }

    /// `None` when `bytes` have another length.
    pub fn read(bytes: &[u8]) -> Option<Position> {
        let bytes: &[u8; Position::LEN] = bytes.try_into().ok()?;
        let chain = Chain(bytes[24..].try_into().expect("16 bytes were sliced"));
        Some(Position { next: number(bytes, 0)?, term: number(bytes, 8)?, batch: number(bytes, 16)?, chain })
    }
}

impl Begin {
    /// Without the vote, which stands at the end.
    pub const LEN: usize = 88;

    pub fn bytes(&self) -> Vec<u8> {
        let notes = &self.notes;
        let mut bytes = Vec::with_capacity(Begin::LEN);
        bytes.extend_from_slice(&self.position.bytes());
        bytes.extend_from_slice(&self.previous_seal.to_le_bytes());
        let has = |there: bool, bit| if there { bit } else { 0 };
        let flags = has(notes.committed.is_some(), HAS_COMMITTED)
            | has(notes.purged.is_some(), HAS_PURGED)
            | has(notes.vote.is_some(), HAS_VOTE);
        bytes.extend_from_slice(&flags.to_le_bytes());
        for id in [notes.committed, notes.purged] {
            let id = id.unwrap_or(LogId { index: 0, term: 0 });
            bytes.extend_from_slice(&id.index.to_le_bytes());
            bytes.extend_from_slice(&id.term.to_le_bytes());
        }
        bytes.extend_from_slice(notes.vote.as_deref().unwrap_or_default());
        bytes
    }

    /// `None` when it is too short to be one.
    pub fn read(bytes: &[u8]) -> Option<Begin> {
        let flags = number(bytes, 48)?;
        let id = |bit, at| -> Option<Option<LogId>> {
            let id = LogId { index: number(bytes, at)?, term: number(bytes, at + 8)? };
            Some((flags & bit != 0).then_some(id))
        };
        let vote = Bytes::copy_from_slice(bytes.get(Begin::LEN..)?);
        let notes = Notes {
            committed: id(HAS_COMMITTED, 56)?,
            purged: id(HAS_PURGED, 72)?,
            vote: (flags & HAS_VOTE != 0).then_some(vote),
        };
        let position = Position::read(bytes.get(..Position::LEN)?)?;
        Some(Begin { position, notes, previous_seal: number(bytes, 40)? })
    }
}

/// The eight bytes at `at`, little-endian, if they are there.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().expect("8 bytes were sliced")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_segment_begins_with_survives_its_bytes() {
        let position = Position { next: 7, term: 3, batch: 5, chain: Chain([9; 16]) };
        let (committed, purged) = (Some(LogId { index: 6, term: 3 }), Some(LogId { index: 2, term: 1 }));
        let vote = Some(Bytes::from_static(b"a vote"));
        for notes in [Notes::default(), Notes { vote, committed, purged }] {
            let begin = Begin { position, notes, previous_seal: 640 };
            assert_eq!(Begin::read(&begin.bytes()), Some(begin));
        }
        assert_eq!(Begin::read(&[0; Begin::LEN - 1]), None);
    }
}
