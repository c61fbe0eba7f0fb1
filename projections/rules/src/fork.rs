//! Forks: private copies of the state, which show what a command would lead to.

use base::{Rng, Time};
use model::command::{RegisterJob, Settlement};
use model::document::Node;
use model::event::{EvalCreated, Event, NodeRegistered, NodeStatusChanged, NodeUpdated};
use model::{
    Actor, Command, CommandRecord, Doc, EvalId, JobType, NodeId, NodeStatus, Rejection, RequestId, Trigger,
};
use state::{Delta, Moment, State};

use crate::decision::{Context, Decision};
use crate::{eval, job, node, plan};

/// The state with the job registered, and the evaluation that looks at it: also of a job that would wait for its
/// time, and also while registration is closed.
///
/// # Errors
/// As for the registration itself.
pub fn with_job(
    state: &State,
    request: &RegisterJob,
    now: Time,
    seed: u64,
) -> Result<(State, EvalId), Rejection> {
    let mut fork = state.clone();
    if let Some(scheduler) = &mut fork.operator.scheduler {
        scheduler.rules.reject_job_registration = false;
    }
    let at = moment(&fork, now);
    // The bound is the servers' own, and kept before anything is tried out.
    let mut ctx = Context::new(at.index, at.time, seed).with_job_count_max(i64::MAX);
    let mut decision = job::decide::register(&fork, &mut ctx, request)?;
    if decision.reply().evals.is_empty() {
        let key = job::decide::key_of(&request.job)?;
        let kind = JobType::from_word(request.job.kind.as_deref().unwrap_or_default());
        let kind = kind.expect("a job of an unknown type is not registered");
        let priority = job::decide::priority_of(&request.job);
        let eval = eval::new(&mut ctx, &key, kind, priority, Trigger::JobRegister);
        decision.events.push(EvalCreated { eval }.into());
    }
    let eval = decision.reply().evals[0];
    fold(&mut fork, at, 0, &decision.events);
    Ok((fork, eval))
}

/// The state with a worker's result in it.
///
/// # Errors
/// As for the settlement itself.
pub fn settled(state: &State, settlement: &Settlement, now: Time) -> Result<(State, Decision), Rejection> {
    let mut fork = state.clone();
    let at = moment(&fork, now);
    let mut ctx = Context::new(at.index, at.time, settlement_seed(settlement));
    let decision = plan::decide::settle(state, &mut ctx, settlement)?;
    fold(&mut fork, at, 0, &decision.events);
    Ok((fork, decision))
}

/// Puts a worker's result into a state that further plans are made on. The index stays that of the state, because what
/// follows is planned on that. False when the result is not accepted in full, and not in the state then.
pub fn put_ahead(state: &mut State, settlement: &Settlement, now: Time) -> bool {
    let at = moment(state, now);
    let mut ctx = Context::new(at.index, at.time, settlement_seed(settlement));
    let Ok(decision) = plan::decide::settle(state, &mut ctx, settlement) else { return false };
    let is_full = decision.verdict.as_ref().is_some_and(|verdict| verdict.full);
    if is_full {
        state.absorb(at, &record(0), decision.events.iter(), &mut Delta::default());
    }
    is_full
}

/// The state after one more command.
///
/// # Errors
/// As for the command itself.
pub fn after(state: &State, command: &Command, now: Time, seed: u64) -> Result<State, Rejection> {
    let mut fork = state.clone();
    let at = moment(&fork, now);
    let mut ctx = Context::new(at.index, at.time, seed);
    let decision = crate::decide(&fork, &mut ctx, &Actor::ANONYMOUS, command)?;
    fold(&mut fork, at, command.kind(), &decision.events);
    Ok(fork)
}

/// The state in which the node describes itself like this. One that is not known yet has joined and is ready.
pub fn with_node(state: &State, node: NodeId, document: &Node, now: Time) -> State {
    let (class, document) = (node::computed_class(document), Doc::of(document));
    if state.nodes.find(node).is_some() {
        return with_events(state, &[NodeUpdated { node, document, computed_class: class }.into()], now);
    }
    let joined = NodeRegistered { node, document, computed_class: class, secret_hash: [0; 32] };
    let from = NodeStatus::Initializing;
    let ready = NodeStatusChanged { node, from, to: NodeStatus::Ready, message: None };
    with_events(state, &[joined.into(), ready.into()], now)
}

/// The state in which the node is ready, whatever it was.
pub fn with_ready(state: &State, node: NodeId, now: Time) -> State {
    let Some(row) = state.nodes.find(node) else { return state.clone() };
    let from = state.nodes.hot(row).status;
    with_events(state, &[NodeStatusChanged { node, from, to: NodeStatus::Ready, message: None }.into()], now)
}

fn with_events(state: &State, events: &[Event], now: Time) -> State {
    let mut fork = state.clone();
    let at = moment(&fork, now);
    fold(&mut fork, at, 0, events);
    fork
}

fn moment(state: &State, now: Time) -> Moment {
    Moment { index: state.index.next(), time: now.max(state.time), epoch: state.epoch() }
}

/// A stream of its own: what was registered in the fork may have taken its ids from the same seed.
fn settlement_seed(settlement: &Settlement) -> u64 {
    Rng::stream(settlement.plan.seed, "settlement in a fork").next()
}

fn fold(fork: &mut State, at: Moment, kind: u16, events: &[Event]) {
    let mut delta = Delta::default();
    fork.absorb(at, &record(kind), events.iter(), &mut delta);
    fork.seal(at, &delta);
}

fn record(kind: u16) -> CommandRecord {
    CommandRecord { request: RequestId::default(), kind, actor: Actor::ANONYMOUS }
}
