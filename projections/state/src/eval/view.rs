use base::Index;
use model::command::failed_groups;
use model::document::{DesiredUpdates, Evaluation, Map, PlanAnnotations};

use super::state::Eval;
use crate::State;
use crate::alloc::stub;

/// The evaluation as Nomad's API shows it.
pub fn document(state: &State, eval: &Eval) -> Evaluation {
    Evaluation { plan_annotations: annotations(state, eval), ..without_annotations(eval) }
}

/// Without what was to become of its groups: that looks at the job's allocations where some were preempted.
pub fn without_annotations(eval: &Eval) -> Evaluation {
    let (facts, outcome) = (&eval.facts, &eval.outcome);
    let text = |id: Option<model::EvalId>| id.map(|id| id.to_string()).unwrap_or_default();
    Evaluation {
        id: facts.id.to_string(),
        priority: i64::from(facts.priority),
        kind: facts.kind.to_string(),
        triggered_by: facts.trigger.to_string(),
        namespace: facts.key.namespace.clone(),
        job_id: facts.key.id.clone(),
        job_modify_index: facts.job_modify.0,
        node_id: facts.node.map(|node| node.to_string()).unwrap_or_default(),
        node_modify_index: facts.node_modify.0,
        deployment_id: outcome.deployment.map(|id| id.to_string()).unwrap_or_default(),
        status: eval.status.to_string(),
        status_description: eval.description.clone(),
        wait_until: facts.wait_until.into(),
        next_eval: text(outcome.next),
        previous_eval: text(facts.previous),
        blocked_eval: text(outcome.blocked),
        failed_tg_allocs: failed_groups(outcome).into_iter().collect(),
        class_eligibility: outcome.classes.iter().cloned().collect(),
        escaped_computed_class: outcome.escaped,
        missing_non_node_resources: outcome.missing.clone().into(),
        queued_allocations: outcome
            .queued
            .iter()
            .map(|(group, count)| (group.clone(), i64::from(*count)))
            .collect(),
        snapshot_index: outcome.snapshot.0,
        create_index: eval.created.0,
        modify_index: eval.modified.0,
        create_time: eval.create_time.0,
        modify_time: eval.modify_time.0,
        ..Evaluation::default()
    }
}

/// What was to become of the groups; `None` before a scheduler looked.
pub fn annotations(state: &State, eval: &Eval) -> Option<PlanAnnotations> {
    if eval.desired.is_empty() {
        return None;
    }
    let desired: Map<String, DesiredUpdates> = eval.desired.read();
    let preempts = desired.values().any(|group| group.preemptions > 0);
    let of_job = state.jobs.get(eval.job).allocs.iter().filter(|_| preempts);
    let placed = of_job.map(|row| state.allocs.get(*row)).filter(|alloc| alloc.eval == eval.id());
    let preempted = placed.flat_map(|alloc| alloc.preempted.iter().copied());
    let preempted = preempted.filter_map(|id| state.allocs.lookup(id));
    let preempted_allocs = preempted.map(|alloc| stub(state, alloc)).collect();
    Some(PlanAnnotations { desired_tg_updates: desired, preempted_allocs })
}

impl Eval {
    /// For a blocked evaluation: since it last looked, room appeared on nodes it may use, or what it missed came.
    ///
    /// A class it never saw counts: the node may be new.
    pub fn may_be_unblocked(&self, state: &State) -> bool {
        let gained = |since: Index| since > self.outcome.snapshot;
        let came = |resource: &String| state.volumes.came(resource, self.outcome.snapshot);
        self.outcome.missing.iter().any(came)
            || state.nodes.classes().any(|(class, name)| {
                gained(state.nodes.capacity_since(class))
                    && (self.outcome.escaped || !self.is_ruled_out(name))
            })
    }

    fn is_ruled_out(&self, class: &str) -> bool {
        self.outcome.classes.iter().any(|(name, eligible)| name == class && !eligible)
    }
}
