use std::slice;

use crate::object::{AllocId, DeploymentId, EvalId, JobKey, NodeId};

/// Which kind of object an event is about. Numbers stand in the log and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Topic {
    /// Of a kind that a newer release added.
    Other = 0,
    Cluster = 1,
    Node = 2,
    Job = 3,
    Evaluation = 4,
    Plan = 5,
    Allocation = 6,
    Deployment = 7,
}

impl Topic {
    pub const fn from_number(number: u8) -> Topic {
        match number {
            1 => Topic::Cluster,
            2 => Topic::Node,
            3 => Topic::Job,
            4 => Topic::Evaluation,
            5 => Topic::Plan,
            6 => Topic::Allocation,
            7 => Topic::Deployment,
            _ => Topic::Other,
        }
    }
}

/// The objects an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The cluster as a whole.
    Cluster,
    Node(NodeId),
    Job(&'a JobKey),
    Evals(&'a [EvalId]),
    Allocs(&'a [AllocId]),
    Deployment(DeploymentId),
}

impl<'a> Subject<'a> {
    pub fn eval(id: &'a EvalId) -> Subject<'a> {
        Subject::Evals(slice::from_ref(id))
    }

    pub fn alloc(id: &'a AllocId) -> Subject<'a> {
        Subject::Allocs(slice::from_ref(id))
    }

    /// The allocations among them: those that the event names itself.
    pub const fn allocs(self) -> &'a [AllocId] {
        match self {
            Subject::Allocs(ids) => ids,
            Subject::Cluster
            | Subject::Node(_)
            | Subject::Job(_)
            | Subject::Evals(_)
            | Subject::Deployment(_) => &[],
        }
    }
}
