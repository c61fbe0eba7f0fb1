//! The bytes of one batch: what raft carries, what a segment keeps, what a stream reads. Encoded once.
//!
//! Little-endian. A header of 104 bytes, then the event table, the command table and the payloads:
//!
//! | at | size | header field |
//! |---|---|---|
//! | 0 | 2 | codec, [`CODEC`] |
//! | 2 | 2 | epoch, at most [`EPOCH`] |
//! | 4 | 2 | number of events |
//! | 6 | 2 | number of commands |
//! | 8 | 8 | index the batch was decided on |
//! | 16 | 8 | time, nanoseconds since the Unix epoch |
//! | 24 | 16 | proposer |
//! | 40 | 8 | index |
//! | 48 | 4 | length of the command table |
//! | 52 | 4 | length of the whole batch |
//! | 56 | 48 | digest of the state it was decided on, a number for each table; see [`Digest`] |
//!
//! Each payload is one rkyv root and starts at a multiple of 16, so that it can be read in place. Filters and
//! indexers work from the tables ([`EncodedBatch::rows`]) and never decode a payload they do not want.

mod commands;
mod table;

use std::collections::BTreeSet;

use base::{Index, Time, Uuid};
use bytes::Bytes;
use model::event::Observed;
use model::{Batch, CommandRecord, Digest, EPOCH, Event, LoggedEvent};
use rkyv::util::AlignedVec;

use crate::registry;
pub use table::Row;

/// The layout described above, with rkyv 0.8 payloads.
pub const CODEC: u16 = 1;
/// Events in a batch: what their number's field can say.
pub const EVENTS_MAX: usize = u16::MAX as usize;
/// Commands in a batch: what their number's field can say.
pub const COMMANDS_MAX: usize = u16::MAX as usize;
/// Bytes in a batch. Half a segment, so that a segment of the usual size holds any of them.
pub const BATCH_BYTES_MAX: usize = 32 << 20;

pub(crate) const HEADER: usize = 56 + Digest::LEN;
const ALIGN: usize = 16;

/// The bytes are not a batch that this server can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("batch is malformed: {0}")]
    Malformed(&'static str),
    #[error("batch codec {0} is not known to this server: it was written by a newer release")]
    UnknownCodec(u16),
    #[error("schema epoch {0} is not known to this server: it was written by a newer release")]
    UnknownEpoch(u16),
    #[error(
        "event kind {kind} version {version} is not known to this server: it was written by a newer release"
    )]
    UnknownEvent { kind: u16, version: u16 },
    #[error("payload of event kind {kind} version {version} is damaged: {why}")]
    Payload { kind: u16, version: u16, why: String },
}

/// A batch as bytes whose header and tables were checked. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedBatch(Bytes);

/// # Panics
/// If the batch exceeds [`EVENTS_MAX`], [`COMMANDS_MAX`] or 4 GiB, or an actor's name exceeds 64 KiB: the
/// sequencer closes a batch long before.
pub fn encode(batch: &Batch) -> EncodedBatch {
    assert!(batch.events.len() <= EVENTS_MAX, "a batch holds at most {EVENTS_MAX} events");
    assert!(batch.commands.len() <= COMMANDS_MAX, "a batch holds at most {COMMANDS_MAX} commands");
    let rows_end = HEADER + batch.events.len() * table::ROW;
    let mut bytes = AlignedVec::<ALIGN>::with_capacity(rows_end + batch.events.len() * 192);
    bytes.resize(rows_end, 0);
    batch.commands.iter().for_each(|command| commands::write(&mut bytes, command));
    let commands_len = bytes.len() - rows_end;
    for (at, logged) in batch.events.iter().enumerate() {
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        let offset = bytes.len();
        bytes = registry::encode(&logged.event, bytes);
        let row = Row::of(logged, offset as u32, (bytes.len() - offset) as u32);
        row.write(&mut bytes[HEADER + at * table::ROW..][..table::ROW]);
    }
    let len = u32::try_from(bytes.len()).expect("a batch is far smaller than 4 GiB");
    write_header(&mut bytes[..HEADER], batch, commands_len as u32, len);
    EncodedBatch(Bytes::from_owner(bytes))
}

