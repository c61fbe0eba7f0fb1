//! What a recorder reads of another cluster.

use base::Time;
use serde::{Deserialize, Serialize};

use crate::document::{Allocation, Deployment, Evaluation, Job, Namespace, Node, NodePool};
use crate::object::{AllocId, DeploymentId, EvalId, JobKey, NodeId};

/// Most documents of one [`Observe`]: a batch stays small, and other commands do not wait long behind it.
pub const OBSERVED_MAX: usize = 128;

/// Documents that were read of another cluster, in the order in which they are to be taken over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observe {
    /// The address of that cluster.
    pub source: String,
    /// The newest index of that cluster that was seen.
    pub index: u64,
    /// When the answers came.
    pub seen: Time,
    /// At most [`OBSERVED_MAX`].
    pub documents: Vec<Observation>,
}

/// One object as the other cluster shows it, or that it shows it no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Observation {
    Namespace(Box<Namespace>),
    NodePool(Box<NodePool>),
    Node(Box<Node>),
    /// All versions that are known of one job, oldest first.
    Job(Vec<Job>),
    Eval(Box<Evaluation>),
    Deployment(Box<Deployment>),
    /// With its job.
    Alloc(Box<Allocation>),
    Gone(ObservedKey),
}

/// The name of an object in the other cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ObservedKey {
    Namespace(String),
    NodePool(String),
    Node(NodeId),
    Job(JobKey),
    Eval(EvalId),
    Deployment(DeploymentId),
    Alloc(AllocId),
}
