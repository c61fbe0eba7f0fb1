//! Calls from a server that does not lead to the one that does.

use std::future::Future;
use std::pin::Pin;

use base::{Duration, Index, Uuid};
use model::{EvalId, JobType, NodeId, Request, VariableKey};
use serde::{Deserialize, Serialize};

use crate::leader::broker::{Delivery, NotHeld, Release};
use crate::leader::locks::NotRenewed;
use crate::sequencer::{Receipt, SubmitError};

/// A call that only the leader can answer. Servers of different releases call each other: names on the wire stay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LeaderCall {
    Submit(Box<Request>),
    /// Evaluations for a worker; the leader waits up to `patience` for one.
    Dequeue {
        types: Vec<JobType>,
        patience: Duration,
        /// At most so many. Servers of the first releases do not say it, and take one.
        #[serde(default)]
        max: usize,
    },
    /// The worker still works on it.
    Touch {
        eval: EvalId,
        token: u64,
    },
    /// The worker is done with it.
    Ack {
        eval: EvalId,
        token: u64,
    },
    /// The worker gives it back.
    Nack {
        eval: EvalId,
        token: u64,
    },
    /// A node sent a heartbeat, and what it reported was decided.
    #[serde(rename = "Heard")]
    Heartbeat {
        node: NodeId,
    },
    /// The same about several evaluations. Only a leader that delivers several is asked like this, as it is with the two
    /// calls that follow.
    TouchAll(Vec<Delivery>),
    SubmitAll(Vec<Request>),
    Release(Release),
    /// The index that a reader must have seen; `confirmed` by a quorum after the call.
    ReadIndex {
        confirmed: bool,
    },
    /// Keep an image of the state, for the caller to fetch.
    KeepImage,
    /// The holder of a variable's lock goes on holding it.
    RenewLock {
        key: VariableKey,
        lock: Uuid,
    },
    /// A node that is ready says that it is. A leader of an earlier release does not know this call.
    RenewHeartbeat {
        node: NodeId,
    },
}

/// The answer to the call of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeaderAnswer {
    Submitted(Result<Receipt, SubmitError>),
    Dequeued(Option<Delivery>),
    /// To who says how many.
    DequeuedAll(Vec<Delivery>),
    Held(Result<(), NotHeld>),
    HeldAll(Vec<bool>),
    SubmittedAll(Vec<Result<Receipt, SubmitError>>),
    Released,
    /// To both calls: how long the node may be silent now.
    #[serde(rename = "Heard")]
    Heartbeat(Option<Duration>),
    ReadIndex(Option<Index>),
    /// The index of the image that is kept, or why there is none.
    Kept(Result<Index, String>),
    /// `None`: the server does not lead.
    Renewed(Option<Result<(), NotRenewed>>),
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The leader never got the call.
    #[error("the leader cannot be reached: {0}")]
    NotSent(String),
    /// It may have acted on it.
    #[error("the leader did not answer: {0}")]
    NoAnswer(String),
}

pub type Answering = Pin<Box<dyn Future<Output = Result<LeaderAnswer, CallError>> + Send>>;

/// Calls the leader.
pub trait LeaderClient: Send + Sync + 'static {
    /// Calls the server with the number `leader`, and waits up to `patience` for its answer.
    fn call(&self, leader: u64, call: LeaderCall, patience: Duration) -> Answering;
}

/// There are no other servers.
pub struct NoPeers;

impl LeaderClient for NoPeers {
    fn call(&self, leader: u64, _: LeaderCall, _: Duration) -> Answering {
        Box::pin(async move { Err(CallError::NotSent(format!("no way to server {leader}"))) })
    }
}
