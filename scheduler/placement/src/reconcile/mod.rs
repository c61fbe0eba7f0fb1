//! What becomes of a group's allocations: one pure decision per group.
//!
//! Start with `group.rs`. The steps have Nomad's order, because later ones depend on sets that earlier ones changed:
//! classes, reconnected allocations, replacements, surplus, updates, canaries, placements. The deployment, which all
//! groups share, is `deployment.rs`.

mod alloc_set;
mod classify;
mod deployment;
mod follow_up;
mod group;
mod job_diff;
mod names;
mod placements;
mod reconciler;
mod reconnect;
mod rescheduling;
mod rolling;
#[cfg(test)]
mod test_alloc;

pub use classify::{NodeCondition, is_expired_unknown, node_condition};
pub use deployment::{GroupDeployment, Rollout, Summary, conclude, fresh_id};
pub use follow_up::FollowUps;
pub use group::{GroupPlan, PlacementRequest, Stop, Update, reconcile};
pub use job_diff::{Definition, is_destructive};
pub use rolling::{NextCheck, allowance};

use base::Time;
use model::EvalId;
use state::State;
use state::eval::Eval;
use state::job::{JobState, JobVersion};

/// What a pass is about: the evaluation with its job, its deployment and the time.
#[derive(Clone, Copy, Debug)]
pub struct PassContext<'a> {
    pub state: &'a State,
    pub eval: &'a Eval,
    pub job: &'a JobState,
    pub rollout: Rollout<'a>,
    pub now: Time,
}

impl PassContext<'_> {
    pub fn eval_id(&self) -> EvalId {
        self.eval.id()
    }

    /// An older version of the job, or a version of an earlier job with the same id.
    pub fn is_older(&self, version: &JobVersion) -> bool {
        let current = self.job.current();
        (version.job_created, version.version) < (current.job_created, current.version)
    }

    pub fn is_current(&self, version: &JobVersion) -> bool {
        let current = self.job.current();
        (version.job_created, version.version) == (current.job_created, current.version)
    }
}
