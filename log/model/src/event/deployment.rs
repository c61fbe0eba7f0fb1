//! What happened to deployments.

use base::Duration;
use rkyv::{Archive, Deserialize, Serialize};

use crate::object::{DeploymentId, DeploymentStatus, JobKey};

/// A plan began to bring the version into being. Its placements follow in the same batch.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentCreated {
    pub deployment: DeploymentId,
    pub key: JobKey,
    pub version: u64,
    /// Of the evaluations it leads to.
    pub priority: u32,
    pub is_multiregion: bool,
    pub status: DeploymentStatus,
    pub description: String,
    pub groups: Vec<DeploymentGoal>,
}

/// A plan changed what is wanted of groups, or took in more of them. What was counted stays.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentGoalsChanged {
    pub deployment: DeploymentId,
    pub groups: Vec<DeploymentGoal>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentStatusChanged {
    pub deployment: DeploymentId,
    pub status: DeploymentStatus,
    pub description: String,
}

/// The canaries of these groups have proved themselves: the others may follow.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentPromoted {
    pub deployment: DeploymentId,
    pub groups: Vec<String>,
}

/// A deployment that ended long ago is forgotten; its job lives on.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentCollected {
    pub deployment: DeploymentId,
}

/// What a deployment wants of one group.
#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
#[serde(default)]
pub struct DeploymentGoal {
    pub group: String,
    /// On failure, go back to the last version that was stable.
    pub auto_revert: bool,
    pub auto_promote: bool,
    /// Within this time from one success to the next; zero for no limit.
    pub progress_deadline: Duration,
    pub desired_canaries: u32,
    /// Healthy allocations that make it complete.
    pub desired_total: u32,
}
