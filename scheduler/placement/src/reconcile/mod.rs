//! What is to become of a group's allocations: one pure decision per group.
//!
//! Start with `group.rs`. It follows the reference's order, because later steps depend on sets that earlier
//! ones changed: classes, returned allocations, replacements, surplus, updates, canaries, placements. What the groups
//! have in common, their deployment, is `deploy.rs`.

mod classify;
mod deploy;
mod due;
mod follow_up;
mod group;
mod names;
mod reconnect;
mod rolling;
#[cfg(test)]
mod sample;
mod sets;
mod wishes;
mod work;

pub use classify::{Fate, fate, is_given_up};
pub use deploy::{Rollout, Stage, Summary, conclude, fresh_id};
pub use follow_up::FollowUps;
pub use group::{GroupPlan, Stop, Update, Wish, reconcile};
pub use rolling::{Again, allowance};

use base::Time;
use model::EvalId;
use state::State;
use state::eval::Eval;
use state::job::{JobState, JobVersion};

/// What a decision is about, and when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub state: &'a State,
    pub eval: &'a Eval,
    pub job: &'a JobState,
    pub rollout: Rollout<'a>,
    pub now: Time,
}

impl Situation<'_> {
    pub fn eval_id(&self) -> EvalId {
        self.eval.id()
    }

    /// An older version of the job as it is wanted, or of an earlier job of its name.
    pub fn is_older(&self, version: &JobVersion) -> bool {
        let current = self.job.current();
        (version.job_created, version.version) < (current.job_created, current.version)
    }

    pub fn is_current(&self, version: &JobVersion) -> bool {
        let current = self.job.current();
        (version.job_created, version.version) == (current.job_created, current.version)
    }
}
