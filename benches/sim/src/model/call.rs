//! What goes over the network between servers, workers, nodes and clients.

use std::collections::BTreeMap;

use base::Duration;
use control::broker::{Delivery, NotHeld};
use control::{Receipt, SubmitError};
use model::command::Settlement;
use model::document::Allocation;
use model::{Command, EvalId, NodeId, Request};

/// Who asks, and is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Client(usize),
    Node(usize),
    Worker { server: usize, worker: usize },
}

/// An end of a wire.
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
            Party::Worker { server, .. } => Place::Server(server),
        }
    }
}

/// A question to the servers.
#[derive(Clone, Debug)]
pub struct Call {
    /// Unique; the answer carries it.
    pub number: u64,
    pub from: Party,
    /// The server that was asked first: the answer comes back through it.
    pub entry: usize,
    pub forwarded: bool,
    pub ask: Ask,
}

#[derive(Clone, Debug)]
pub enum Ask {
    Submit(Request),
    /// A registration or a heartbeat: answered with how long the node may be silent.
    Beat(Request),
    /// `Node.GetClientAllocs`.
    Assigned {
        node: NodeId,
        min_index: u64,
        stale: bool,
    },
    /// `Alloc.GetAllocs`.
    Allocs {
        ids: Vec<String>,
        min_index: u64,
    },
    Dequeue,
    Settle {
        token: u64,
        settlement: Box<Settlement>,
    },
    Ack {
        eval: EvalId,
        token: u64,
    },
    Nack {
        eval: EvalId,
        token: u64,
    },
}

impl Ask {
    pub fn needs_leader(&self) -> bool {
        !matches!(self, Ask::Assigned { stale: true, .. } | Ask::Allocs { .. })
    }

    /// What a node asks.
    pub fn in_words(&self) -> String {
        let Ask::Submit(Request { command: Command::UpdateAllocs { updates, .. }, .. }) = self else {
            return self.name().to_string();
        };
        let told = updates.iter().map(|update| format!("{} {}", &update.id[..8], update.client_status));
        told.collect::<Vec<_>>().join(", ")
    }

    pub fn name(&self) -> &'static str {
        match self {
            Ask::Submit(_) => "command",
            Ask::Beat(_) => "beat",
            Ask::Assigned { .. } => "assigned",
            Ask::Allocs { .. } => "allocations",
            Ask::Dequeue => "dequeue",
            Ask::Settle { .. } => "settle",
            Ask::Ack { .. } => "ack",
            Ask::Nack { .. } => "nack",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Reply {
    Outcome(Result<Receipt, SubmitError>),
    Lease {
        outcome: Result<Receipt, SubmitError>,
        ttl: Duration,
    },
    Assigned {
        index: u64,
        allocs: BTreeMap<String, u64>,
    },
    Allocs(Vec<Allocation>),
    Delivered(Option<Delivery>),
    Held(Result<(), NotHeld>),
    /// The evaluation was taken away from the worker before it could settle it.
    TakenAway,
    NoLeader,
}

impl Reply {
    pub fn name(&self) -> String {
        match self {
            Reply::Outcome(Ok(receipt)) | Reply::Lease { outcome: Ok(receipt), .. } if receipt.wrote => {
                format!("done at {}", receipt.index)
            }
            Reply::Outcome(Ok(_)) | Reply::Lease { outcome: Ok(_), .. } => "nothing to do".to_string(),
            Reply::Outcome(Err(error)) | Reply::Lease { outcome: Err(error), .. } => error.to_string(),
            Reply::Assigned { index, allocs } => format!("{} allocations at {index}", allocs.len()),
            Reply::Allocs(found) => format!("{} allocations", found.len()),
            Reply::Delivered(Some(delivery)) => format!("evaluation {}", delivery.eval),
            Reply::Delivered(None) => "no evaluation".to_string(),
            Reply::Held(held) => format!("{held:?}"),
            Reply::TakenAway => "taken away".to_string(),
            Reply::NoLeader => "no leader".to_string(),
        }
    }
}
