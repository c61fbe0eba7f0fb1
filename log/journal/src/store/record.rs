//! The bytes of one record in a segment: a header of 64 bytes, then the payload, padded with zeros to 16.
//!
//! | at | size | header field |
//! |---|---|---|
//! | 0 | 4 | magic `SJR1` |
//! | 4 | 1 | header version, 1 |
//! | 5 | 1 | kind, see [`Kind`] |
//! | 6 | 2 | flags, zero so far |
//! | 8 | 4 | payload length without the padding |
//! | 12 | 4 | CRC32C of the payload and its padding |
//! | 16 | 8 | raft index |
//! | 24 | 8 | term |
//! | 32 | 8 | index of a batch, else 0 |
//! | 40 | 16 | chain, see [`Chain`] |
//! | 56 | 4 | lag: how many bytes right before this record were not known durable when it was written |
//! | 60 | 4 | CRC32C of the header, then of the record's [`Spot`] |
//!
//! A record is one only where it was written: a copy that a disk put elsewhere fails its checksum.

use std::fmt;

use bytes::Bytes;

use super::{Entry, Payload};

pub(super) const HEADER: usize = 64;
pub(super) const ALIGN: usize = 16;
pub(super) const MAGIC: [u8; 4] = *b"SJR1";
const VERSION: u8 = 1;

/// What a record holds. Numbers on disk, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Batch = 1,
    Blank = 2,
    Membership = 3,
    /// The payload is the consensus library's vote.
    Vote = 4,
    /// Entries up to raft index and term are committed.
    Committed = 5,
    /// Entries from raft index on are void: a new leader never had them.
    Truncate = 6,
    /// The segment is complete; see [`super::segment::Summary`].
    Seal = 7,
    /// Raft may forget the entries up to raft index and term. History keeps them.
    Purged = 8,
    /// The first record of a segment: where the log stands, see [`super::position::Begin`].
    Begin = 9,
    /// As [`Kind::Begin`], and everything in earlier segments is void: the log goes on after an image.
    Reset = 10,
}

/// Where a record stands: part of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The number of the segment.
    pub segment: u64,
    pub offset: u64,
}

/// What precedes a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub len: u32,
    pub payload_crc: u32,
    pub raft_index: u64,
    pub term: u64,
    pub index: u64,
    pub chain: Chain,
    pub lag: u32,
}

/// A hash over an entry and all entries before it: equal chains at equal raft index mean equal logs, on any server.
///
/// Records that are no entries carry the hash of themselves on the last entry, and the chain goes on without them:
/// they differ from server to server. An image carries the chain at its last entry, so that it goes on from there.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain(pub [u8; 16]);

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// Nothing was ever written here.
    Zeros,
    Header,
    /// The header is fine, the payload is not what it says, or is cut off.
    Payload,
    /// A record, but of another log or of another moment.
    Chain,
    /// Intact, but this server does not know what it means.
    Newer {
        version: u8,
        kind: u8,
    },
}

/// Something to be written.
pub(super) struct Draft<'a> {
    pub kind: Kind,
    pub raft_index: u64,
    pub term: u64,
    pub index: u64,
    pub payload: &'a [u8],
}

