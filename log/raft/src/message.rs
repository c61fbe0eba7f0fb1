//! What servers say to each other, byte by byte: shapes of our own, since the library's may change with every release.
//!
//! Little-endian. A header of 24 bytes, then the fields of the kind in the order they are written below:
//!
//! | at | size | header field |
//! |---|---|---|
//! | 0 | 1 | version, [`VERSION`] |
//! | 1 | 1 | kind |
//! | 2 | 2 | zero |
//! | 4 | 4 | CRC32C of everything after it |
//! | 8 | 8 | number of the server that sends |
//! | 16 | 8 | number of the server it is meant for |
//!
//! A vote is its 17 bytes of [`stored`]. An entry's id that may be missing is a byte (0 or 1), and if it is 1, index (8
//! bytes) and term (8). Bytes come after their length (4). What is left over at the end, or missing, is an error.

use bytes::{BufMut, Bytes};
use journal::EncodedBatch;
use journal::frame::BATCH_BYTES_MAX;
use journal::store;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use openraft::{EntryPayload, LogIdOptionExt};

use crate::config::{Data, Entry, LogId, Types, Vote};
use crate::stored;

pub const VERSION: u8 = 1;
const HEADER: usize = 24;
/// Where the checksum begins to count.
const CHECKED: usize = 8;
/// Entries in one message, blank ones too: bounds what a short message can make a server allocate.
pub const ENTRIES_MAX: usize = 4096;
/// Payload of entries in one message, unless it is a single larger one: enough to use a link of 1 Gbit/s well, and
/// so little that the next heartbeat is not late.
pub const ENTRIES_BYTES_MAX: usize = 1 << 20;
/// The largest message, in bytes: one batch of the largest size, or many small entries.
pub const MESSAGE_BYTES_MAX: usize = BATCH_BYTES_MAX + ENTRIES_BYTES_MAX + ENTRIES_MAX * ENTRY;
/// An entry beside its payload: kind (1), term (8), length (4).
const ENTRY: usize = 13;
/// A log of a million entries a second reaches it after 146,000 years: who says more would have indexes overflow.
const INDEX_MAX: u64 = 1 << 62;
/// A vote, as [`stored::vote_bytes`] makes it.
const VOTE: usize = 17;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Append(Append),
    Vote(VoteRequest<Types>),
    PreVote(VoteRequest<Types>),
    /// The leader asks its successor to take over, and the others to let it.
    Transfer(TransferLeaderRequest<Types>),
    /// Please make the server with this number a member no more.
    Remove {
        node: u64,
    },
    Appended(AppendEntriesResponse<Types>),
    Voted(VoteResponse<Types>),
    /// What was asked for is done, and there is nothing to say about it.
    Done,
}

/// Entries that follow `previous`. Their indexes do too, so they are not sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Append {
    pub vote: Vote,
    pub previous: Option<LogId>,
    pub committed: Option<LogId>,
    pub entries: Vec<Entry>,
}

/// The bytes are not a message for this server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the message is of version {0}: this server speaks version {VERSION}")]
    Version(u8),
    #[error("the message is meant for server {meant}: this is server {here}")]
    Misdirected { meant: u64, here: u64 },
    #[error("the message has {0} bytes: at most {MESSAGE_BYTES_MAX} are taken")]
    TooLarge(usize),
    #[error("the message is malformed: {0}")]
    Fields(String),
}

impl From<AppendEntriesRequest<Types>> for Append {
    fn from(request: AppendEntriesRequest<Types>) -> Append {
        Append {
            vote: request.vote,
            previous: request.prev_log_id,
            committed: request.leader_commit,
            entries: request.entries,
        }
    }
}

