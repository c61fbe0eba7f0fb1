//! What only the leader can do or knows about the servers. Any other server forwards the request to it.

use api::{LeadershipTransferResponse, OperatorHealthReply};
use http_gateway::{ClusterError, PeerName};
use serde::{Deserialize, Serialize};

use super::admin::{failed, raft_server, server_health};
use super::{Cluster, Inner, Status};
use crate::autopilot::Peer;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AdminRequest {
    Remove(PeerName),
    Transfer(PeerName),
    Health,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AdminResponse {
    Removed,
    Transferred(LeadershipTransferResponse),
    Health(OperatorHealthReply),
}

impl Cluster {
    /// Answers another server. What needs a leader is rejected unless this server leads: nothing is forwarded twice.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn execute(&self, request: AdminRequest) -> Result<AdminResponse, ClusterError> {
        self.0.inner.execute(request).await
    }
}

impl Inner {
    /// Has the leader do it, this server or another one.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub(super) async fn admin(&self, request: AdminRequest) -> Result<AdminResponse, ClusterError> {
        let status = self.consensus.status();
        if status.leads() {
            return self.execute(request).await;
        }
        let leader = self.leader_of(&status).ok_or(ClusterError::NotLeading { leader: None })?;
        let answer = self.peers.admin(leader.clone(), request).await;
        answer.map_err(|error| {
            ClusterError::Failed(format!("the leader at {leader} did not answer: {error}"))
        })?
    }

    async fn execute(&self, request: AdminRequest) -> Result<AdminResponse, ClusterError> {
        let status = self.consensus.status();
        if !status.leads() {
            return Err(ClusterError::NotLeading { leader: self.leader_of(&status) });
        }
        match request {
            AdminRequest::Remove(peer) => self.remove(&status, &peer).await.map(|()| AdminResponse::Removed),
            AdminRequest::Transfer(to) => self.transfer(&status, &to).await.map(AdminResponse::Transferred),
            AdminRequest::Health => self.health_reply(&status).map(AdminResponse::Health),
        }
    }

    async fn remove(&self, status: &Status, peer: &PeerName) -> Result<(), ClusterError> {
        let number = self.find(status, peer)?.number;
        self.consensus.remove(number).await.map_err(failed)
    }

    async fn transfer(
        &self,
        status: &Status,
        to: &PeerName,
    ) -> Result<LeadershipTransferResponse, ClusterError> {
        let names = self.names();
        let target = self.find(status, to)?;
        let own = status.peers.iter().find(|peer| peer.number == status.own);
        let from = own.map(|own| raft_server(status, &names, own)).unwrap_or_default();
        let noop = target.number == status.own;
        if !noop {
            if !target.voter {
                return Err(ClusterError::Invalid(format!(
                    "{} does not vote: it cannot lead",
                    target.address
                )));
            }
            self.consensus.transfer(Some(target.number)).await.map_err(failed)?;
        }
        let to = raft_server(&self.consensus.status(), &names, target);
        Ok(LeadershipTransferResponse { from, to, noop, err: serde_json::Value::Null })
    }

    /// How the servers are, as of the last look.
    fn health_reply(&self, status: &Status) -> Result<OperatorHealthReply, ClusterError> {
        let names = self.names();
        let judged = self.health.lock().clone();
        // Who leads only since a moment ago has not looked yet: the first look is now.
        let health = judged.unwrap_or_else(|| self.first_judgement(status));
        let servers = health.servers.iter().map(|server| server_health(status, &names, server));
        let id = |peer: &Peer| raft_server(status, &names, peer).id;
        let voters = status.peers.iter().filter(|peer| peer.voter).map(id);
        Ok(OperatorHealthReply {
            healthy: health.healthy,
            failure_tolerance: health.failure_tolerance as i64,
            servers: servers.collect::<Vec<_>>().into(),
            leader: status.peers.iter().find(|peer| peer.number == status.own).map(id).unwrap_or_default(),
            voters: voters.collect::<Vec<_>>().into(),
        })
    }
}
