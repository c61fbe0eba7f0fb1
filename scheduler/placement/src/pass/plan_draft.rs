//! The plan in progress, in the columns that the log stores.

use std::collections::{BTreeMap, BTreeSet};

use base::Rng;
use model::command::Plan;
use model::document::AllocationMetric;
use model::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped,
    AllocsUpdatedInPlace, FailedGroups,
};
use model::{AllocId, ClientStatus, DeploymentId, Desired, Doc, EvalId, NodeId, Template};
use state::alloc::Alloc;

use crate::explanation::GroupExplanation;
use crate::feasibility::dedicated::Assignment;
use crate::reconcile::{PassContext, Stop};

/// What a pass has decided so far.
#[derive(Debug)]
pub struct PlanDraft {
    pub plan: Plan,
    /// Allocations that are still missing by group once the plan is applied.
    pub queued: BTreeMap<String, u32>,
    pub failed: FailedGroups,
    /// Node classes by number that were checked, and whether some group found them eligible.
    pub classes: BTreeMap<usize, bool>,
    pub escaped: bool,
    /// What is missing apart from free resources, such as volumes that are not registered.
    pub missing: BTreeSet<String>,
    /// For jobs that run on every node: the first node without room.
    pub full_node: Option<NodeId>,
    pub groups: BTreeMap<String, GroupExplanation>,
    ids: Rng,
    stopped: BTreeSet<AllocId>,
}

impl PlanDraft {
    pub fn new(cx: &PassContext, seed: u64) -> PlanDraft {
        let all_at_once = !cx.job.purged && cx.job.current().job.all_at_once.unwrap_or(false);
        PlanDraft {
            plan: Plan { snapshot: cx.state.index, all_at_once, ..Plan::default() },
            queued: BTreeMap::new(),
            failed: FailedGroups::new(),
            classes: BTreeMap::new(),
            escaped: false,
            missing: BTreeSet::new(),
            full_node: None,
            groups: BTreeMap::new(),
            ids: Rng::stream(seed, "allocations"),
            stopped: BTreeSet::new(),
        }
    }

    /// Stops with the same description share an event. An allocation is stopped once.
    pub fn stop(&mut self, stop: &Stop) {
        if !self.stopped.insert(stop.alloc.id) {
            return;
        }
        let Stop { alloc, description, client, follow_up } = *stop;
        let same = |event: &&mut AllocsStopped| {
            event.description == description && event.client == client && event.follow_up == follow_up
        };
        match self.plan.stopped.iter_mut().find(same) {
            Some(event) => event.allocs.push(alloc.id),
            None => self.plan.stopped.push(AllocsStopped {
                allocs: vec![alloc.id],
                desired: Desired::Stop,
                description: description.to_string(),
                client,
                follow_up,
            }),
        }
    }

    /// Marks as lost what was being stopped on a node that is down or deleted, because no report will come.
    pub fn stop_unreachable<'a>(&mut self, cx: &PassContext<'a>, allocs: impl Iterator<Item = &'a Alloc>) {
        use crate::reconcile::{NodeCondition, node_condition};
        for alloc in allocs {
            let reported_live = matches!(alloc.client, ClientStatus::Pending | ClientStatus::Running);
            let silent =
                matches!(node_condition(cx.state, alloc), NodeCondition::Down | NodeCondition::Deleted);
            if alloc.is_stopping() && reported_live && silent {
                self.stop(&Stop::lost(alloc));
            }
        }
    }

    pub fn mark_unknown(&mut self, alloc: &Alloc, follow_up: Option<EvalId>) {
        match self.plan.unknown.iter_mut().find(|event| event.follow_up == follow_up) {
            Some(event) => event.allocs.push(alloc.id),
            None => self.plan.unknown.push(AllocsMarkedUnknown { allocs: vec![alloc.id], follow_up }),
        }
    }

    pub fn reconnect(&mut self, alloc: &Alloc) {
        match self.plan.reconnected.first_mut() {
            Some(event) => event.allocs.push(alloc.id),
            None => self.plan.reconnected.push(AllocsReconnected { allocs: vec![alloc.id] }),
        }
    }

    /// `allocs` belong to one group.
    pub fn update_in_place(
        &mut self,
        cx: &PassContext,
        template: &Template,
        allocs: Vec<AllocId>,
        deployment: Option<DeploymentId>,
    ) {
        if !allocs.is_empty() {
            self.plan.updated.push(AllocsUpdatedInPlace {
                eval: cx.eval_id(),
                version: cx.job.current().version,
                template: Doc::of(template),
                allocs,
                deployment,
            });
        }
    }

    /// `run` is what all placements in the columns have in common.
    pub fn place(
        &mut self,
        cx: &PassContext,
        group: &str,
        run: &PlacedVersion,
        template: &Template,
        columns: PlacementColumns,
    ) {
        let PlacementColumns { nodes, names, mut previous, ports, mut given, victims, metric } = columns;
        if nodes.is_empty() {
            return;
        }
        if previous.iter().all(|id| *id == AllocId::default()) {
            previous.clear();
        }
        if given.iter().all(Doc::is_empty) {
            given.clear();
        }
        let ids: Vec<AllocId> = nodes.iter().map(|_| AllocId(self.ids.uuid())).collect();
        let explained = self.groups.entry(group.to_string()).or_default();
        explained.desired.preemptions += victims.iter().map(|allocs| allocs.len() as u64).sum::<u64>();
        let preempted = ids.iter().zip(victims).filter(|(_, allocs)| !allocs.is_empty());
        let preempted = preempted.map(|(by, allocs)| AllocsPreempted { allocs, by: *by });
        self.plan.preempted.extend(preempted);
        explained.placed = metric.clone();
        self.plan.placed.push(AllocsPlaced {
            eval: cx.eval_id(),
            key: cx.job.key.clone(),
            version: run.version,
            group: group.to_string(),
            template: Doc::of(template),
            metrics: Doc::of(&metric.unwrap_or_default()),
            ids,
            nodes,
            names,
            previous,
            deployment: run.deployment,
            canary: run.canary,
            ports,
            given,
        });
    }

    /// A class is eligible if some group found it so.
    pub fn add_classes(&mut self, classes: impl Iterator<Item = (usize, bool)>) {
        for (class, eligible) in classes {
            *self.classes.entry(class).or_default() |= eligible;
        }
    }
}

/// What the placements of one event have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedVersion {
    pub version: u64,
    pub deployment: Option<DeploymentId>,
    pub canary: bool,
}

/// Placements of one group, as columns.
#[derive(Debug, Default)]
pub struct PlacementColumns {
    pub nodes: Vec<NodeId>,
    pub names: Vec<u32>,
    pub previous: Vec<AllocId>,
    pub ports: Vec<u16>,
    pub given: Vec<Doc>,
    /// The allocations that are preempted for each.
    pub victims: Vec<Vec<AllocId>>,
    /// The metrics of the first of them.
    pub metric: Option<AllocationMetric>,
}

impl PlacementColumns {
    pub fn push(
        &mut self,
        node: NodeId,
        name: u32,
        previous: Option<&Alloc>,
        grant: Assignment,
        victims: &[&Alloc],
    ) {
        self.victims.push(victims.iter().map(|alloc| alloc.id).collect());
        self.nodes.push(node);
        self.names.push(name);
        self.previous.push(previous.map(|alloc| alloc.id).unwrap_or_default());
        self.ports.extend(grant.numbers);
        self.given.push(if grant.given.is_empty() { Doc::default() } else { Doc::of(&grant.given) });
    }
}
