use std::sync::Arc;

use base::{StableHash, Uuid};
use model::EvalId;
use model::event::{EvalOutcome, NewEval};

use super::state::Eval;
use crate::domain::Domain;

pub(crate) fn row(row: u32, eval: &Arc<Eval>) -> u64 {
    let mut hash = Domain::Eval.row(row);
    facts(&mut hash, &eval.facts);
    hash.pair(u64::from(eval.job.0), eval.status as u64);
    hash.pair(u64::from(eval.acked), u64::from(eval.gone));
    hash.text(&eval.description);
    outcome(&mut hash, &eval.outcome);
    // Earlier releases did not log it: what they logged keeps its digests.
    if !eval.desired.is_empty() {
        hash.bytes(&eval.desired.0);
    }
    hash.pair(eval.created.0, eval.modified.0);
    hash.pair(eval.create_time.0 as u64, eval.modify_time.0 as u64);
    hash.finish()
}

fn facts(hash: &mut StableHash, facts: &NewEval) {
    hash.id(facts.id);
    hash.text(&facts.key.namespace);
    hash.text(&facts.key.id);
    let states = (facts.kind as u64) | (facts.trigger as u64) << 8 | (facts.status as u64) << 16;
    hash.pair(states, u64::from(facts.priority));
    hash.text(&facts.description);
    optional(hash, facts.node.map(Uuid::from));
    optional(hash, facts.previous.map(Uuid::from));
    hash.pair(facts.job_modify.0, facts.node_modify.0);
    hash.word(facts.wait_until.0 as u64);
    outcome(hash, &facts.outcome);
}

fn outcome(hash: &mut StableHash, outcome: &EvalOutcome) {
    hash.pair(outcome.snapshot.0, u64::from(outcome.escaped));
    hash.pair(outcome.seed, outcome.now.0 as u64);
    hash.pair(outcome.queued.len() as u64, outcome.classes.len() as u64);
    for (group, count) in &outcome.queued {
        hash.text(group);
        hash.word(u64::from(*count));
    }
    for (class, eligible) in &outcome.classes {
        hash.text(class);
        hash.word(u64::from(*eligible));
    }
    hash.word(outcome.missing.len() as u64);
    outcome.missing.iter().for_each(|resource| hash.text(resource));
    hash.bytes(&outcome.failed_groups.0);
    let id = |eval: Option<EvalId>| eval.map(Uuid::from);
    optional(hash, id(outcome.next));
    optional(hash, id(outcome.blocked));
    optional(hash, outcome.deployment.map(Uuid::from));
}

fn optional(hash: &mut StableHash, id: Option<Uuid>) {
    hash.word(u64::from(id.is_some()));
    hash.id(id.unwrap_or_default());
}
