use std::collections::{BTreeMap, BTreeSet};

use model::command::Plan;
use model::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped,
    AllocsUpdatedInPlace, DeploymentCreated, DeploymentGoalsChanged, DeploymentStatusChanged, RejectedNode,
};
use model::{AllocId, DeploymentId, NodeId, Rejection};
use state::State;
use state::alloc::Alloc;
use state::eval::Eval;
use state::node::NodeRow;

use super::demand::{Demand, demands};
use super::fit::Site;
use super::volumes::unavailable;

/// What of a plan still holds.
#[derive(Debug, Default)]
pub struct Accepted {
    pub stopped: Vec<AllocsStopped>,
    pub placed: Vec<AllocsPlaced>,
    pub preempted: Vec<AllocsPreempted>,
    pub updated: Vec<AllocsUpdatedInPlace>,
    pub unknown: Vec<AllocsMarkedUnknown>,
    pub reconnected: Vec<AllocsReconnected>,
    pub deployment: Option<DeploymentCreated>,
    pub goals: Option<DeploymentGoalsChanged>,
    pub deployment_statuses: Vec<DeploymentStatusChanged>,
    pub rejected: Vec<RejectedNode>,
}

impl Accepted {
    pub fn is_full(&self) -> bool {
        self.rejected.is_empty()
    }

    /// It changes an allocation or a deployment.
    pub fn is_progress(&self) -> bool {
        let allocs = self.placed.is_empty()
            && self.stopped.is_empty()
            && self.updated.is_empty()
            && self.unknown.is_empty()
            && self.reconnected.is_empty();
        let deployments =
            self.deployment.is_none() && self.goals.is_none() && self.deployment_statuses.is_empty();
        !(allocs && deployments)
    }

    pub fn placements(&self) -> u32 {
        self.placed.iter().map(|placed| placed.ids.len() as u32).sum()
    }
}

/// Checks a plan node by node. Only nodes that changed since the plan's snapshot are looked at closely.
///
/// A node that does not take its placements loses everything the plan had for it, so that the scheduler
/// decides again on newer facts. So does a node whose own state the plan was wrong about: what was judged
/// lost or cut off may have come back. Placements of a job that was stopped meanwhile are dropped without
/// a word: there is nothing to decide again.
pub fn check(state: &State, eval: &Eval, plan: &Plan) -> Result<Accepted, Rejection> {
    let is_wanted = state.jobs.get(eval.job).is_wanted();
    let placed: &[AllocsPlaced] = if is_wanted { &plan.placed } else { &[] };
    let demands = demands(state, plan, placed.iter())?;
    let mut rejected = refused(state, plan, &demands);
    for (node, reason) in unavailable(state, plan, placed) {
        reject(&mut rejected, node, &reason);
    }
    for alloc in judged(state, plan, placed) {
        let changed = state.nodes.hot(alloc.node).modified.max(alloc.modified);
        if changed > plan.snapshot {
            let why = "the allocation or its node changed since the plan was made";
            reject(&mut rejected, alloc.node_id, why);
        }
    }
    for placed in placed.iter().filter(|placed| !is_kept(state, eval, placed.version)) {
        let why = "the job version is not wanted any more";
        placed.nodes.iter().for_each(|node| reject(&mut rejected, *node, why));
    }
    for updated in plan.updated.iter().filter(|updated| !is_kept(state, eval, updated.version)) {
        let allocs = updated.allocs.iter().filter_map(|id| state.allocs.lookup(*id));
        allocs.for_each(|alloc| reject(&mut rejected, alloc.node_id, "the job version is not kept any more"));
    }
    let begins = begins(state, eval, plan);
    let has_begun = |id: DeploymentId| {
        begins.is_some_and(|new| new.deployment == id)
            || state.deployments.lookup(id).is_some_and(|known| known.job == eval.job)
    };
    let pending = |id: Option<DeploymentId>| id.is_some_and(|id| !has_begun(id));
    for placed in plan.placed.iter().filter(|placed| pending(placed.deployment)) {
        placed.nodes.iter().for_each(|node| reject(&mut rejected, *node, "its deployment does not begin"));
    }
    for updated in plan.updated.iter().filter(|updated| pending(updated.deployment)) {
        let allocs = updated.allocs.iter().filter_map(|id| state.allocs.lookup(*id));
        allocs.for_each(|alloc| reject(&mut rejected, alloc.node_id, "its deployment does not begin"));
    }
    if plan.all_at_once && !rejected.is_empty() {
        let all = demands.keys();
        all.for_each(|node| reject(&mut rejected, *node, "the plan is accepted all at once or not at all"));
        return Ok(Accepted { rejected: reasons(rejected), ..Accepted::default() });
    }
    let accepted = keep(state, plan, placed, rejected);
    Ok(with_deployments(state, plan, begins, accepted))
}