impl<'a> Draft<'a> {
    pub fn of(entry: &'a Entry) -> Draft<'a> {
        let (kind, index, payload) = match &entry.payload {
            Payload::Batch(batch) => (Kind::Batch, batch.index().0, batch.bytes().as_ref()),
            Payload::Blank => (Kind::Blank, 0, &[] as &[u8]),
            Payload::Membership(bytes) => (Kind::Membership, 0, bytes.as_ref()),
        };
        Draft { kind, raft_index: entry.index, term: entry.term, index, payload }
    }

    /// What it takes in a segment.
    pub fn size(&self) -> u64 {
        size_with(self.payload.len())
    }

    /// Appends the record to `buffer` and returns the chain at it.
    pub fn write(&self, buffer: &mut Vec<u8>, spot: Spot, before: Chain, lag: u64) -> Chain {
        self.write_with(buffer, spot, lag, |header| before.then(header, self.payload))
    }

    /// Appends the record of a part of an entry. It has the chain at the whole entry, which does not follow from the part.
    pub fn write_part(&self, buffer: &mut Vec<u8>, spot: Spot, chain: Chain) {
        self.write_with(buffer, spot, 0, |_| chain);
    }

    fn write_with(
        &self,
        buffer: &mut Vec<u8>,
        spot: Spot,
        lag: u64,
        chain: impl FnOnce(&Header) -> Chain,
    ) -> Chain {
        let start = buffer.len();
        buffer.resize(start + HEADER, 0);
        buffer.extend_from_slice(self.payload);
        buffer.resize(start + self.size() as usize, 0);
        let payload_crc = crc32c::crc32c(&buffer[start + HEADER..]);
        let mut header = Header {
            kind: self.kind,
            len: u32::try_from(self.payload.len()).expect("payloads are far smaller than 4 GiB"),
            payload_crc,
            raft_index: self.raft_index,
            term: self.term,
            index: self.index,
            chain: Chain::default(),
            lag: u32::try_from(lag).expect("a group is far smaller than 4 GiB"),
        };
        header.chain = chain(&header);
        buffer[start..start + HEADER].copy_from_slice(&header.bytes(spot));
        header.chain
    }
}

/// What a record with a payload of `len` bytes takes in a segment.
pub(super) const fn size_with(len: usize) -> u64 {
    (HEADER + len.next_multiple_of(ALIGN)) as u64
}

impl Chain {
    pub(super) fn then(self, header: &Header, payload: &[u8]) -> Chain {
        let mut fields = [0; 31];
        fields[0] = header.kind as u8;
        fields[3..7].copy_from_slice(&header.len.to_le_bytes());
        fields[7..15].copy_from_slice(&header.raft_index.to_le_bytes());
        fields[15..23].copy_from_slice(&header.term.to_le_bytes());
        fields[23..31].copy_from_slice(&header.index.to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&fields).update(blake3::hash(payload).as_bytes());
        Chain(hasher.finalize().as_bytes()[..16].try_into().expect("16 bytes were sliced"))
    }
}

impl Kind {
    pub fn is_entry(self) -> bool {
        matches!(self, Kind::Batch | Kind::Blank | Kind::Membership)
    }

    fn from_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Batch,
            2 => Kind::Blank,
            3 => Kind::Membership,
            4 => Kind::Vote,
            5 => Kind::Committed,
            6 => Kind::Truncate,
            7 => Kind::Seal,
            8 => Kind::Purged,
            9 => Kind::Begin,
            10 => Kind::Reset,
            _ => return None,
        })
    }
}

impl Spot {
    fn crc(self, header: &[u8]) -> u32 {
        let crc = crc32c::crc32c_append(crc32c::crc32c(header), &self.segment.to_le_bytes());
        crc32c::crc32c_append(crc, &self.offset.to_le_bytes())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({:032x})", u128::from_be_bytes(self.0))
    }
}

impl Header {
    fn bytes(&self, spot: Spot) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.raft_index.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.term.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.index.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.chain.0);
        bytes[56..60].copy_from_slice(&self.lag.to_le_bytes());
        let crc = spot.crc(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at the beginning of `bytes`, which stand at `spot`, if one is there whole.
    pub fn read(bytes: &[u8], spot: Spot) -> Result<Header, Bad> {
        let Some(bytes) = bytes.get(..HEADER) else { return Err(Bad::Header) };
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Bad::Zeros);
        }
        let u32 = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes were sliced"));
        let u64 = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
        if bytes[..4] != MAGIC || u32(60) != spot.crc(&bytes[..60]) {
            return Err(Bad::Header);
        }
        let newer = Bad::Newer { version: bytes[4], kind: bytes[5] };
        if bytes[4] != VERSION || bytes[6..8] != [0, 0] {
            return Err(newer);
        }
        Ok(Header {
            kind: Kind::from_number(bytes[5]).ok_or(newer)?,
            len: u32(8),
            payload_crc: u32(12),
            raft_index: u64(16),
            term: u64(24),
            index: u64(32),
            chain: Chain(bytes[40..56].try_into().expect("16 bytes were sliced")),
            lag: u32(56),
        })
    }

    /// What the record takes in a segment.
    pub fn size(&self) -> u64 {
        size_with(self.len as usize)
    }
}

