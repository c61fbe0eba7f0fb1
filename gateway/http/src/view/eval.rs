use std::collections::BTreeSet;

use model::document::{Evaluation, EvaluationStub};
use state::State;
use state::eval::{Eval, document, without_annotations};

/// Most related evaluations that are shown: a job that fails for days makes a chain of thousands.
const RELATED_MAX: usize = 500;

/// The evaluation with what led to it and what it led to.
pub(crate) fn with_related(state: &State, eval: &Eval) -> Evaluation {
    Evaluation { related_evals: related(state, eval).into(), ..document(state, eval) }
}

/// Everything reachable over next, previous and blocked evaluations, nearest first.
fn related(state: &State, eval: &Eval) -> Vec<EvaluationStub> {
    let mut seen = BTreeSet::from([eval.id()]);
    let mut found: Vec<&Eval> = Vec::new();
    let mut at = eval;
    let mut looked_at = 0;
    loop {
        for id in [at.outcome.next, at.facts.previous, at.outcome.blocked].into_iter().flatten() {
            let other = state.evals.lookup(id).filter(|_| found.len() < RELATED_MAX && seen.insert(id));
            found.extend(other);
        }
        let Some(next) = found.get(looked_at) else { break };
        at = next;
        looked_at += 1;
    }
    found.into_iter().map(stub).collect()
}

fn stub(eval: &Eval) -> EvaluationStub {
    let eval = without_annotations(eval);
    EvaluationStub {
        id: eval.id,
        priority: eval.priority,
        kind: eval.kind,
        triggered_by: eval.triggered_by,
        namespace: eval.namespace,
        job_id: eval.job_id,
        node_id: eval.node_id,
        deployment_id: eval.deployment_id,
        status: eval.status,
        status_description: eval.status_description,
        wait_until: eval.wait_until,
        next_eval: eval.next_eval,
        previous_eval: eval.previous_eval,
        blocked_eval: eval.blocked_eval,
        create_index: eval.create_index,
        modify_index: eval.modify_index,
        create_time: eval.create_time,
        modify_time: eval.modify_time,
    }
}
