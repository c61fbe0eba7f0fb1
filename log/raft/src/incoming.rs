//! Messages from other servers, and the answers to them.

use bytes::Bytes;
use journal::store;
use openraft::raft::AppendEntriesResponse;
use tokio::time::{Instant, sleep_until};

use crate::config::Vote;
use crate::formats::stored_id;
use crate::journal::RaftJournal;
use crate::message::Message;
use crate::peers::PeerError;

impl RaftJournal {
    /// The answer to a message that another server sent with [`crate::Peers::call`].
    ///
    /// # Errors
    /// [`PeerError::Refused`] when it is malformed, not meant for this server, or cannot be from a server of this cluster;
    /// and when this server has left consensus.
    pub async fn answer(&self, message: Bytes) -> Result<Bytes, PeerError> {
        let bounds = &self.network.bounds;
        let decoded = Message::decode(&message, self.network.node);
        let (from, message) = decoded.map_err(|why| bounds.refuse(None, why))?;
        self.check(from, &message).map_err(|why| bounds.refuse(Some(from), why))?;
        let answer = self.act_on(from, message).await?;
        Ok(answer.encode(self.network.node, from))
    }

    /// Whether the server `from` can have sent this.
    fn check(&self, from: u64, message: &Message) -> Result<(), String> {
        self.network.bounds.check(from, message)?;
        match message {
            Message::Append(append) => {
                let entries = append.entries.iter().map(|entry| &entry.log_id);
                self.agrees(&append.vote, append.previous.iter().chain(entries).map(stored_id))
            }
            Message::Offer(offer) => self.agrees(&offer.vote, [offer.picture.meta.last].into_iter()),
            Message::Remove { .. } | Message::WhichImage | Message::Wanted { .. } => {
                match self.is_member(from) {
                    true => Ok(()),
                    false => Err(format!("server {from} is not a member")),
                }
            }
            // Whoever leads or wants to may be a member since this server was away.
            _ => Ok(()),
        }
    }

    /// Whether entries of a leader can be, by what is committed here: every leader since has that. One of an earlier term
    /// may have had something else, and consensus refuses it for its vote.
    fn agrees(&self, vote: &Vote, entries: impl Iterator<Item = store::LogId>) -> Result<(), String> {
        let Some(committed) = self.store.committed() else { return Ok(()) };
        if vote.leader_id.term < committed.term {
            return Ok(());
        }
        let can_be = |entry: &store::LogId| match entry.index <= committed.index {
            true => {
                let own = self.store.term_of(entry.index);
                entry.term <= committed.term && own.is_none_or(|own| own == entry.term)
            }
            false => entry.term >= committed.term,
        };
        match { entries }.find(|entry| !can_be(entry)) {
            None => Ok(()),
            Some(store::LogId { index, term }) => {
                Err(format!("entry {index} of term {term} contradicts what is committed here"))
            }
        }
    }

    async fn act_on(&self, from: u64, message: Message) -> Result<Message, PeerError> {
        Ok(match message {
            Message::Append(append) => {
                let answer = self.raft.append_entries(append.into()).await.map_err(refused)?;
                if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
                    *self.last_contact.lock() = Some(Instant::now());
                }
                Message::Appended(answer)
            }
            Message::Vote(request) => {
                if !request.leadership_transfer {
                    sleep_until(self.votes_from).await;
                }
                Message::Voted(self.raft.vote(request).await.map_err(refused)?)
            }
            Message::PreVote(request) => {
                sleep_until(self.votes_from).await;
                Message::Voted(self.raft.pre_vote(request).await.map_err(refused)?)
            }
            Message::Transfer(request) => {
                let taken = self.raft.handle_transfer_leader(request).await.map_err(refused)?;
                taken.map_err(refused)?;
                Message::Done
            }
            Message::Remove { node, members } => {
                self.remove_of(members, node).await.map_err(refused)?;
                Message::Done
            }
            Message::Offer(offer) => self.take_offer(from, offer)?,
            Message::WhichImage => Message::Image(self.picture()),
            Message::Wanted { chunks, offset } => self.chunks(&chunks, offset)?,
            Message::Appended(_)
            | Message::Voted(_)
            | Message::Done
            | Message::Fetching
            | Message::Installed(_)
            | Message::Image(_)
            | Message::Chunks { .. } => return Err(refused("it is an answer")),
        })
    }
}

fn refused(why: impl std::fmt::Display) -> PeerError {
    PeerError::Refused(why.to_string())
}