fn write_header(header: &mut [u8], batch: &Batch, commands_len: u32, len: u32) {
    header[0..2].copy_from_slice(&CODEC.to_le_bytes());
    header[2..4].copy_from_slice(&batch.epoch.to_le_bytes());
    header[4..6].copy_from_slice(&(batch.events.len() as u16).to_le_bytes());
    header[6..8].copy_from_slice(&(batch.commands.len() as u16).to_le_bytes());
    header[8..16].copy_from_slice(&batch.previous.0.to_le_bytes());
    header[16..24].copy_from_slice(&batch.time.0.to_le_bytes());
    header[24..40].copy_from_slice(&batch.proposer.0);
    header[40..48].copy_from_slice(&batch.index.0.to_le_bytes());
    header[48..52].copy_from_slice(&commands_len.to_le_bytes());
    header[52..56].copy_from_slice(&len.to_le_bytes());
    header[56..HEADER].copy_from_slice(&batch.digest.to_bytes());
}

/// The whole batch, every payload validated and brought to its current version.
pub fn decode(bytes: Bytes) -> Result<Batch, FrameError> {
    EncodedBatch::check(bytes)?.decode()
}

impl EncodedBatch {
    /// Takes bytes from a disk or a peer.
    ///
    /// Payloads are left alone: they are validated when one is decoded.
    pub fn check(bytes: Bytes) -> Result<EncodedBatch, FrameError> {
        let batch = EncodedBatch::check_part(bytes)?;
        if batch.rows().any(|row| row.left_out) {
            return Err(FrameError::Malformed("only a part of it is there"));
        }
        Ok(batch)
    }

    /// As [`EncodedBatch::check`], also of a batch that only a part is left of.
    pub(crate) fn check_part(bytes: Bytes) -> Result<EncodedBatch, FrameError> {
        if bytes.len() < HEADER {
            return Err(FrameError::Malformed("shorter than its header"));
        }
        let batch = EncodedBatch(bytes);
        match (batch.u16(0), batch.u16(2)) {
            (CODEC, 1..=EPOCH) => {}
            (CODEC, epoch) => return Err(FrameError::UnknownEpoch(epoch)),
            (codec, _) => return Err(FrameError::UnknownCodec(codec)),
        }
        if batch.u32(52) as usize != batch.0.len() {
            return Err(FrameError::Malformed("its length is not what its header says"));
        }
        let payloads = batch.payloads_at();
        if payloads > batch.0.len() {
            return Err(FrameError::Malformed("its tables reach beyond its end"));
        }
        for row in batch.rows() {
            row.check(payloads, batch.0.len(), batch.command_count())?;
        }
        Ok(batch)
    }

    pub fn epoch(&self) -> u16 {
        self.u16(2)
    }

    pub fn index(&self) -> Index {
        Index(self.u64(40))
    }

    /// The index it was decided on.
    pub fn previous(&self) -> Index {
        Index(self.u64(8))
    }

    pub fn time(&self) -> Time {
        Time(self.u64(16) as i64)
    }

    pub fn proposer(&self) -> Uuid {
        Uuid(self.0[24..40].try_into().expect("16 bytes were sliced"))
    }