impl From<Append> for AppendEntriesRequest<Types> {
    fn from(append: Append) -> AppendEntriesRequest<Types> {
        AppendEntriesRequest {
            vote: append.vote,
            prev_log_id: append.previous,
            leader_commit: append.committed,
            entries: append.entries,
        }
    }
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Append(_) => 1,
            Message::Vote(_) => 2,
            Message::PreVote(_) => 3,
            Message::Transfer(_) => 4,
            Message::Remove { .. } => 5,
            Message::Appended(_) => 65,
            Message::Voted(_) => 66,
            Message::Done => 67,
        }
    }

    pub fn encode(self, from: u64, to: u64) -> Bytes {
        let mut out = Vec::with_capacity(HEADER + self.size_hint());
        out.put_slice(&[VERSION, self.kind(), 0, 0, 0, 0, 0, 0]);
        out.put_u64_le(from);
        out.put_u64_le(to);
        self.write(&mut out);
        let sum = crc32c::crc32c(&out[CHECKED..]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        out.into()
    }

    fn size_hint(&self) -> usize {
        match self {
            Message::Append(append) => {
                let entry = |entry: &Entry| match &entry.payload {
                    EntryPayload::Normal(data) => ENTRY + data.batch.bytes().len(),
                    EntryPayload::Blank | EntryPayload::Membership(_) => ENTRY + 256,
                };
                64 + append.entries.iter().map(entry).sum::<usize>()
            }
            _ => 128,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Message::Append(append) => write_append(append, out),
            Message::Vote(request) | Message::PreVote(request) => {
                out.put_slice(&stored::vote_bytes(&request.vote));
                put_id(out, request.last_log_id);
                out.put_u8(u8::from(request.leadership_transfer));
            }
            Message::Transfer(request) => {
                out.put_slice(&stored::vote_bytes(request.from_leader()));
                out.put_u64_le(*request.to_node_id());
                put_id(out, request.last_log_id().copied());
            }
            Message::Remove { node } => out.put_u64_le(node),
            Message::Appended(answer) => match answer {
                AppendEntriesResponse::Success => out.put_u8(0),
                AppendEntriesResponse::PartialSuccess(upto) => {
                    out.put_u8(1);
                    put_id(out, upto);
                }
                AppendEntriesResponse::Conflict => out.put_u8(2),
                AppendEntriesResponse::HigherVote(vote) => {
                    out.put_u8(3);
                    out.put_slice(&stored::vote_bytes(&vote));
                }
            },
            Message::Voted(answer) => {
                out.put_slice(&stored::vote_bytes(&answer.vote));
                out.put_u8(u8::from(answer.vote_granted));
                put_id(out, answer.last_log_id);
            }
            Message::Done => {}
        }
    }

    /// What `bytes` say, and who sent them, if they are meant for the server `here`. Batches share the bytes.
    pub fn decode(bytes: &Bytes, here: u64) -> Result<(u64, Message), Malformed> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(Malformed::TooLarge(bytes.len()));
        }
        if let Some(version) = bytes.first().filter(|version| **version != VERSION) {
            return Err(Malformed::Version(*version));
        }
        if bytes.len() < HEADER {
            return Err(wrong("it is shorter than its header"));
        }
        let mut fields = Fields(bytes.clone());
        let (_, kind, zero, sum) = (fields.u8()?, fields.u8()?, fields.u16()?, fields.u32()?);
        if zero != 0 || sum != crc32c::crc32c(&bytes[CHECKED..]) {
            return Err(wrong("its checksum is another"));
        }
        let (from, meant) = (fields.u64()?, fields.u64()?);
        if meant != here {
            return Err(Malformed::Misdirected { meant, here });
        }
        let message = read(kind, &mut fields)?;
        match fields.0.len() {
            0 => Ok((from, message)),
            left => Err(wrong(format!("{left} bytes are left over"))),
        }
    }
}

fn write_append(append: Append, out: &mut Vec<u8>) {
    out.put_slice(&stored::vote_bytes(&append.vote));
    put_id(out, append.previous);
    put_id(out, append.committed);
    out.put_u32_le(append.entries.len() as u32);
    for entry in append.entries {
        let entry = stored::stored_entry(entry);
        let (kind, payload) = match entry.payload {
            store::Payload::Blank => (0, Bytes::new()),
            store::Payload::Batch(batch) => (1, batch.bytes().clone()),
            store::Payload::Membership(bytes) => (2, bytes),
        };
        out.put_u8(kind);
        out.put_u64_le(entry.term);
        put_bytes(out, &payload);
    }
}

