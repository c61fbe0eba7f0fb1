//! Consensus, the log and the other servers, as the cluster and the operators see them.

use std::sync::Arc;
use std::time::Duration;

use control::leader_client::CallError;
use control::{Control, SubmitError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::{Actor, Autopilot, Command, Request};
use raft::{Member, MemberError, PeerError, RaftJournal};
use wire::Bytes;

use crate::autopilot::Peer;
use crate::cluster::{
    AdminRequest, AdminResult, ClusterFacts, Consensus, ConsensusError, PeerCallError, PeerClient, PeerInfo,
    PeerQuery, Status,
};
use crate::server_connections::{ServerConnections, method};

/// How long another server may take to say who it is.
const PEER_INFO_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the leader may take to remove a server, or to transfer leadership.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(15);

/// The log's members.
pub(crate) struct RaftConsensus(pub Arc<RaftJournal>);

impl Consensus for RaftConsensus {
    fn status(&self) -> Status {
        let status = self.0.status();
        let peers = status.members.iter().map(|member| {
            let own = member.node == status.node;
            let progress = status.progress.get(&member.node);
            let own_contact = own.then_some(Duration::ZERO);
            Peer {
                number: member.node,
                address: member.address.clone(),
                voter: member.voter,
                last_contact: own_contact.or(progress.and_then(|seen| seen.last_contact)).map(Into::into),
                matched: if own { status.last_entry } else { progress.and_then(|seen| seen.matched) },
            }
        });
        Status {
            own: status.node,
            term: status.term,
            leader: status.leader,
            has_log: status.has_log,
            last_entry: status.last_entry.unwrap_or(0),
            dropped: status.dropped,
            peers: peers.collect(),
        }
    }

    fn bootstrap(&self, members: Vec<Member>) -> BoxFuture<'_, Result<(), ConsensusError>> {
        async move { self.0.bootstrap(&members).await.map_err(failed) }.boxed()
    }

    fn add(&self, member: Member, patience: Duration) -> BoxFuture<'_, Result<(), ConsensusError>> {
        async move { self.0.add(member, patience).await.map_err(failed) }.boxed()
    }

    fn remove(&self, number: u64) -> BoxFuture<'_, Result<(), ConsensusError>> {
        async move { self.0.remove(number).await.map_err(failed) }.boxed()
    }

    fn transfer(&self, to: Option<u64>) -> BoxFuture<'_, Result<u64, ConsensusError>> {
        async move { self.0.transfer(to).await.map_err(failed) }.boxed()
    }
}

fn failed(error: MemberError) -> ConsensusError {
    ConsensusError(error.to_string())
}

/// The log's messages go the way of all other calls between servers.
impl raft::Peers for ServerConnections {
    fn call(
        &self,
        _: u64,
        address: &str,
        message: Bytes,
        patience: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let (servers, address) = (self.clone(), address.to_string());
        let carried = async move {
            match servers.call_bytes(&address, method::RAFT, &message, patience).await {
                Ok(answer) => Ok(answer),
                Err(CallError::NotSent(why)) => Err(PeerError::Unreachable(why)),
                // Includes errors that the peer answered itself; consensus tries again in either case.
                Err(CallError::NoAnswer(why)) => Err(PeerError::Refused(why)),
            }
        };
        carried.boxed()
    }
}

impl PeerClient for ServerConnections {
    fn query(
        &self,
        address: String,
        query: PeerQuery,
    ) -> BoxFuture<'static, Result<PeerInfo, PeerCallError>> {
        let servers = self.clone();
        let asked = async move {
            let answer = servers.call(&address, method::PEER_INFO, &query, PEER_INFO_TIMEOUT).await;
            answer.map_err(|error| PeerCallError(error.to_string()))
        };
        asked.boxed()
    }

    fn admin(
        &self,
        address: String,
        request: AdminRequest,
    ) -> BoxFuture<'static, Result<AdminResult, PeerCallError>> {
        let servers = self.clone();
        let ordered = async move {
            let answer = servers.call(&address, method::ADMIN, &request, ADMIN_TIMEOUT).await;
            answer.map_err(|error| PeerCallError(error.to_string()))
        };
        ordered.boxed()
    }
}

impl ClusterFacts for Control {
    fn autopilot(&self) -> Option<Autopilot> {
        self.state().autopilot().cloned()
    }

    fn begin_autopilot(&self, rules: Autopilot) -> BoxFuture<'_, Result<(), SubmitError>> {
        let command = Command::SetAutopilot { rules, only_at: Some(base::Index::ZERO) };
        let request = Request::unnamed(Actor::Server("autopilot".to_string()), command);
        async move {
            match self.submit(request).await {
                // Another server was faster.
                Ok(_) | Err(SubmitError::Rejected(_)) => Ok(()),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn epoch(&self) -> u16 {
        self.state().epoch()
    }

    fn raise_epoch(&self, epoch: u16) -> BoxFuture<'_, Result<(), SubmitError>> {
        let request = Request::unnamed(Actor::Server("upgrade".to_string()), Command::RaiseEpoch { epoch });
        async move { self.submit(request).await.map(|_| ()) }.boxed()
    }
}
