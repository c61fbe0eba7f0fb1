//! Messages from other servers, and the answers to them.

use bytes::Bytes;
use openraft::raft::AppendEntriesResponse;
use tokio::time::{Instant, sleep_until};

use crate::journal::RaftJournal;
use crate::message::Message;
use crate::peers::PeerError;

impl RaftJournal {
    /// The answer to a message that another server sent with [`crate::Peers::call`].
    ///
    /// # Errors
    /// [`PeerError::Refused`] when it is malformed or not meant for this server, or when this server has left consensus.
    pub async fn answer(&self, message: Bytes) -> Result<Bytes, PeerError> {
        let (from, message) = Message::decode(&message, self.network.node).map_err(refused)?;
        let answer = self.act_on(from, message).await?;
        Ok(answer.encode(self.network.node, from))
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
