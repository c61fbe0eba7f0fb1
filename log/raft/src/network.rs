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

use crate::bounds::{Bounds, answers};
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
    pub bounds: Arc<Bounds>,
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
    /// Also when the answer is malformed, from another server, or cannot be: [`PeerError::Refused`].
    pub async fn ask(&self, target: u64, address: &str, message: Message) -> Result<Message, PeerError> {
        self.bounds.sends(&message);
        let message = message.encode(self.node, target);
        let call = self.peers.call(target, address, message, self.patience);
        let answer = tokio::time::timeout(self.patience, call).await;
        let answer = answer.map_err(|_| PeerError::TimedOut(self.patience))??;
        let (from, answer) =
            Message::decode(&answer, self.node).map_err(|why| self.bounds.refuse(Some(target), why))?;
        if from != target {
            let why = format!("server {from} answered in place of server {target}");
            return Err(self.bounds.refuse(Some(target), why));
        }
        self.bounds.check(from, &answer).map_err(|why| self.bounds.refuse(Some(from), why))?;
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
        let previous = request.prev_log_id;
        let last = request.entries.last().map_or(previous, |entry| Some(entry.log_id));
        match self.ask(RPCTypes::AppendEntries, Message::Append(request.into())).await? {
            Message::Appended(answer) if answers(&answer, previous, last) => Ok(answer),
            Message::Appended(answer) => {
                let why = format!("it answers {answer:?} to the entries after {previous:?} up to {last:?}");
                Err(Failure::Away(self.unreachable(self.network.bounds.refuse(Some(self.target), why)))
                    .into())
            }
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

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use openraft::raft::AppendEntriesResponse;
    use openraft::vote::leader_id_std::LeaderId;

    use super::*;

    /// Gives the same answer to everything.
    struct Says(Message);

    impl Peers for Says {
        fn call(
            &self,
            node: u64,
            _: &str,
            _: bytes::Bytes,
            _: Duration,
        ) -> BoxFuture<'static, Result<bytes::Bytes, PeerError>> {
            Box::pin(std::future::ready(Ok(self.0.clone().encode(node, 1))))
        }
    }

    fn network(answer: Message) -> Network {
        let patience = Duration::from_secs(1);
        let bounds = Arc::new(Bounds::new(Some(7), patience));
        let (address, peers) = ("a:4647".to_string(), Arc::new(Says(answer)));
        Network { node: 1, address, peers, bounds, patience, pause: patience }
    }

    fn vote(term: u64) -> Vote {
        Vote { leader_id: LeaderId { term, voted_for: 3 }, committed: false }
    }

    #[tokio::test]
    async fn an_answer_with_a_term_that_cannot_be_does_not_reach_consensus() {
        let answers = |vote| {
            [
                Message::Appended(AppendEntriesResponse::HigherVote(vote)),
                Message::Voted(VoteResponse::new(vote, None, false)),
                Message::Installed(vote),
            ]
        };
        for answer in answers(vote(8)) {
            let network = network(answer.clone());
            assert_eq!(network.ask(2, "b:4647", Message::WhichImage).await, Ok(answer));
            assert_eq!(network.bounds.dropped(), 0);
        }
        for answer in answers(vote(u64::MAX)) {
            let network = network(answer);
            let answer = network.ask(2, "b:4647", Message::WhichImage).await;
            assert!(matches!(answer, Err(PeerError::Refused(_))), "{answer:?}");
            assert_eq!(network.bounds.dropped(), 1);
        }
    }

    #[tokio::test]
    async fn an_acknowledgement_of_entries_that_were_not_sent_does_not_reach_consensus() {
        let id = |index| Some(crate::formats::log_id(journal::store::LogId { index, term: 7 }));
        let request = |previous| AppendEntriesRequest {
            vote: Vote { committed: true, ..vote(7) },
            prev_log_id: id(previous),
            leader_commit: None,
            entries: vec![],
        };
        let answer = Message::Appended(AppendEntriesResponse::PartialSuccess(id(9)));
        let mut link = network(answer).new_client(2, &BasicNode { addr: "b:4647".into() }).await;
        let option = RPCOption::new(Duration::from_secs(1));
        assert!(link.append_entries(request(8), option.clone()).await.is_err());
        assert_eq!(link.network.bounds.dropped(), 1);
        assert!(link.append_entries(request(9), option).await.is_ok());
        assert_eq!(link.network.bounds.dropped(), 1);
    }
}
