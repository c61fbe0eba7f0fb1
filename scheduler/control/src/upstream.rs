//! What a server that does not lead asks of the one that does.

use std::future::Future;
use std::pin::Pin;

use base::{Duration, Index};
use model::{EvalId, JobType, NodeId, Request};
use serde::{Deserialize, Serialize};

use crate::broker::{Delivery, NotHeld};
use crate::sequencer::{Receipt, SubmitError};

/// A question only the leader can answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LeaderCall {
    Submit(Box<Request>),
    /// An evaluation for a worker; waits that long for one.
    Dequeue {
        types: Vec<JobType>,
        patience: Duration,
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
    /// A node spoke, and what it said was decided.
    Heard {
        node: NodeId,
    },
    /// The index a reader must have seen; `confirmed` by a majority after the question.
    ReadIndex {
        confirmed: bool,
    },
    /// Keep an image of the state, for whoever asks to fetch.
    KeepImage,
}

/// The answer to the call of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeaderAnswer {
    Submitted(Result<Receipt, SubmitError>),
    Dequeued(Option<Delivery>),
    Held(Result<(), NotHeld>),
    /// How long the node may be silent now.
    Heard(Option<Duration>),
    ReadIndex(Option<Index>),
    /// Of the state that is kept, or why there is none.
    Kept(Result<Index, String>),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The leader never got the question.
    #[error("the leader cannot be reached: {0}")]
    NotSent(String),
    /// It may have acted on it.
    #[error("the leader did not answer: {0}")]
    NoAnswer(String),
}

pub type Answering = Pin<Box<dyn Future<Output = Result<LeaderAnswer, CallError>> + Send>>;

/// The way to the leader.
pub trait Upstream: Send + Sync + 'static {
    /// Asks the server with the number `leader`, and waits no longer than `patience` for its answer.
    fn call(&self, leader: u64, call: LeaderCall, patience: Duration) -> Answering;
}

/// There are no other servers.
pub struct Alone;

impl Upstream for Alone {
    fn call(&self, leader: u64, _: LeaderCall, _: Duration) -> Answering {
        Box::pin(async move { Err(CallError::NotSent(format!("no way to server {leader}"))) })
    }
}
