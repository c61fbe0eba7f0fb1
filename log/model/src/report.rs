use serde::{Deserialize, Serialize};

use crate::codec::compiled_once;

use crate::document::{AllocDeploymentStatus, AllocNetworkStatus, Allocation, Map, TaskState};

compiled_once! { Report }

/// The part of an allocation that only its node knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Report {
    pub task_states: Map<String, TaskState>,
    pub deployment_status: Option<AllocDeploymentStatus>,
    pub network_status: Option<AllocNetworkStatus>,
}

impl Report {
    pub fn of(update: &Allocation) -> Report {
        Report {
            task_states: update.task_states.clone(),
            deployment_status: update.deployment_status.clone(),
            network_status: update.network_status.clone(),
        }
    }
}