    /// Of the state it was decided on.
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(self.0[56..HEADER].try_into().expect("a digest's bytes were sliced"))
    }

    pub fn event_count(&self) -> u16 {
        self.u16(4)
    }

    pub fn command_count(&self) -> u16 {
        self.u16(6)
    }

    /// What each event is and what it is about, in order, without looking into a payload.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row> + '_ {
        self.0[HEADER..self.rows_end()].chunks_exact(table::ROW).map(Row::read)
    }

    /// Who asked for what, in order.
    ///
    /// # Errors
    /// [`FrameError::Malformed`] where the command table is not one.
    pub fn commands(&self) -> Result<Vec<CommandRecord>, FrameError> {
        commands::read(&self.0[self.rows_end()..self.payloads_at()], self.command_count())
    }

    /// One event, validated and brought to its current version. `row` is one of [`EncodedBatch::rows`].
    pub fn event(&self, row: &Row) -> Result<Event, FrameError> {
        let payload = self.0.get(row.offset as usize..).and_then(|rest| rest.get(..row.len as usize));
        let payload = payload.ok_or(FrameError::Malformed("the row is of another batch"))?;
        if row.left_out {
            return Err(FrameError::Malformed("the event is no longer kept"));
        }
        registry::decode(row.kind, row.version, payload)
    }

    /// The same batch without the payloads of events that are not `wanted`, to be read and never to be folded: the events that
    /// are left stand where they stood, with who asked for them. What was observed in another cluster is left with its mark.
    /// `None` when nothing is wanted.
    pub fn part(&self, wanted: impl Fn(u16) -> bool) -> Option<EncodedBatch> {
        let commands: BTreeSet<u16> =
            self.rows().filter(|row| wanted(row.kind) && !row.left_out).map(|row| row.command).collect();
        if commands.is_empty() {
            return None;
        }
        let stays = |row: &Row| {
            !row.left_out
                && (wanted(row.kind) || (row.kind == Observed::KIND && commands.contains(&row.command)))
        };
        let mut bytes = AlignedVec::<ALIGN>::with_capacity(self.0.len());
        bytes.extend_from_slice(&self.0[..self.payloads_at()]);
        for (at, mut row) in self.rows().enumerate() {
            if stays(&row) {
                bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
                let payload = &self.0[row.offset as usize..][..row.len as usize];
                row.offset = bytes.len() as u32;
                bytes.extend_from_slice(payload);
            } else {
                (row.left_out, row.offset, row.len) = (true, 0, 0);
            }
            row.write(&mut bytes[HEADER + at * table::ROW..][..table::ROW]);
        }
        let len = bytes.len() as u32;
        bytes[52..56].copy_from_slice(&len.to_le_bytes());
        Some(EncodedBatch(Bytes::from_owner(bytes)))
    }

    /// How many events are in it with their payloads.
    pub fn present(&self) -> usize {
        self.rows().filter(|row| !row.left_out).count()
    }

    pub fn decode(&self) -> Result<Batch, FrameError> {
        let logged = |row: Row| Ok(LoggedEvent { command: row.command, event: self.event(&row)? });
        Ok(Batch {
            epoch: self.epoch(),
            index: self.index(),
            previous: self.previous(),
            digest: self.digest(),
            time: self.time(),
            proposer: self.proposer(),
            commands: self.commands()?,
            events: self.rows().map(logged).collect::<Result<_, FrameError>>()?,
        })
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    fn rows_end(&self) -> usize {
        HEADER + usize::from(self.event_count()) * table::ROW
    }

    fn payloads_at(&self) -> usize {
        self.rows_end() + self.u32(48) as usize
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("2 bytes were sliced"))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("4 bytes were sliced"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes were sliced"))
    }
}