/// The plan's new deployment, if its version is still the one that is wanted.
fn begins<'a>(state: &State, eval: &Eval, plan: &'a Plan) -> Option<&'a DeploymentCreated> {
    let job = state.jobs.get(eval.job);
    let holds = |new: &&DeploymentCreated| {
        let is_new = state.deployments.find(new.deployment).is_none();
        is_new && job.is_wanted() && new.key == job.key && new.version == job.current().version
    };
    plan.deployment.as_ref().filter(holds)
}

/// A deployment begins with the first part of its plan. One that is over by now is left alone.
fn with_deployments(
    state: &State,
    plan: &Plan,
    begins: Option<&DeploymentCreated>,
    accepted: Accepted,
) -> Accepted {
    let active = |id: DeploymentId| state.deployments.lookup(id).is_some_and(|known| known.is_active());
    let any = !(accepted.placed.is_empty() && accepted.updated.is_empty() && accepted.stopped.is_empty());
    let statuses = plan.deployment_statuses.iter().filter(|changed| active(changed.deployment));
    Accepted {
        deployment: begins.filter(|_| any || accepted.is_full()).cloned(),
        goals: plan.goals.clone().filter(|goals| active(goals.deployment)),
        deployment_statuses: statuses.cloned().collect(),
        ..accepted
    }
}

fn reject(rejected: &mut BTreeMap<NodeId, String>, node: NodeId, reason: &str) {
    rejected.entry(node).or_insert_with(|| reason.to_string());
}

fn reasons(rejected: BTreeMap<NodeId, String>) -> Vec<RejectedNode> {
    rejected.into_iter().map(|(node, reason)| RejectedNode { node, reason }).collect()
}

/// The nodes that do not take what is asked of them.
fn refused(state: &State, plan: &Plan, demands: &BTreeMap<NodeId, Demand>) -> BTreeMap<NodeId, String> {
    let mut leaving: BTreeMap<NodeRow, Vec<&Alloc>> = BTreeMap::new();
    for alloc in leavers(state, plan).filter(|alloc| alloc.takes_room()) {
        leaving.entry(alloc.node).or_default().push(alloc);
    }
    let mut rejected = BTreeMap::new();
    for (node, demand) in demands {
        let Some(row) = state.nodes.find(*node) else {
            reject(&mut rejected, *node, "node does not exist");
            continue;
        };
        let site = Site { state, row, leaving: leaving.remove(&row).unwrap_or_default() };
        if let Err(reason) = site.accepts(demand, plan.snapshot) {
            rejected.insert(*node, reason);
        }
    }
    rejected
}

fn is_kept(state: &State, eval: &Eval, version: u64) -> bool {
    state.jobs.get(eval.job).version(version).is_some()
}

/// What the plan stops and what it has make room, each once.
fn leavers<'a>(state: &'a State, plan: &'a Plan) -> impl Iterator<Item = &'a Alloc> {
    let stopped = plan.stopped.iter().flat_map(|stopped| &stopped.allocs);
    let preempted = plan.preempted.iter().flat_map(|preempted| &preempted.allocs);
    let ids: BTreeSet<AllocId> = stopped.chain(preempted).copied().collect();
    ids.into_iter().filter_map(|id| state.allocs.lookup(id))
}

/// Allocations that the plan gives up, cuts off or replaces: it is right only if they are as it saw them.
fn judged<'a>(
    state: &'a State,
    plan: &'a Plan,
    placed: &'a [AllocsPlaced],
) -> impl Iterator<Item = &'a Alloc> {
    let given_up =
        plan.stopped.iter().filter(|stopped| stopped.client.is_some()).flat_map(|stopped| &stopped.allocs);
    let cut_off = plan.unknown.iter().flat_map(|unknown| &unknown.allocs);
    let replaced = placed.iter().flat_map(|placed| &placed.previous);
    given_up.chain(cut_off).chain(replaced).filter_map(|id| state.allocs.lookup(*id))
}

