use std::collections::BTreeMap;

use base::{Index, Rng, Time};
use model::command::{EvalEnd, Settlement, Verdict};
use model::event::{EvalOutcome, NewEval};
use model::{Doc, EvalId, EvalStatus, JobType, Trigger};
use state::State;
use state::eval::Eval;

use crate::budget;
use crate::descriptions;
use crate::explanation::Explanation;
use crate::pass::plan_draft::PlanDraft;
use crate::pass::{service, system};
use crate::ranking::memory::Memory;
use crate::reconcile::{PassContext, Rollout};

/// What an evaluation leads to, and why.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// To be submitted unchanged. It always has an `end`, which takes effect if the whole plan is accepted. If the plan
    /// is not, call [`schedule`] again on a newer state, until the [`Attempts`] are spent.
    pub settlement: Settlement,
    pub explanation: Explanation,
}

/// Schedules the evaluation's job.
///
/// `now` is the time of the snapshot or later: one instant for the whole pass. Ids and ports are drawn from
/// `seed`: the same four arguments give the same plan on every machine.
pub fn schedule(state: &State, eval: &Eval, seed: u64, now: Time) -> Outcome {
    schedule_with(&mut Memory::default(), state, eval, seed, now)
}

/// [`schedule`] with what a worker keeps between evaluations: quicker, with the same result.
pub fn schedule_with(memory: &mut Memory, state: &State, eval: &Eval, seed: u64, now: Time) -> Outcome {
    let job = state.jobs.get(eval.job);
    let kind = eval.facts.kind;
    let explanation = Explanation { snapshot: state.index, ..Explanation::default() };
    if !accepts(kind, eval.facts.trigger) {
        return Outcome { settlement: with_inputs(refused(state, eval), seed, now), explanation };
    }
    // What is only to be stopped is in memory already.
    if job.is_wanted()
        && !job.purged
        && let Err(why) = budget::check(state, job.current())
    {
        return Outcome { settlement: with_inputs(failed(state, eval, why), seed, now), explanation };
    }
    let cx = PassContext { state, eval, job, rollout: Rollout::of(state, job), now };
    let draft = if job.purged {
        PlanDraft::new(&cx, seed)
    } else if kind.is_per_node() {
        system::pass(&cx, seed)
    } else {
        service::pass(&cx, seed, memory)
    };
    let Outcome { settlement, explanation } = finish(&cx, seed, draft, explanation);
    Outcome { settlement: with_inputs(settlement, seed, now), explanation }
}

/// Adds the seed and the time, so that the decision can be repeated exactly.
fn with_inputs(mut settlement: Settlement, seed: u64, now: Time) -> Settlement {
    let plan = &mut settlement.plan;
    (plan.seed, plan.now) = (seed, now);
    if let Some(end) = &mut settlement.end {
        let waiting = end.blocked.iter_mut().map(|eval| &mut eval.outcome);
        for outcome in waiting.chain([&mut end.outcome]) {
            (outcome.seed, outcome.now) = (seed, now);
        }
    }
    settlement
}

/// How many plans in a row may fail without progress before the evaluation fails.
pub const fn max_attempts(kind: JobType) -> u32 {
    match kind {
        JobType::Service | JobType::System => 5,
        JobType::Batch | JobType::Sysbatch => 2,
    }
}

/// Consecutive plans of one evaluation that made no progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempts {
    in_vain: u32,
}

impl Attempts {
    /// A plan that was accepted in part is progress: the count begins again.
    pub fn count(&mut self, verdict: &Verdict) {
        self.in_vain = if verdict.progress { 0 } else { self.in_vain + 1 };
    }

    /// The evaluation fails.
    pub fn are_spent(self, kind: JobType) -> bool {
        self.in_vain >= max_attempts(kind)
    }
}

/// How the description of an evaluation begins that was given up.
pub const GIVEN_UP: &str = "maximum attempts reached";

/// Ends an evaluation whose plans were rejected [`max_attempts`] times. `last` is the newest attempt.
pub fn give_up(state: &State, eval: &Eval, seed: u64, last: &Outcome) -> Settlement {
    let end = last.settlement.end.as_ref();
    let known = end.map(|end| end.outcome.clone()).unwrap_or_default();
    let desired = end.map(|end| end.desired.clone()).unwrap_or_default();
    let job = state.jobs.get(eval.job);
    let retried = !eval.facts.kind.is_per_node() && !job.purged;
    let blocked = retried.then(|| NewEval {
        trigger: Trigger::MaxPlanAttempts,
        description: descriptions::CONFLICTS.to_string(),
        ..blocked(eval, seed, job.job_modified, known.clone())
    });
    let outcome = EvalOutcome { blocked: blocked.as_ref().map(|eval| eval.id), next: None, ..known };
    let description = format!("{GIVEN_UP} ({})", max_attempts(eval.facts.kind));
    let end = EvalEnd { status: EvalStatus::Failed, description, outcome, desired, blocked };
    with_inputs(
        Settlement { eval: eval.id(), plan: empty_plan(state), end: Some(end) },
        seed,
        last.settlement.plan.now,
    )
}