impl std::fmt::Debug for EncodedBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedBatch({:?}, {} events, {} bytes)", self.index(), self.event_count(), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use model::event::{NodeDeregistered, NodeStatusChanged};
    use model::{Actor, Caller, NodeId, NodeStatus, RequestId, Subject, Topic};

    use super::*;

    #[test]
    fn a_batch_survives_its_bytes() {
        let batch = batch();
        let encoded = encode(&batch);
        assert_eq!(decode(encoded.clone().into_bytes()).unwrap(), batch);
        assert_eq!((encoded.index(), encoded.previous(), encoded.time()), (Index(7), Index(6), Time(-5)));
        assert_eq!((encoded.proposer(), encoded.digest()), (batch.proposer, batch.digest));
    }

    #[test]
    fn a_batch_of_nothing_is_its_header() {
        let nothing = Batch { commands: vec![], events: vec![], ..batch() };
        let encoded = encode(&nothing);
        assert_eq!(encoded.bytes().len(), HEADER);
        assert_eq!(encoded.decode().unwrap(), nothing);
    }

    #[test]
    fn callers_keep_what_is_known_of_them() {
        let caller = |accessor: &str, name: &str, address: Option<&str>, agent: &str| {
            let (accessor, name, agent) = (accessor.to_string(), name.to_string(), agent.to_string());
            let address = address.map(|address| address.parse().unwrap());
            let actor = Actor::Caller(Caller { accessor, name, address, agent });
            CommandRecord { request: RequestId::default(), kind: 1, actor }
        };
        let commands = vec![
            caller("", "", None, ""),
            caller("", "", Some("10.0.0.7"), ""),
            caller("a1", "", None, ""),
            caller("a1", "", None, "żółw/1.0"),
            caller("a1", "zażółć", Some("2001:db8::7"), "curl/8.5.0"),
            caller("", "no token", None, ""),
        ];
        let callers = Batch { commands, ..batch() };
        let encoded = encode(&callers);
        assert_eq!(encoded.decode().unwrap(), callers);
        // The last command's description, byte by byte too short.
        let at = encoded.bytes().windows(8).position(|bytes| bytes == b"no token").unwrap();
        for (shift, wrong) in [(-3_isize, 3_u8), (-2, 200)] {
            let mut bytes = encoded.bytes().to_vec();
            bytes[at.checked_add_signed(shift).unwrap()] = wrong;
            assert!(decode(bytes.into()).is_err(), "{shift} {wrong}");
        }
    }

    #[test]
    fn rows_tell_kind_and_subject_without_payloads() {
        let encoded = encode(&batch());
        let rows: Vec<Row> = encoded.rows().collect();
        assert_eq!(rows.iter().map(|row| (row.kind, row.command)).collect::<Vec<_>>(), [(12, 0), (15, 1)]);
        assert!(rows.iter().all(|row| row.topic == Topic::Node && row.version == 1));
        assert!(rows[0].may_be_about(&Subject::Node(NodeId(Uuid::from(1)))));
        assert!(!rows[0].may_be_about(&Subject::Node(NodeId(Uuid::from(2)))));
    }

    #[test]
    fn payloads_are_read_at_any_address() {
        let bytes = encode(&batch()).into_bytes();
        for shift in 0..16 {
            let mut moved = vec![0; shift];
            moved.extend_from_slice(&bytes);
            assert_eq!(decode(Bytes::from(moved).slice(shift..)).unwrap(), batch());
        }
    }

    #[test]
    fn no_damage_makes_the_reader_panic() {
        let bytes = encode(&batch()).into_bytes();
        for at in 0..bytes.len() {
            assert!(decode(bytes.slice(..at)).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= 1 << bit;
                // A flip may make another valid batch: records carry the checksum, frames need not.
                let _ = decode(Bytes::from(damaged));
            }
        }
    }

    #[test]
    fn what_a_newer_release_wrote_is_refused_by_name() {
        let bytes = encode(&batch()).into_bytes();
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.to_vec();
            bytes[at] = to;
            decode(Bytes::from(bytes)).unwrap_err().to_string()
        };
        assert_eq!(
            changed(0, 2),
            "batch codec 2 is not known to this server: it was written by a newer release"
        );
        assert_eq!(
            changed(2, 9),
            "schema epoch 9 is not known to this server: it was written by a newer release"
        );
        let newer = "event kind 12 version 3 is not known to this server: it was written by a newer release";
        assert_eq!(changed(HEADER + 2, 3), newer);
    }

    #[test]
    fn a_part_has_its_events_where_they_stood() {
        let whole = encode(&batch());
        let part = whole.part(|kind| kind == 15).unwrap();
        assert_eq!((part.index(), part.time(), part.digest()), (whole.index(), whole.time(), whole.digest()));
        assert_eq!(part.commands(), whole.commands());
        assert!(part.bytes().len() < whole.bytes().len() && part.present() == 1);
        let rows: Vec<Row> = part.rows().collect();
        assert_eq!(part.event(&rows[1]).unwrap(), batch().events[1].event);
        assert_eq!(part.event(&rows[0]), Err(FrameError::Malformed("the event is no longer kept")));
        // It passes for a batch nowhere else.
        assert!(part.decode().is_err());
        let bytes = part.clone().into_bytes();
        assert_eq!(
            EncodedBatch::check(bytes.clone()),
            Err(FrameError::Malformed("only a part of it is there"))
        );
        assert_eq!(EncodedBatch::check_part(bytes).unwrap(), part);
        assert_eq!(part.part(|kind| kind == 15), Some(part.clone()));
        assert_eq!((part.part(|kind| kind == 11), whole.part(|_| true)), (None, Some(whole)));
    }

    fn batch() -> Batch {
        let record =
            |n: u128, actor| CommandRecord { request: RequestId(Uuid::from(n)), kind: n as u16, actor };
        let changed = NodeStatusChanged {
            node: NodeId(Uuid::from(1)),
            from: NodeStatus::Ready,
            to: NodeStatus::Down,
            message: Some(model::event::NodeMessage::new("Cluster", "heartbeat missed: ü", Time(3))),
        };
        let gone = NodeDeregistered { node: NodeId(Uuid::from(1)) };
        Batch {
            epoch: 1,
            index: Index(7),
            previous: Index(6),
            digest: Digest {
                nodes: 1,
                jobs: 2,
                evals: 3,
                allocs: 4,
                deployments: 6,
                requests: 5,
                cluster: u64::MAX,
            },
            time: Time(-5),
            proposer: Uuid::from(99),
            commands: vec![record(1, Actor::Server("heartbeats".into())), record(2, Actor::ANONYMOUS)],
            events: vec![
                LoggedEvent { command: 0, event: changed.into() },
                LoggedEvent { command: 1, event: gone.into() },
            ],
        }
    }
}
