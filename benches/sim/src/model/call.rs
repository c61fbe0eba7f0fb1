//! What goes over the network between servers, workers, nodes and clients.

use std::collections::BTreeMap;

use base::Duration;
use control::{LeaderAnswer, LeaderCall, Receipt, SubmitError};
use model::document::Allocation;
use model::{Command, NodeId, Request};

/// Who calls, and gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Client(usize),
    Node(usize),
    Worker {
        server: usize,
        worker: usize,
    },
    /// What a server does in the name of other regions, or because of them.
    Federation {
        server: usize,
    },
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Server(usize),
    Node(usize),
    Client(usize),
}

impl Party {
    pub fn place(self) -> Place {
        match self {
            Party::Client(client) => Place::Client(client),
            Party::Node(node) => Place::Node(node),
            Party::Worker { server, .. } | Party::Federation { server } => Place::Server(server),
        }
    }
}

/// A call on its way to a server.
#[derive(Clone, Debug)]
pub struct Call {
    /// Unique; the answer carries it.
    pub number: u64,
    pub from: Party,
    /// The server that was called first: the answer comes back through it.
    pub entry: usize,
    pub forwarded: bool,
    pub ask: Ask,
}

#[derive(Clone, Debug)]
pub enum Ask {
    /// What only the leader answers.
    Leader(LeaderCall),
    /// A registration or a heartbeat: answered with how long the node may be silent.
    Beat(Box<Request>),
    /// `Node.GetClientAllocs`.
    Assigned { node: NodeId, min_index: u64, stale: bool },
    /// `Alloc.GetAllocs`.
    Allocs { ids: Vec<String>, min_index: u64 },
}

impl Ask {
    pub fn submit(request: Request) -> Ask {
        Ask::Leader(LeaderCall::Submit(Box::new(request)))
    }

    pub fn needs_leader(&self) -> bool {
        !matches!(self, Ask::Assigned { stale: true, .. } | Ask::Allocs { .. })
    }

    /// What a node asks.
    pub fn in_words(&self) -> String {
        let Ask::Leader(LeaderCall::Submit(request)) = self else { return self.name().to_string() };
        let Command::UpdateAllocs { updates, .. } = &request.command else { return self.name().to_string() };
        let reported = updates.iter().map(|update| format!("{} {}", &update.id[..8], update.client_status));
        reported.collect::<Vec<_>>().join(", ")
    }

    fn name(&self) -> &'static str {
        match self {
            Ask::Leader(LeaderCall::Submit(_) | LeaderCall::SubmitAll(_)) => "command",
            Ask::Leader(LeaderCall::Dequeue { .. }) => "dequeue",
            Ask::Leader(LeaderCall::Touch { .. } | LeaderCall::TouchAll(_)) => "touch",
            Ask::Leader(LeaderCall::Release(_)) => "release",
            Ask::Leader(LeaderCall::Ack { .. }) => "ack",
            Ask::Leader(LeaderCall::Nack { .. }) => "nack",
            Ask::Leader(LeaderCall::Heartbeat { .. } | LeaderCall::RenewHeartbeat { .. }) | Ask::Beat(_) => {
                "heartbeat"
            }
            Ask::Leader(LeaderCall::ReadIndex { .. }) => "read index",
            Ask::Leader(LeaderCall::KeepImage) => "keep image",
            Ask::Leader(LeaderCall::RenewLock { .. }) => "renew lock",
            Ask::Assigned { .. } => "assigned",
            Ask::Allocs { .. } => "allocations",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Reply {
    Leader(LeaderAnswer),
    Lease { outcome: Result<Receipt, SubmitError>, ttl: Duration },
    Assigned { index: u64, allocs: BTreeMap<String, u64> },
    Allocs(Vec<Allocation>),
    NoLeader,
}

impl Reply {
    pub fn name(&self) -> String {
        match self {
            Reply::Leader(LeaderAnswer::Submitted(outcome)) | Reply::Lease { outcome, .. } => match outcome {
                Ok(receipt) if receipt.wrote => format!("done at {}", receipt.index),
                Ok(_) => "nothing to do".to_string(),
                Err(error) => error.to_string(),
            },
            Reply::Leader(LeaderAnswer::DequeuedAll(deliveries)) => {
                let evals: Vec<String> = deliveries.iter().map(|one| one.eval.to_string()).collect();
                format!("evaluations [{}]", evals.join(", "))
            }
            Reply::Leader(LeaderAnswer::SubmittedAll(outcomes)) => {
                format!(
                    "{} of {} plans done",
                    outcomes.iter().filter(|one| one.is_ok()).count(),
                    outcomes.len()
                )
            }
            Reply::Leader(answer) => format!("{answer:?}"),
            Reply::Assigned { index, allocs } => format!("{} allocations at {index}", allocs.len()),
            Reply::Allocs(found) => format!("{} allocations", found.len()),
            Reply::NoLeader => "no leader".to_string(),
        }
    }
}