/// The record at the beginning of `bytes`, which stand at `spot`, checksums compared.
pub(super) fn read(bytes: &[u8], spot: Spot) -> Result<(Header, &[u8]), Bad> {
    let header = Header::read(bytes, spot)?;
    let padded = bytes.get(HEADER..header.size() as usize).ok_or(Bad::Payload)?;
    if crc32c::crc32c(padded) != header.payload_crc {
        return Err(Bad::Payload);
    }
    Ok((header, &padded[..header.len as usize]))
}

/// The entry of which the record holds a part; `None` where it holds no batch.
pub(super) fn part(header: &Header, payload: Bytes) -> Result<Option<Entry>, crate::FrameError> {
    if header.kind != Kind::Batch {
        return Ok(None);
    }
    let payload = Payload::Batch(crate::EncodedBatch::check_part(payload)?);
    Ok(Some(Entry { index: header.raft_index, term: header.term, payload }))
}

/// The entry a record holds; `None` where it holds none.
pub(super) fn entry(header: &Header, payload: Bytes) -> Result<Option<Entry>, crate::FrameError> {
    let payload = match header.kind {
        Kind::Batch => Payload::Batch(crate::EncodedBatch::check(payload)?),
        Kind::Blank => Payload::Blank,
        Kind::Membership => Payload::Membership(payload),
        Kind::Vote | Kind::Committed | Kind::Purged => return Ok(None),
        Kind::Truncate | Kind::Seal | Kind::Begin | Kind::Reset => return Ok(None),
    };
    Ok(Some(Entry { index: header.raft_index, term: header.term, payload }))
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::Zeros => f.write_str("the record is blank"),
            Bad::Header => f.write_str("the record's header fails its checksum"),
            Bad::Payload => f.write_str("the record's payload fails its checksum"),
            Bad::Chain => f.write_str("the record does not continue the log before it"),
            Bad::Newer { version, kind } => write!(
                f,
                "record version {version} kind {kind} is not known to this server: it was written by a newer release"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_bytes_and_no_flip_goes_unseen() {
        let draft =
            Draft { kind: Kind::Membership, raft_index: 3, term: 2, index: 0, payload: b"odd length" };
        let mut bytes = Vec::new();
        let spot = Spot { segment: 7, offset: 4096 };
        let chain = draft.write(&mut bytes, spot, Chain::default(), 128);
        assert_eq!(bytes.len() as u64, draft.size());
        let (header, payload) = read(&bytes, spot).unwrap();
        assert_eq!((header.raft_index, header.term, header.lag, payload), (3, 2, 128, &b"odd length"[..]));
        assert_eq!(header.chain, chain);
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            assert!(read(&bytes, spot).is_err(), "flip at {at}");
            bytes[at] ^= 0x10;
        }
        assert_eq!(read(&bytes, Spot { offset: 4112, ..spot }), Err(Bad::Header));
        assert_eq!(read(&bytes, Spot { segment: 8, ..spot }), Err(Bad::Header));
    }

    #[test]
    fn the_chain_tells_what_came_before() {
        let draft = Draft { kind: Kind::Blank, raft_index: 3, term: 2, index: 0, payload: &[] };
        let after =
            |before: u8| draft.write(&mut Vec::new(), Spot { segment: 1, offset: 0 }, Chain([before; 16]), 0);
        assert_ne!(after(0), after(1));
    }
}