fn put_id(out: &mut Vec<u8>, id: Option<LogId>) {
    out.put_u8(u8::from(id.is_some()));
    if let Some(id) = id {
        let id = stored::stored_id(&id);
        out.put_u64_le(id.index);
        out.put_u64_le(id.term);
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}

fn read(kind: u8, fields: &mut Fields) -> Result<Message, Malformed> {
    Ok(match kind {
        1 => Message::Append(read_append(fields)?),
        2 => Message::Vote(read_vote_request(fields)?),
        3 => Message::PreVote(read_vote_request(fields)?),
        4 => {
            let (vote, to) = (fields.vote(true)?, fields.u64()?);
            Message::Transfer(TransferLeaderRequest::new(vote, to, fields.id()?))
        }
        5 => Message::Remove { node: fields.u64()? },
        65 => Message::Appended(match fields.u8()? {
            0 => AppendEntriesResponse::Success,
            1 => AppendEntriesResponse::PartialSuccess(fields.id()?),
            2 => AppendEntriesResponse::Conflict,
            3 => AppendEntriesResponse::HigherVote(fields.any_vote()?),
            other => return Err(wrong(format!("{other} is no answer to an append"))),
        }),
        66 => {
            let (vote, granted) = (fields.any_vote()?, fields.bool()?);
            Message::Voted(VoteResponse::new(vote, fields.id()?, granted))
        }
        67 => Message::Done,
        other => return Err(wrong(format!("kind {other} is not known"))),
    })
}

fn read_vote_request(fields: &mut Fields) -> Result<VoteRequest<Types>, Malformed> {
    let (vote, last_log_id) = (fields.vote(false)?, fields.id()?);
    Ok(VoteRequest { vote, last_log_id, leadership_transfer: fields.bool()? })
}

/// Refuses also what openraft takes for granted of a leader: terms that never go back and never exceed its own.
fn read_append(fields: &mut Fields) -> Result<Append, Malformed> {
    let (vote, previous, committed) = (fields.vote(true)?, fields.id()?, fields.id()?);
    let count = fields.u32()? as usize;
    if count > ENTRIES_MAX {
        return Err(wrong(format!("{count} entries are more than {ENTRIES_MAX}")));
    }
    let mut term = previous.map_or(0, |previous| stored::stored_id(&previous).term);
    let mut entries = Vec::with_capacity(count);
    for index in (0..count as u64).map(|nth| previous.next_index().saturating_add(nth)) {
        let (kind, next) = (fields.u8()?, fields.u64()?);
        if next < term || next > vote.leader_id.term {
            return Err(wrong(format!("term {next} is out of order")));
        }
        term = next;
        let payload = fields.bytes()?;
        let payload = match kind {
            0 if payload.is_empty() => EntryPayload::Blank,
            1 => {
                let batch = EncodedBatch::check(payload).map_err(wrong_in("a batch"))?;
                EntryPayload::Normal(Data::logged(batch))
            }
            2 => EntryPayload::Membership(stored::membership(&payload).map_err(wrong_in("the members"))?),
            _ => return Err(wrong(format!("an entry of kind {kind} is not known"))),
        };
        entries.push(Entry { log_id: stored::log_id(store::LogId { index, term }), payload });
    }
    Ok(Append { vote, previous, committed, entries })
}

fn wrong(why: impl Into<String>) -> Malformed {
    Malformed::Fields(why.into())
}

fn wrong_in<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Malformed {
    move |why| wrong(format!("{what}: {why}"))
}

/// What is left to read.
struct Fields(Bytes);

impl Fields {
    fn take(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len > self.0.len() {
            return Err(wrong("it ends too early"));
        }
        Ok(self.0.split_to(len))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.take(N)?[..].try_into().expect("as many bytes were taken"))
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(wrong(format!("{other} is neither yes nor no"))),
        }
    }

    fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn id(&mut self) -> Result<Option<LogId>, Malformed> {
        if !self.bool()? {
            return Ok(None);
        }
        let (index, term) = (self.u64()?, self.u64()?);
        if index > INDEX_MAX {
            return Err(wrong(format!("index {index} is out of reach")));
        }
        Ok(Some(stored::log_id(store::LogId { index, term })))
    }

    fn any_vote(&mut self) -> Result<Vote, Malformed> {
        stored::vote(&self.take(VOTE)?).map_err(wrong_in("the vote"))
    }

    /// A vote that was won, or one that is asked for.
    fn vote(&mut self, won: bool) -> Result<Vote, Malformed> {
        let vote = self.any_vote()?;
        if vote.committed != won {
            return Err(wrong("the vote is not of the kind that belongs to the message"));
        }
        Ok(vote)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use base::{Index, Rng, Time, Uuid};
    use openraft::BasicNode;
    use openraft::vote::leader_id_std::LeaderId;

    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        for message in samples() {
            let bytes = message.clone().encode(7, 9);
            assert_eq!(Message::decode(&bytes, 9), Ok((7, message)));
        }
    }

    #[test]
    fn an_append_has_these_bytes() {
        let entries = vec![Entry { log_id: id(6, 3), payload: EntryPayload::Blank }];
        let append = Append { vote: vote(3, true), previous: Some(id(5, 2)), committed: None, entries };
        let bytes = Message::Append(append).encode(1, 2);
        assert_eq!(bytes[..4], [1, 1, 0, 0]);
        assert_eq!(bytes[8..24], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..41], [3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[41..58], [1, 5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[58..], [0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn another_server_and_another_version_are_refused() {
        let bytes = Message::Done.encode(1, 2);
        let misdirected = Malformed::Misdirected { meant: 2, here: 3 };
        assert_eq!(Message::decode(&bytes, 3), Err(misdirected));
        let mut newer = bytes.to_vec();
        newer[0] = 2;
        assert_eq!(Message::decode(&newer.into(), 2), Err(Malformed::Version(2)));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused() {
        for message in samples() {
            let bytes = message.encode(1, 2);
            for len in 0..bytes.len() {
                assert!(Message::decode(&bytes.slice(..len), 2).is_err());
            }
            for at in 0..bytes.len() {
                let mut changed = bytes.to_vec();
                changed[at] ^= 0x11;
                assert!(Message::decode(&changed.into(), 2).is_err(), "byte {at}");
            }
        }
    }

    /// With a right checksum over wrong fields: an error or another message, and no panic.
    #[test]
    fn any_fields_are_read_without_a_panic() {
        let mut rng = Rng::new(5);
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..2_000 {
            for message in samples() {
                let mut bytes = message.encode(1, 2).to_vec();
                for _ in 0..=rng.below(3) {
                    let at = 1 + rng.below(bytes.len() as u64 - 1) as usize;
                    bytes[at] = rng.next() as u8;
                }
                if rng.below(4) == 0 {
                    bytes.truncate(HEADER + rng.below(bytes.len() as u64) as usize);
                }
                let sum = crc32c::crc32c(&bytes[CHECKED..]);
                bytes[4..8].copy_from_slice(&sum.to_le_bytes());
                match Message::decode(&bytes.into(), 2) {
                    Ok(_) => taken += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(taken > 1_000 && refused > 1_000, "{taken} {refused}");
    }

    #[test]
    fn terms_out_of_order_are_refused() {
        let append = |previous, first, second| {
            let entry = |index, term| Entry { log_id: id(index, term), payload: EntryPayload::Blank };
            let entries = vec![entry(6, first), entry(7, second)];
            let append =
                Append { vote: vote(5, true), previous: Some(id(5, previous)), committed: None, entries };
            Message::decode(&Message::Append(append).encode(1, 2), 2)
        };
        assert!(append(2, 2, 5).is_ok());
        for (previous, first, second) in [(3, 2, 5), (2, 4, 3), (2, 2, 6)] {
            assert!(append(previous, first, second).is_err());
        }
    }

    #[test]
    fn a_vote_belongs_to_its_kind_of_message() {
        let request = VoteRequest::new(vote(3, true), None);
        assert!(Message::decode(&Message::Vote(request).encode(1, 2), 2).is_err());
        let append = Append { vote: vote(3, false), previous: None, committed: None, entries: vec![] };
        assert!(Message::decode(&Message::Append(append).encode(1, 2), 2).is_err());
    }

    fn samples() -> Vec<Message> {
        let asked =
            VoteRequest { vote: vote(3, false), last_log_id: Some(id(8, 2)), leadership_transfer: true };
        let transfer = TransferLeaderRequest::new(vote(3, true), 9, Some(id(8, 3)));
        vec![
            Message::Append(append()),
            Message::Vote(asked.clone()),
            Message::PreVote(VoteRequest::new(vote(4, false), None)),
            Message::Transfer(transfer),
            Message::Remove { node: 77 },
            Message::Appended(AppendEntriesResponse::Success),
            Message::Appended(AppendEntriesResponse::PartialSuccess(Some(id(8, 2)))),
            Message::Appended(AppendEntriesResponse::Conflict),
            Message::Appended(AppendEntriesResponse::HigherVote(vote(9, false))),
            Message::Voted(VoteResponse::new(vote(3, true), Some(id(8, 2)), true)),
            Message::Done,
        ]
    }

    fn append() -> Append {
        let batch = journal::encode(&model::Batch {
            index: Index(1),
            previous: Index(0),
            time: Time(0),
            proposer: Uuid::NIL,
            commands: vec![],
            events: vec![],
        });
        let nodes = BTreeMap::from([(1, BasicNode { addr: "a:4647".into() })]);
        let members = crate::config::Membership::new(vec![BTreeSet::from([1])], nodes).unwrap();
        let payloads = [
            EntryPayload::Membership(members),
            EntryPayload::Blank,
            EntryPayload::Normal(Data::logged(batch)),
        ];
        let entries = (0..).zip(payloads).map(|(index, payload)| Entry { log_id: id(index, 2), payload });
        let entries = entries.collect();
        Append { vote: vote(3, true), previous: None, committed: Some(id(1, 2)), entries }
    }

    fn id(index: u64, term: u64) -> LogId {
        stored::log_id(store::LogId { index, term })
    }

    fn vote(term: u64, committed: bool) -> Vote {
        Vote { leader_id: LeaderId { term, voted_for: 4 }, committed }
    }
}