fn keep(state: &State, plan: &Plan, placed: &[AllocsPlaced], rejected: BTreeMap<NodeId, String>) -> Accepted {
    let here = |id: &AllocId| state.allocs.lookup(*id).filter(|alloc| !rejected.contains_key(&alloc.node_id));
    let lives = |id: &&AllocId| here(id).is_some_and(|alloc| !alloc.is_terminal());
    let stoppable = |id: &&AllocId, client: bool| {
        here(id).is_some_and(|alloc| !alloc.is_stopping() || (client && !alloc.client.is_terminal()))
    };
    let living = |ids: &[AllocId]| ids.iter().filter(lives).copied().collect::<Vec<_>>();
    let stopped = plan.stopped.iter().map(|stopped| {
        let client = stopped.client.is_some();
        let allocs = stopped.allocs.iter().filter(|id| stoppable(id, client)).copied().collect();
        AllocsStopped { allocs, ..stopped.clone() }
    });
    let unknown = plan.unknown.iter();
    let unknown =
        unknown.map(|unknown| AllocsMarkedUnknown { allocs: living(&unknown.allocs), ..unknown.clone() });
    let back = plan.reconnected.iter().map(|back| AllocsReconnected { allocs: living(&back.allocs) });
    let updated = plan.updated.iter();
    let updated =
        updated.map(|updated| AllocsUpdatedInPlace { allocs: living(&updated.allocs), ..updated.clone() });
    let placed = placed.iter().map(|placed| place(state, placed, &rejected));
    let placed: Vec<AllocsPlaced> = placed.filter(|e| !e.ids.is_empty()).collect();
    let ids: BTreeSet<AllocId> = placed.iter().flat_map(|placed| &placed.ids).copied().collect();
    // Nothing is preempted for a placement that was rejected.
    let preempted = plan.preempted.iter().filter(|preempted| ids.contains(&preempted.by));
    let preempted =
        preempted.map(|preempted| AllocsPreempted { allocs: living(&preempted.allocs), ..*preempted });
    Accepted {
        stopped: stopped.filter(|e| !e.allocs.is_empty()).collect(),
        preempted: preempted.filter(|e| !e.allocs.is_empty()).collect(),
        unknown: unknown.filter(|e| !e.allocs.is_empty()).collect(),
        reconnected: back.filter(|e| !e.allocs.is_empty()).collect(),
        updated: updated.filter(|e| !e.allocs.is_empty()).collect(),
        placed,
        rejected: reasons(rejected),
        ..Accepted::default()
    }
}

/// The placements that neither go to a rejected node nor replace something on one.
fn place(state: &State, placed: &AllocsPlaced, rejected: &BTreeMap<NodeId, String>) -> AllocsPlaced {
    if rejected.is_empty() {
        return placed.clone();
    }
    let replaced_stays = |at: usize| {
        let previous = placed.previous.get(at).and_then(|id| state.allocs.lookup(*id));
        previous.is_some_and(|alloc| rejected.contains_key(&alloc.node_id))
    };
    let holds = |at: &usize| !rejected.contains_key(&placed.nodes[*at]) && !replaced_stays(*at);
    let kept: Vec<usize> = (0..placed.ids.len()).filter(holds).collect();
    let width = if placed.ids.is_empty() { 0 } else { placed.ports.len() / placed.ids.len() };
    AllocsPlaced {
        ids: kept.iter().map(|at| placed.ids[*at]).collect(),
        nodes: kept.iter().map(|at| placed.nodes[*at]).collect(),
        names: kept.iter().map(|at| placed.names[*at]).collect(),
        previous: kept.iter().filter_map(|at| placed.previous.get(*at).copied()).collect(),
        ports: kept.iter().flat_map(|at| &placed.ports[at * width..(at + 1) * width]).copied().collect(),
        given: kept.iter().filter_map(|at| placed.given.get(*at).cloned()).collect(),
        ..placed.clone()
    }
}
