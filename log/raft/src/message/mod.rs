//! Messages between servers, byte by byte: formats of our own, since the library's may change with every release.
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
//! A vote is its 17 bytes of [`formats`](crate::formats). An entry's id that may be missing is a byte (0 or 1), and if it is 1, index (8
//! bytes) and term (8). Bytes come after their length (4). What is left over at the end, or missing, is an error.

mod read;
#[cfg(test)]
mod tests;

use bytes::{BufMut, Bytes};
use journal::frame::BATCH_BYTES_MAX;
use journal::store::{self, ImageMeta};
use model::ChunkId;
use openraft::EntryPayload;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};

use crate::config::{Entry, LogId, Types, Vote};
use crate::formats;
use read::{Fields, read, wrong};

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
/// Chunks asked for at once.
pub const WANTED_MAX: usize = 1024;
/// Bytes of chunks sent at once.
pub const CHUNKS_BYTES_MAX: usize = 1 << 20;
/// A chunk's id.
const CHUNK_ID: usize = 16;
/// An entry beside its payload: kind (1), term (8), length (4).
const ENTRY: usize = 13;
/// A vote, as [`formats::vote_bytes`] makes it.
const VOTE: usize = 17;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Append(Append),
    Vote(VoteRequest<Types>),
    PreVote(VoteRequest<Types>),
    /// The leader asks its successor to take over, and the others to let it.
    Transfer(TransferLeaderRequest<Types>),
    /// Please make the server with this number a member no more, if the members are those of that entry: it may have
    /// been added again before this comes.
    Remove {
        node: u64,
        members: Option<LogId>,
    },
    /// The leader has an image for a server that its log does not reach. Repeated until it is answered with
    /// [`Message::Installed`].
    Offer(Offer),
    /// Which image do you have?
    WhichImage,
    /// Please send the first of these chunks from `offset` on, and as many of the others as fit.
    Wanted {
        chunks: Vec<ChunkId>,
        offset: u64,
    },
    Appended(AppendEntriesResponse<Types>),
    Voted(VoteResponse<Types>),
    /// What was asked for is done, and there is nothing to say about it.
    Done,
    /// The chunks of the image are being fetched.
    Fetching,
    /// The image is in place, or was not needed; with the vote of the server that says so.
    Installed(Vote),
    Image(Option<Picture>),
    /// Chunks in the order in which they were asked for. Of the first one `left` bytes come after these.
    Chunks {
        left: u64,
        chunks: Vec<Bytes>,
    },
}

/// What an image is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    pub meta: ImageMeta,
    pub chunks: Vec<ChunkId>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    pub vote: Vote,
    /// Where the leader can be asked for chunks.
    pub address: String,
    pub picture: Picture,
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
    #[error("the message is of version {0}: this server supports version {VERSION}")]
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
            Message::Offer(_) => 6,
            Message::WhichImage => 7,
            Message::Wanted { .. } => 8,
            Message::Appended(_) => 65,
            Message::Voted(_) => 66,
            Message::Done => 67,
            Message::Fetching => 68,
            Message::Installed(_) => 69,
            Message::Image(_) => 70,
            Message::Chunks { .. } => 71,
        }
    }

    /// The term that it carries.
    pub fn term(&self) -> Option<u64> {
        let vote = match self {
            Message::Append(append) => &append.vote,
            Message::Vote(request) | Message::PreVote(request) => &request.vote,
            Message::Transfer(request) => request.from_leader(),
            Message::Offer(offer) => &offer.vote,
            Message::Appended(AppendEntriesResponse::HigherVote(vote)) | Message::Installed(vote) => vote,
            Message::Voted(answer) => &answer.vote,
            Message::Image(picture) => return picture.as_ref().map(|picture| picture.meta.last.term),
            Message::Appended(_)
            | Message::Remove { .. }
            | Message::WhichImage
            | Message::Wanted { .. }
            | Message::Done
            | Message::Fetching
            | Message::Chunks { .. } => return None,
        };
        Some(vote.leader_id.term)
    }

    /// Who asks, where a vote says so: a leader and a candidate send their own.
    pub fn sender(&self) -> Option<u64> {
        let vote = match self {
            Message::Append(append) => &append.vote,
            Message::Vote(request) | Message::PreVote(request) => &request.vote,
            Message::Transfer(request) => request.from_leader(),
            Message::Offer(offer) => &offer.vote,
            _ => return None,
        };
        Some(vote.leader_id.voted_for)
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
                out.put_slice(&formats::vote_bytes(&request.vote));
                put_id(out, request.last_log_id);
                out.put_u8(u8::from(request.leadership_transfer));
            }
            Message::Transfer(request) => {
                out.put_slice(&formats::vote_bytes(request.from_leader()));
                out.put_u64_le(*request.to_node_id());
                put_id(out, request.last_log_id().copied());
            }
            Message::Remove { node, members } => {
                out.put_u64_le(node);
                put_id(out, members);
            }
            Message::Appended(answer) => match answer {
                AppendEntriesResponse::Success => out.put_u8(0),
                AppendEntriesResponse::PartialSuccess(upto) => {
                    out.put_u8(1);
                    put_id(out, upto);
                }
                AppendEntriesResponse::Conflict => out.put_u8(2),
                AppendEntriesResponse::HigherVote(vote) => {
                    out.put_u8(3);
                    out.put_slice(&formats::vote_bytes(&vote));
                }
            },
            Message::Voted(answer) => {
                out.put_slice(&formats::vote_bytes(&answer.vote));
                out.put_u8(u8::from(answer.vote_granted));
                put_id(out, answer.last_log_id);
            }
            Message::Offer(offer) => {
                out.put_slice(&formats::vote_bytes(&offer.vote));
                put_bytes(out, offer.address.as_bytes());
                put_picture(out, &offer.picture);
            }
            Message::Wanted { chunks, offset } => {
                put_chunk_ids(out, &chunks);
                out.put_u64_le(offset);
            }
            Message::Installed(vote) => out.put_slice(&formats::vote_bytes(&vote)),
            Message::Image(picture) => {
                out.put_u8(u8::from(picture.is_some()));
                picture.iter().for_each(|picture| put_picture(out, picture));
            }
            Message::Chunks { left, chunks } => {
                out.put_u64_le(left);
                out.put_u32_le(chunks.len() as u32);
                chunks.iter().for_each(|chunk| put_bytes(out, chunk));
            }
            Message::WhichImage | Message::Done | Message::Fetching => {}
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
    out.put_slice(&formats::vote_bytes(&append.vote));
    put_id(out, append.previous);
    put_id(out, append.committed);
    out.put_u32_le(append.entries.len() as u32);
    for entry in append.entries {
        let entry = formats::stored_entry(entry);
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
        let id = formats::stored_id(&id);
        out.put_u64_le(id.index);
        out.put_u64_le(id.term);
    }
}

fn put_picture(out: &mut Vec<u8>, picture: &Picture) {
    let ImageMeta { last, index, members, chain } = &picture.meta;
    out.put_u64_le(last.index);
    out.put_u64_le(last.term);
    out.put_u64_le(index.0);
    out.put_u8(u8::from(chain.is_some()));
    chain.iter().for_each(|chain| out.put_slice(&chain.0));
    put_bytes(out, members);
    put_chunk_ids(out, &picture.chunks);
}

fn put_chunk_ids(out: &mut Vec<u8>, chunks: &[ChunkId]) {
    out.put_u32_le(chunks.len() as u32);
    chunks.iter().for_each(|chunk| out.put_slice(&chunk.0));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}
