use base::Time;
use model::Rejection;
use model::command::{EvalEnd, RegisterJob};
use model::document::{Evaluation, PlanAnnotations};
use model::event::FailedGroups;
use state::State;

use crate::{Explanation, Outcome, schedule};

/// What registering a job would do. Nothing of it is stored.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The state with the job registered and the plan applied.
    pub state: State,
    pub annotations: PlanAnnotations,
    /// Groups that could not be placed completely.
    pub failed: FailedGroups,
    /// Evaluations that the scheduler would create.
    pub created: Vec<Evaluation>,
    pub explanation: Explanation,
}

/// Registers the job on a copy of the state and runs the scheduler on it.
///
/// # Errors
/// As for the registration itself.
pub fn dry_run(state: &State, request: &RegisterJob, seed: u64, now: Time) -> Result<DryRun, Rejection> {
    let (fork, eval) = rules::fork::with_job(state, request, now, seed)?;
    let eval = fork.evals.lookup(eval).expect("the evaluation was just made");
    let Outcome { settlement, explanation } = schedule(&fork, eval, seed, now.max(fork.time));
    let (after, _) = rules::fork::settled(&fork, &settlement, now)?;
    let follow_ups = settlement.plan.follow_ups.iter().map(|eval| eval.id);
    let blocked = settlement.end.iter().flat_map(|end| &end.blocked).map(|eval| eval.id);
    let created = follow_ups.chain(blocked).filter_map(|id| after.evals.lookup(id));
    let created = created.map(|eval| state::eval::document(&after, eval)).collect();
    let settled = after.evals.lookup(settlement.eval).expect("the evaluation is in the copy");
    let annotations = state::eval::annotations(&after, settled).unwrap_or_default();
    let failed = settlement.end.as_ref().map_or_else(FailedGroups::new, failed);
    Ok(DryRun { state: after, annotations, failed, created, explanation })
}

fn failed(end: &EvalEnd) -> FailedGroups {
    model::command::failed_groups(&end.outcome)
}
