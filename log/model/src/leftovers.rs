use base::Duration;
use serde::{Deserialize, Serialize};

use crate::{AllocId, DeploymentId, EvalId};

/// What jobs left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    pub evals: Vec<EvalId>,
    pub allocs: Vec<AllocId>,
    pub deployments: Vec<DeploymentId>,
}

impl Leftovers {
    pub fn len(&self) -> usize {
        self.evals.len() + self.allocs.len() + self.deployments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How long leftovers stay to be looked at after their last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverAges {
    /// Evaluations and allocations of service and system jobs.
    pub evals: Duration,
    /// Those of batch and sysbatch jobs.
    pub batch_evals: Duration,
    pub deployments: Duration,
}

impl LeftoverAges {
    /// However short a time ago.
    pub const NONE: LeftoverAges =
        LeftoverAges { evals: Duration::ZERO, batch_evals: Duration::ZERO, deployments: Duration::ZERO };

    pub fn shortest(&self) -> Duration {
        self.evals.min(self.batch_evals).min(self.deployments)
    }
}
