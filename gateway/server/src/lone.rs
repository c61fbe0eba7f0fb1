//! A server that is the whole cluster, until consensus has peers: nobody is added, nobody else leads.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, SubmitError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::ClusterError;
use model::{Actor, Autopilot, Command, Image, Request, RequestId};
use raft::{Member, RaftJournal};

use crate::autopilot::Peer;
use crate::cluster::{Answer, AskError, AskPeer, Consensus, ConsensusError, Question, Rules, Status};
use crate::snapshot_file::{Meta, States};

pub struct Lone {
    pub log: Arc<RaftJournal>,
    pub control: Control,
}

impl Consensus for Lone {
    fn status(&self) -> Status {
        let status = self.log.status();
        let last_entry = status.last_entry.unwrap_or(0);
        let peer = |member: Member| Peer {
            number: member.node,
            address: member.address,
            voter: member.voter,
            last_contact: Some(base::Duration::ZERO),
            matched: Some(last_entry),
        };
        Status {
            own: status.node,
            term: status.term,
            leader: status.leader,
            has_log: status.last_entry.is_some(),
            last_entry,
            peers: status.members.into_iter().map(peer).collect(),
        }
    }

    fn bootstrap(&self, _: Vec<Member>) -> BoxFuture<'_, Result<(), ConsensusError>> {
        alone()
    }

    fn add(&self, _: Member, _: Duration) -> BoxFuture<'_, Result<(), ConsensusError>> {
        alone()
    }

    fn remove(&self, _: u64) -> BoxFuture<'_, Result<(), ConsensusError>> {
        alone()
    }

    fn transfer(&self, _: Option<u64>) -> BoxFuture<'_, Result<u64, ConsensusError>> {
        alone()
    }
}

fn alone<T: Send + 'static>() -> BoxFuture<'static, Result<T, ConsensusError>> {
    async { Err(ConsensusError("this server is alone: it has no peers to change".to_string())) }.boxed()
}

impl AskPeer for Lone {
    fn ask(&self, address: String, _: Question) -> BoxFuture<'static, Result<Answer, AskError>> {
        async move { Err(AskError(format!("this server asks nobody: not even {address}"))) }.boxed()
    }
}

impl Rules for Lone {
    fn autopilot(&self) -> Option<Autopilot> {
        self.control.state().autopilot().cloned()
    }

    fn begin_autopilot(&self, rules: Autopilot) -> BoxFuture<'_, Result<(), String>> {
        let request = Request {
            id: RequestId::default(),
            actor: Actor::Server("autopilot".to_string()),
            command: Command::SetAutopilot { rules, only_at: Some(base::Index::ZERO) },
        };
        async move {
            match self.control.submit(request).await {
                // Somebody was faster.
                Ok(_) | Err(SubmitError::Rejected(_)) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    }
}

impl States for Lone {
    fn image(&self) -> BoxFuture<'_, Result<(Meta, Image), ClusterError>> {
        async { Err(ClusterError::Failed("this build makes no images of the state yet".to_string())) }.boxed()
    }

    fn install(&self, _: Meta, _: Image) -> BoxFuture<'_, Result<(), ClusterError>> {
        async { Err(ClusterError::Failed("this build takes no images of the state yet".to_string())) }.boxed()
    }
}
