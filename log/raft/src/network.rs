//! openraft's network: messages through [`Peers`]. Each call ends in time, so a lost answer wedges nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{BasicNode, RPCTypes};
use tokio::time::sleep;

use crate::config::{Types, Vote};
use crate::machine::Snapshot;
use crate::message::{Message, Offer, Picture};
use crate::peers::{PeerError, Peers};

/// What every connection to another server needs.
#[derive(Clone)]
pub(crate) struct Network {
    pub node: u64,
    /// Where others reach this server.
    pub address: String,
    pub peers: Arc<dyn Peers>,
    /// How long one message and its answer may take.
    pub patience: Duration,
    /// Between two questions whether an image has arrived.
    pub pause: Duration,
}

/// The connection to one of them.
pub(crate) struct Link {
    network: Network,
    target: u64,
    address: String,
}

impl Network {
    /// Asks one server something.
    ///
    /// # Errors
    /// Also when the answer is malformed or from another server: [`PeerError::Refused`].
    pub async fn ask(&self, target: u64, address: &str, message: Message) -> Result<Message, PeerError> {
        let message = message.encode(self.node, target);
        let call = self.peers.call(target, address, message, self.patience);
        let answer = tokio::time::timeout(self.patience, call).await;
        let answer = answer.map_err(|_| PeerError::TimedOut(self.patience))??;
        let (from, answer) =
            Message::decode(&answer, self.node).map_err(|why| PeerError::Refused(why.to_string()))?;
        if from != target {
            return Err(PeerError::Refused(format!("server {from} answered in place of server {target}")));
        }
        Ok(answer)
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Link {
        Link { network: self.clone(), target, address: node.addr.clone() }
    }
}

impl Link {
    async fn ask(&self, action: RPCTypes, message: Message) -> Result<Message, Failure> {
        let answer = self.network.ask(self.target, &self.address, message).await;
        answer.map_err(|error| match error {
            PeerError::TimedOut(timeout) => {
                Failure::Late(Timeout { action, id: self.network.node, target: self.target, timeout })
            }
            // Asking again at once would meet the same.
            PeerError::Unreachable(_) | PeerError::Refused(_) => Failure::Away(self.unreachable(error)),
        })
    }

    fn unreachable(&self, why: impl std::fmt::Display) -> Unreachable<Types> {
        Unreachable::from_string(format!("server {} at {}: {why}", self.target, self.address))
    }

    /// The answer does not match the request.
    fn strange(&self) -> Failure {
        Failure::Away(self.unreachable("it gave an answer to another question"))
    }
}

/// Why there is no answer, in the error types of openraft.
enum Failure {
    Late(Timeout<Types>),
    Away(Unreachable<Types>),
}

impl From<Failure> for RPCError<Types> {
    fn from(failure: Failure) -> RPCError<Types> {
        match failure {
            Failure::Late(late) => late.into(),
            Failure::Away(away) => away.into(),
        }
    }
}

impl From<Failure> for StreamingError<Types> {
    fn from(failure: Failure) -> StreamingError<Types> {
        match failure {
            Failure::Late(late) => late.into(),
            Failure::Away(away) => away.into(),
        }
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = Snapshot;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        match self.ask(RPCTypes::AppendEntries, Message::Append(request.into())).await? {
            Message::Appended(answer) => Ok(answer),
            _ => Err(self.strange().into()),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        match self.ask(RPCTypes::Vote, Message::Vote(request)).await? {
            Message::Voted(answer) => Ok(answer),
            _ => Err(self.strange().into()),
        }
    }

    // Without this, the library counts a missing answer as success.
    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        match self.ask(RPCTypes::Vote, Message::PreVote(request)).await? {
            Message::Voted(answer) => Ok(answer),
            _ => Err(self.strange().into()),
        }
    }

    /// The other server fetches what it lacks, in its own time: it is polled until it has it.
    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: openraft::alias::SnapshotOf<Types, Snapshot>,
        cancel: impl Future<Output = ReplicationClosed> + openraft::OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let Snapshot { meta, chunks } = snapshot.snapshot;
        let picture = Picture { meta, chunks: chunks.into_iter().map(|chunk| chunk.id).collect() };
        let offer = Message::Offer(Offer { vote, address: self.network.address.clone(), picture });
        let mut cancel = pin!(cancel);
        loop {
            let asked = async {
                let answer = self.ask(RPCTypes::InstallSnapshot, offer.clone()).await;
                if let Ok(Message::Fetching) = &answer {
                    sleep(self.network.pause).await;
                }
                answer
            };
            let answer = tokio::select! {
                biased;
                closed = &mut cancel => return Err(closed.into()),
                answer = asked => answer,
            };
            match answer? {
                Message::Fetching => {}
                Message::Installed(vote) => return Ok(SnapshotResponse::new(vote)),
                _ => return Err(self.strange().into()),
            }
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        match self.ask(RPCTypes::TransferLeader, Message::Transfer(request)).await? {
            Message::Done => Ok(Ok(())),
            _ => Err(self.strange().into()),
        }
    }
}