/// Which triggers a scheduler accepts. Jobs that run on every node are never rescheduled, so triggers for that are not.
const fn accepts(kind: JobType, trigger: Trigger) -> bool {
    match trigger {
        Trigger::JobRegister
        | Trigger::JobDeregister
        | Trigger::NodeUpdate
        | Trigger::NodeDrain
        | Trigger::AllocStop
        | Trigger::Reconnect
        | Trigger::RollingUpdate
        | Trigger::DeploymentWatcher
        | Trigger::QueuedAllocs
        | Trigger::Preemption
        | Trigger::JobScaling
        | Trigger::FailedFollowUp => true,
        Trigger::PeriodicJob => !matches!(kind, JobType::System),
        Trigger::AllocFailure
        | Trigger::RescheduleLater
        | Trigger::MaxDisconnectTimeout
        | Trigger::MaxPlanAttempts => !kind.is_per_node(),
        Trigger::Scheduled => false,
    }
}

fn refused(state: &State, eval: &Eval) -> Settlement {
    let description = format!("scheduler cannot handle '{}' evaluation reason", eval.facts.trigger);
    failed(state, eval, description)
}

/// Ends an evaluation that ends schedulers: a job that one does not survive must not be given to the next one. The job's next
/// evaluation is another attempt.
pub fn quarantine(state: &State, eval: &Eval, seed: u64, now: Time, why: &str) -> Settlement {
    with_inputs(failed(state, eval, format!("{QUARANTINED}{why}")), seed, now)
}

/// The decision must not be made again, not even to explain it.
pub fn is_quarantined(eval: &Eval) -> bool {
    is_quarantine(eval.status, &eval.description)
}

/// [`is_quarantined`] of an evaluation that ended so.
pub fn is_quarantine(status: EvalStatus, description: &str) -> bool {
    status == EvalStatus::Failed && description.starts_with(QUARANTINED)
}

const QUARANTINED: &str = "quarantined: ";

fn failed(state: &State, eval: &Eval, description: String) -> Settlement {
    let outcome = EvalOutcome { snapshot: state.index, ..EvalOutcome::default() };
    let desired = Doc::default();
    let end = EvalEnd { status: EvalStatus::Failed, description, outcome, desired, blocked: None };
    Settlement { eval: eval.id(), plan: empty_plan(state), end: Some(end) }
}

fn empty_plan(state: &State) -> model::command::Plan {
    model::command::Plan { snapshot: state.index, ..Default::default() }
}

fn finish(cx: &PassContext, seed: u64, draft: PlanDraft, mut explanation: Explanation) -> Outcome {
    let eval = cx.eval;
    let per_node = eval.facts.kind.is_per_node();
    let short = !draft.failed.is_empty();
    let outcome = EvalOutcome {
        snapshot: cx.state.index,
        queued: draft.queued.iter().map(|(group, count)| (group.clone(), *count)).collect(),
        failed_groups: if short { Doc::of(&draft.failed) } else { Doc::default() },
        next: draft.plan.follow_ups.last().map(|eval| eval.id),
        deployment: service::deployment_to_join(cx, &draft),
        ..EvalOutcome::default()
    };
    let waits = EvalOutcome {
        classes: classes(cx.state, &draft),
        escaped: draft.escaped,
        missing: draft.missing.iter().cloned().collect(),
        ..outcome.clone()
    };
    let desired = draft.groups.iter().map(|(name, group)| (name, &group.desired));
    let desired = Doc::of(&desired.collect::<BTreeMap<_, _>>());
    // A per-node job waits only for free resources: a node that fails a static check will not pass it later.
    let waits_for_room = short && (!per_node || draft.full_node.is_some());
    let end = if waits_for_room && !per_node && eval.status == EvalStatus::Blocked {
        let description = eval.description.clone();
        EvalEnd { status: EvalStatus::Blocked, description, outcome: waits, desired, blocked: None }
    } else {
        let blocked = waits_for_room.then(|| NewEval {
            node: draft.full_node,
            ..blocked(eval, seed, cx.job.job_modified, EvalOutcome { next: None, ..waits })
        });
        let outcome = EvalOutcome { blocked: blocked.as_ref().map(|eval| eval.id), ..outcome };
        EvalEnd { desired, blocked, ..EvalEnd::complete(outcome) }
    };
    explanation.groups = draft.groups;
    Outcome { settlement: Settlement { eval: eval.id(), plan: draft.plan, end: Some(end) }, explanation }
}

/// Classes that were checked. Empty if a check depends on more than the class: then classes do not help to unblock.
fn classes(state: &State, draft: &PlanDraft) -> Vec<(String, bool)> {
    if draft.escaped {
        return Vec::new();
    }
    let name = |class: usize| state.nodes.class_name(state::node::ClassRow(class as u32)).to_string();
    let mut classes: Vec<(String, bool)> =
        draft.classes.iter().map(|(class, eligible)| (name(*class), *eligible)).collect();
    // Not by row: rows depend on the order in which nodes registered.
    classes.sort_unstable();
    classes
}

/// An evaluation that waits until there is room for what could not be placed.
fn blocked(eval: &Eval, seed: u64, job_modify: Index, outcome: EvalOutcome) -> NewEval {
    let facts = &eval.facts;
    NewEval {
        id: EvalId(Rng::stream(seed, "blocked evaluation").uuid()),
        key: facts.key.clone(),
        kind: facts.kind,
        priority: facts.priority,
        trigger: Trigger::QueuedAllocs,
        status: EvalStatus::Blocked,
        description: descriptions::BLOCKED.to_string(),
        node: None,
        job_modify,
        node_modify: Index::ZERO,
        previous: Some(eval.id()),
        wait_until: Time::ZERO,
        outcome,
    }
}
