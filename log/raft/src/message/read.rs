//! Reads messages from bytes. Any bytes give a message or an error.

use base::Index;
use bytes::Bytes;
use journal::EncodedBatch;
use journal::store::{self, Chain, ImageMeta};
use model::ChunkId;
use openraft::raft::{AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use openraft::{EntryPayload, LogIdOptionExt};

use super::{Append, CHUNK_ID, ENTRIES_MAX, Malformed, Message, Offer, Picture, VOTE, WANTED_MAX};
use crate::config::{Data, Entry, LogId, Types, Vote};
use crate::formats;

/// A log of a million entries a second reaches it after 146,000 years: a message with a higher index would make indexes overflow.
const INDEX_MAX: u64 = 1 << 62;

pub(super) fn read(kind: u8, fields: &mut Fields) -> Result<Message, Malformed> {
    Ok(match kind {
        1 => Message::Append(read_append(fields)?),
        2 => Message::Vote(read_vote_request(fields)?),
        3 => Message::PreVote(read_vote_request(fields)?),
        4 => {
            let (vote, to) = (fields.vote(true)?, fields.u64()?);
            Message::Transfer(TransferLeaderRequest::new(vote, to, fields.id_within(&vote)?))
        }
        5 => Message::Remove { node: fields.u64()?, members: fields.id()? },
        65 => Message::Appended(match fields.u8()? {
            0 => AppendEntriesResponse::Success,
            1 => AppendEntriesResponse::PartialSuccess(fields.id()?),
            2 => AppendEntriesResponse::Conflict,
            3 => AppendEntriesResponse::HigherVote(fields.any_vote()?),
            other => return Err(wrong(format!("{other} is no answer to an append"))),
        }),
        66 => {
            let (vote, granted) = (fields.any_vote()?, fields.bool()?);
            Message::Voted(VoteResponse::new(vote, fields.id_within(&vote)?, granted))
        }
        6 => {
            let (vote, address) = (fields.vote(true)?, fields.text()?);
            let picture = fields.picture()?;
            if picture.meta.last.term > vote.leader_id.term {
                return Err(wrong("the image is of a later term than its leader"));
            }
            Message::Offer(Offer { vote, address, picture })
        }
        7 => Message::WhichImage,
        8 => {
            let chunks = fields.chunk_ids()?;
            Message::Wanted { chunks, offset: fields.u64()? }
        }
        67 => Message::Done,
        68 => Message::Fetching,
        69 => Message::Installed(fields.any_vote()?),
        70 => Message::Image(fields.bool()?.then(|| fields.picture()).transpose()?),
        71 => {
            let (left, count) = (fields.u64()?, fields.u32()? as usize);
            if count > WANTED_MAX {
                return Err(wrong(format!("{count} chunks are more than {WANTED_MAX}")));
            }
            let chunks = (0..count).map(|_| fields.bytes()).collect::<Result<_, _>>()?;
            Message::Chunks { left, chunks }
        }
        other => return Err(wrong(format!("kind {other} is not known"))),
    })
}

fn read_vote_request(fields: &mut Fields) -> Result<VoteRequest<Types>, Malformed> {
    let vote = fields.vote(false)?;
    let last_log_id = fields.id_within(&vote)?;
    Ok(VoteRequest { vote, last_log_id, leadership_transfer: fields.bool()? })
}

/// Also rejects what openraft assumes a leader never sends: terms that never go back and never exceed its own.
fn read_append(fields: &mut Fields) -> Result<Append, Malformed> {
    let vote = fields.vote(true)?;
    let (previous, committed) = (fields.id_within(&vote)?, fields.id_within(&vote)?);
    let count = fields.u32()? as usize;
    if count > ENTRIES_MAX {
        return Err(wrong(format!("{count} entries are more than {ENTRIES_MAX}")));
    }
    let mut term = previous.map_or(0, |previous| formats::stored_id(&previous).term);
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
            2 => EntryPayload::Membership(formats::membership(&payload).map_err(wrong_in("the members"))?),
            _ => return Err(wrong(format!("an entry of kind {kind} is not known"))),
        };
        entries.push(Entry { log_id: formats::log_id(store::LogId { index, term }), payload });
    }
    Ok(Append { vote, previous, committed, entries })
}

pub(super) fn wrong(why: impl Into<String>) -> Malformed {
    Malformed::Fields(why.into())
}

fn wrong_in<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Malformed {
    move |why| wrong(format!("{what}: {why}"))
}

/// What is left to read.
pub(super) struct Fields(pub Bytes);

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

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
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

    fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.into()).map_err(wrong_in("a text"))
    }

    fn picture(&mut self) -> Result<Picture, Malformed> {
        let last = store::LogId { index: self.index()?, term: self.u64()? };
        let index = Index(self.u64()?);
        if index.0 > last.index {
            return Err(wrong("an image holds more batches than entries"));
        }
        let chain = if self.bool()? { Some(Chain(self.array()?)) } else { None };
        let members = self.bytes()?;
        formats::image_members(&members).map_err(wrong_in("the members"))?;
        Ok(Picture { meta: ImageMeta { last, index, members, chain }, chunks: self.chunk_ids()? })
    }

    fn chunk_ids(&mut self) -> Result<Vec<ChunkId>, Malformed> {
        let bytes = (self.u32()? as usize).saturating_mul(CHUNK_ID);
        let ids = self.take(bytes)?;
        Ok(ids.chunks_exact(CHUNK_ID).map(|id| ChunkId(id.try_into().expect("16 bytes"))).collect())
    }

    fn index(&mut self) -> Result<u64, Malformed> {
        let index = self.u64()?;
        if index > INDEX_MAX {
            return Err(wrong(format!("index {index} is out of reach")));
        }
        Ok(index)
    }

    fn id(&mut self) -> Result<Option<LogId>, Malformed> {
        if !self.bool()? {
            return Ok(None);
        }
        let (index, term) = (self.index()?, self.u64()?);
        Ok(Some(formats::log_id(store::LogId { index, term })))
    }

    /// No server has an entry of a later term than that of its vote.
    fn id_within(&mut self, vote: &Vote) -> Result<Option<LogId>, Malformed> {
        let id = self.id()?;
        match id.map(|id| formats::stored_id(&id)) {
            Some(id) if id.term > vote.leader_id.term => {
                Err(wrong(format!("entry {} is of term {}, later than the vote's", id.index, id.term)))
            }
            _ => Ok(id),
        }
    }

    fn any_vote(&mut self) -> Result<Vote, Malformed> {
        formats::vote(&self.take(VOTE)?).map_err(wrong_in("the vote"))
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
