//! How far each region is with a job that is in several.

use serde::{Deserialize, Serialize};

use crate::object::{DeploymentId, DeploymentStatus};

/// How far other regions are with what a deployment of this one is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserveRollout {
    pub deployment: DeploymentId,
    /// Those that answered, and have begun with it.
    pub peers: Vec<RegionProgress>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionProgress {
    pub region: String,
    pub status: DeploymentStatus,
}
