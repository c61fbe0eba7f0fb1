//! What would happen: what a fork is asked. Ours alone; the answer is [`model::document::ForkResult`].

use model::document::{Job, List};
use serde::{Deserialize, Serialize};

use crate::SchedulerConfiguration;

/// The body of `POST /v1/fork`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkRequest {
    /// The moment to begin with; empty: now.
    pub as_of: String,
    /// Made in this order.
    pub changes: List<ForkChange>,
    /// `quiet`, or how much time passes on the fork: `1h`. Empty: `quiet`.
    pub until: String,
    /// How long the fork is kept: `1h`. Empty: it is not.
    pub ttl: String,
}

/// The body of `POST /v1/fork/:id/changes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkChangesRequest {
    /// Made in this order.
    pub changes: List<ForkChange>,
    /// As in [`ForkRequest`].
    pub until: String,
}

/// The body of `POST /v1/fork/:id/advance`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkAdvanceRequest {
    /// How much time passes on its clock: `1h`.
    pub by: String,
}

/// One change. It has exactly one field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkChange {
    /// A node to drain. Nodes are named by their id, the beginning of it, or their name.
    pub drain: Option<String>,
    pub down: Option<ForkDown>,
    pub add: Option<ForkAdd>,
    /// A job to register, as `POST /v1/jobs` takes it.
    pub job: Option<Job>,
    /// A job to stop.
    pub stop: Option<String>,
    pub scale: Option<ForkScale>,
    /// The configuration of the scheduler, as a whole.
    pub scheduler: Option<SchedulerConfiguration>,
}

/// Nodes that fall silent: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkDown {
    pub node: String,
    /// All nodes of a datacenter.
    pub datacenter: String,
}

/// Nodes that join, with nothing on them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkAdd {
    /// The node that they are like.
    pub like: String,
    /// How many; one unless given.
    pub count: Option<i64>,
}

/// A group that gets another count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct ForkScale {
    pub job: String,
    pub group: String,
    pub count: Option<i64>,
}
