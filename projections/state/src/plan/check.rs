use std::collections::{BTreeMap, BTreeSet};

use model::command::Plan;
use model::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsReconnected, AllocsStopped, AllocsUpdatedInPlace,
    DeploymentCreated, DeploymentGoalsChanged, DeploymentStatusChanged, RejectedNode,
};
use model::{AllocId, DeploymentId, NodeId, NodeStatus, Rejection, Template};

use crate::State;
use crate::alloc::Alloc;
use crate::eval::Eval;
use crate::node::{Amount, NodeRow};

/// What of a plan still holds.
#[derive(Debug, Default)]
pub struct Accepted {
    pub stopped: Vec<AllocsStopped>,
    pub placed: Vec<AllocsPlaced>,
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

    pub fn placements(&self) -> u32 {
        self.placed.iter().map(|placed| placed.ids.len() as u32).sum()
    }
}

/// Checks a plan node by node. Only nodes that changed since the plan's snapshot are looked at closely.
///
/// A node that does not take its placements loses everything the plan had for it, so that the scheduler
/// decides again on newer facts. So does a node whose own state the plan was wrong about: what was judged
/// lost or cut off may have come back.
pub fn check(state: &State, eval: &Eval, plan: &Plan) -> Result<Accepted, Rejection> {
    let asks = asks(state, plan)?;
    let mut rejected = BTreeMap::new();
    for (node, ask) in &asks {
        if let Err(reason) = accepts(state, plan, *node, ask) {
            rejected.insert(*node, reason);
        }
    }
    for alloc in judged(state, plan) {
        let changed = state.nodes.hot(alloc.node).modified.max(alloc.modified);
        if changed > plan.snapshot {
            reject(
                &mut rejected,
                alloc.node_id,
                "the allocation or its node changed since the plan was made",
            );
        }
    }
    let wanted = state.jobs.get(eval.job).is_wanted();
    for placed in plan.placed.iter().filter(|placed| !wanted || !is_kept(state, eval, placed.version)) {
        placed
            .nodes
            .iter()
            .for_each(|node| reject(&mut rejected, *node, "the job version is not wanted any more"));
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
        let all = asks.keys();
        all.for_each(|node| reject(&mut rejected, *node, "the plan is accepted all at once or not at all"));
    }
    let accepted = keep(state, plan, rejected);
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

/// What a plan puts on one node.
#[derive(Default)]
struct Ask {
    amount: Amount,
    allocs: u32,
    ports: Vec<u16>,
}

fn asks(state: &State, plan: &Plan) -> Result<BTreeMap<NodeId, Ask>, Rejection> {
    let mut asks: BTreeMap<NodeId, Ask> = BTreeMap::new();
    let mut ids: BTreeSet<AllocId> = BTreeSet::new();
    for placed in &plan.placed {
        let template: Template = placed.template.read();
        let (count, width) = (placed.ids.len(), template.ports.len());
        let whole = placed.nodes.len() == count
            && placed.names.len() == count
            && placed.ports.len() == count * width
            && (placed.previous.is_empty() || placed.previous.len() == count);
        if !whole {
            return Err(Rejection::PlanInvalid("columns of different lengths".to_string()));
        }
        let amount = Amount {
            cpu_mhz: template.cpu_mhz,
            memory_mib: template.memory_mib,
            disk_mib: template.disk_mib,
        };
        for (at, (id, node)) in placed.ids.iter().zip(&placed.nodes).enumerate() {
            if !ids.insert(*id) || state.allocs.find(*id).is_some() {
                return Err(Rejection::PlanInvalid(format!("allocation {id} is placed twice")));
            }
            let ask = asks.entry(*node).or_default();
            ask.amount = ask.amount.plus(amount);
            ask.allocs += 1;
            ask.ports.extend(&placed.ports[at * width..(at + 1) * width]);
        }
    }
    Ok(asks)
}

fn accepts(state: &State, plan: &Plan, node: NodeId, ask: &Ask) -> Result<(), String> {
    let Some(row) = state.nodes.find(node) else { return Err("node does not exist".to_string()) };
    let hot = state.nodes.hot(row);
    if hot.status != NodeStatus::Ready {
        return Err("node is not ready for placements".to_string());
    }
    if !hot.takes_work() {
        return Err("node is not eligible".to_string());
    }
    if hot.load_changed <= plan.snapshot {
        return Ok(());
    }
    fits(state, plan, row, ask)
}

/// The full check, for a node that changed since the plan's snapshot.
fn fits(state: &State, plan: &Plan, row: NodeRow, ask: &Ask) -> Result<(), String> {
    let hot = state.nodes.hot(row);
    let leaving: Vec<&Alloc> =
        stops(state, plan).filter(|alloc| alloc.node == row && alloc.takes_room()).collect();
    let freed = leaving.iter().fold(Amount::default(), |sum, alloc| sum.plus(alloc.amount()));
    if let Some(dimension) = hot.capacity.exceeded_by(hot.used.minus(freed).plus(ask.amount)) {
        return Err(format!("{dimension} exhausted"));
    }
    if hot.allocs_max > 0 && hot.allocs.saturating_sub(leaving.len() as u32) + ask.allocs > hot.allocs_max {
        return Err("max allocation exceeded".to_string());
    }
    let taken = &state.nodes.load(row).ports;
    let given_back: BTreeSet<u16> = leaving.iter().flat_map(|alloc| alloc.ports.iter().copied()).collect();
    let collides = |port: &&u16| taken.contains(**port) && !given_back.contains(*port);
    match ask.ports.iter().find(collides) {
        Some(port) => Err(format!("port {port} is taken")),
        None => Ok(()),
    }
}

fn is_kept(state: &State, eval: &Eval, version: u64) -> bool {
    state.jobs.get(eval.job).version(version).is_some()
}

fn stops<'a>(state: &'a State, plan: &'a Plan) -> impl Iterator<Item = &'a Alloc> {
    plan.stopped.iter().flat_map(|stopped| &stopped.allocs).filter_map(|id| state.allocs.lookup(*id))
}

/// Allocations that the plan gives up, cuts off or replaces: it is right only if they are as it saw them.
fn judged<'a>(state: &'a State, plan: &'a Plan) -> impl Iterator<Item = &'a Alloc> {
    let given_up =
        plan.stopped.iter().filter(|stopped| stopped.client.is_some()).flat_map(|stopped| &stopped.allocs);
    let cut_off = plan.unknown.iter().flat_map(|unknown| &unknown.allocs);
    let replaced = plan.placed.iter().flat_map(|placed| &placed.previous);
    given_up.chain(cut_off).chain(replaced).filter_map(|id| state.allocs.lookup(*id))
}

fn keep(state: &State, plan: &Plan, rejected: BTreeMap<NodeId, String>) -> Accepted {
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
    let placed = plan.placed.iter().map(|placed| place(state, placed, &rejected));
    Accepted {
        stopped: stopped.filter(|e| !e.allocs.is_empty()).collect(),
        unknown: unknown.filter(|e| !e.allocs.is_empty()).collect(),
        reconnected: back.filter(|e| !e.allocs.is_empty()).collect(),
        updated: updated.filter(|e| !e.allocs.is_empty()).collect(),
        placed: placed.filter(|e| !e.ids.is_empty()).collect(),
        rejected: rejected.into_iter().map(|(node, reason)| RejectedNode { node, reason }).collect(),
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
        ..placed.clone()
    }
}
