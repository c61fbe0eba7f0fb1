//! Evaluations.

use base::{Index, Time};
use model::document::Evaluation;
use model::event::{EvalCreated, EvalOutcome, EvalUpdated, EvalsCanceled, EvalsDeleted, NewEval};
use model::{Doc, EvalId, EvalStatus, JobKey, JobType, Trigger};

use super::{Seen, count};

/// One of a job that is not known, or of a kind that is not, is left out.
pub(super) fn observed(seen: &mut Seen, document: &Evaluation) -> Option<(String, u64, Time)> {
    let id: EvalId = document.id.parse().ok()?;
    let status = EvalStatus::from_word(status_word(&document.status))?;
    if seen.state.evals.find(id).is_none() {
        let eval = created(seen, id, status, document)?;
        seen.add(EvalCreated { eval });
    }
    let known = seen.state.evals.lookup(id)?;
    let outcome = outcome(document);
    let desired = match &document.plan_annotations {
        Some(annotations) => Doc::of(&annotations.desired_tg_updates),
        None => known.desired.clone(),
    };
    let description = document.status_description.clone();
    let now = (status, &description, &outcome, &desired);
    // One that has ended does not change any more.
    let before = (known.status, &known.description, &known.outcome, &known.desired);
    if !known.status.is_terminal() && before != now {
        seen.add(EvalUpdated { eval: id, status, description, outcome, desired });
    }
    Some((format!("eval/{id}"), document.modify_index, Time(document.modify_time)))
}

pub(super) fn gone(seen: &mut Seen, id: EvalId) -> String {
    if let Some(eval) = seen.state.evals.lookup(id) {
        if !eval.status.is_terminal() {
            seen.add(EvalsCanceled {
                evals: vec![id],
                cause: "forgotten before its end was seen".to_string(),
            });
        }
        seen.add(EvalsDeleted { evals: vec![id] });
    }
    format!("eval/{id}")
}

/// Nomad writes it with one l or two.
fn status_word(word: &str) -> &str {
    if word == "cancelled" { EvalStatus::Canceled.word() } else { word }
}

/// Indexes of the other cluster mean nothing here, so that none is in it.
fn created(seen: &Seen, id: EvalId, status: EvalStatus, document: &Evaluation) -> Option<NewEval> {
    let key = JobKey::new(&document.namespace, &document.job_id);
    seen.state.jobs.find(&key)?;
    Some(NewEval {
        id,
        key,
        kind: JobType::from_word(&document.kind)?,
        priority: count(document.priority),
        trigger: Trigger::from_word(&document.triggered_by)?,
        status: if status.is_terminal() { EvalStatus::Pending } else { status },
        description: String::new(),
        node: document.node_id.parse().ok(),
        job_modify: Index::ZERO,
        node_modify: Index::ZERO,
        previous: document.previous_eval.parse().ok(),
        wait_until: document.wait_until.time(),
        outcome: EvalOutcome::default(),
    })
}

fn outcome(document: &Evaluation) -> EvalOutcome {
    let queued = document.queued_allocations.iter();
    let failed = &document.failed_tg_allocs;
    EvalOutcome {
        snapshot: Index::ZERO,
        seed: 0,
        now: Time::ZERO,
        queued: queued.map(|(group, number)| (group.clone(), count(*number))).collect(),
        failed_groups: if failed.is_empty() { Doc::default() } else { Doc::of(failed) },
        classes: document.class_eligibility.iter().map(|(class, fits)| (class.clone(), *fits)).collect(),
        escaped: document.escaped_computed_class,
        missing: document.missing_non_node_resources.iter().cloned().collect(),
        next: document.next_eval.parse().ok(),
        blocked: document.blocked_eval.parse().ok(),
        deployment: document.deployment_id.parse().ok(),
    }
}
