//! One pass over a job that runs on every node.

use std::collections::BTreeMap;

use base::{Duration, Rng};
use model::document::{DesiredUpdates, TaskGroup};
use model::{ClientStatus, DeploymentId, JobType, NodeId};
use state::alloc::Alloc;
use state::node::NodeRow;

use crate::descriptions;
use crate::feasibility::candidates::{Candidates, Scope};
use crate::feasibility::node_check::NodeCheck;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::static_checks::is_in_pool;
use crate::pass::per_node_placer::PerNodePlacer;
use crate::pass::plan_draft::PlanDraft;
use crate::pass::service::{Updates, node_checks};
use crate::preemption::Preemptor;
use crate::reconcile::{
    FollowUps, GroupDeployment, NextCheck, NodeCondition, PassContext, Stop, Summary, Update, allowance,
    conclude, fresh_id, is_expired_unknown, node_condition,
};

pub fn pass(cx: &PassContext, seed: u64) -> PlanDraft {
    let version = cx.job.current();
    let mut draft = PlanDraft::new(cx, seed);
    let mut proposed = Proposed::new(cx.state);
    let mut follow_ups = FollowUps::new(seed);
    let mut scope = Scope::new(cx.state, &version.job);
    let mut node_checks = node_checks(cx, version);
    let candidates = Candidates::find(cx.state, &mut scope);
    let allocs: Vec<&Alloc> = cx.job.allocs.iter().map(|row| cx.state.allocs.get(*row)).collect();
    draft.stop_unreachable(cx, allocs.iter().copied());
    let mut by_group: BTreeMap<&str, Vec<&Alloc>> = BTreeMap::new();
    let wanted = version.job.task_groups.iter().filter_map(|group| group.name.as_deref());
    wanted.for_each(|name| _ = by_group.entry(name).or_default());
    allocs.iter().for_each(|alloc| by_group.entry(&alloc.group).or_default().push(alloc));

    let (mut ports, mut preemptor) = (Rng::stream(seed, "ports"), Preemptor::of(cx));
    let mut again = NextCheck::default();
    let mut summary = Summary { complete: true, ..Summary::default() };
    let mut deployment = cx.rollout.active().map(|active| active.id);
    for (name, allocs) in by_group {
        let group = version.group(name).filter(|_| cx.job.is_wanted());
        let mut work = PerNodeReconciler {
            cx,
            group,
            candidates: &candidates,
            scope: &mut scope,
            group_plan: PerNodePlan::default(),
        };
        work.classify(&allocs);
        let mut rollout_stage = group.map(|group| GroupDeployment::of(cx, name, group));
        if let (Some(node_check), Some(rollout_stage)) = (node_checks.get_mut(name), &mut rollout_stage) {
            let held = held(&allocs);
            again = again.or(work.update(node_check, &proposed, rollout_stage, &held));
            work.fill(&held);
        }
        let begins =
            rollout_stage.as_ref().is_some_and(|rollout_stage| rollout_stage.begins_per_node(cx, &allocs));
        let begins = begins && work.group_plan.reached() > 0 && !candidates.lacks_health_reports;
        if begins {
            deployment.get_or_insert_with(|| fresh_id(seed));
        }
        let group_plan = work.group_plan;
        let joins = deployment.or(cx.rollout.latest().map(|latest| latest.id));
        group_plan.carry_out(cx, &mut draft, &mut proposed, &mut follow_ups, node_checks.get(name), joins);
        if version.group(name).is_some() {
            draft.queued.insert(name.to_string(), 0);
        }
        draft.groups.entry(name.to_string()).or_default().desired = group_plan.desired.clone();
        if let (Some(node_check), Some(group), Some(mut rollout_stage)) =
            (node_checks.get_mut(name), group, rollout_stage)
        {
            let reached = group_plan.reached();
            let proposed = &mut proposed;
            let mut placer = PerNodePlacer {
                cx,
                group,
                candidates: &candidates,
                proposed,
                ports: &mut ports,
                preemptor: preemptor.as_mut(),
                deployment,
            };
            let filtered = placer.place(&mut draft, name, node_check, group_plan);
            if rollout_stage.existing || begins {
                rollout_stage.goal.desired_total = reached - filtered;
                summary.complete &= rollout_stage.existing && rollout_stage.is_complete();
            }
            summary.goals.extend(rollout_stage.news(begins));
        }
    }
    if version.kind == JobType::System {
        conclude(cx, &mut draft, seed, summary);
    }
    if let Some(time) = again.at(!draft.plan.placed.is_empty()) {
        follow_ups.rollout(cx, time);
    }
    draft.plan.follow_ups = follow_ups.created;
    node_checks.values().for_each(|node_check| draft.add_classes(node_check.classes().into_iter()));
    draft.escaped = node_checks.values().any(NodeCheck::escapes);
    draft
}

/// An allocation that is to be placed on a given node.
pub struct NodePlacement<'a> {
    pub row: NodeRow,
    pub id: NodeId,
    pub name_index: u32,
    pub previous: Option<&'a Alloc>,
    pub canary: bool,
}

/// What becomes of one group.
#[derive(Default)]
pub struct PerNodePlan<'a> {
    pub stops: Vec<Stop<'a>>,
    pub unknown: Vec<&'a Alloc>,
    pub reconnected: Vec<&'a Alloc>,
    pub in_place: Vec<&'a Alloc>,
    pub placements: Vec<NodePlacement<'a>>,
    /// Allocations that run another version, or have just reconnected.
    pub outdated: Vec<&'a Alloc>,
    /// Allocations that stay.
    pub staying: Vec<&'a Alloc>,
    /// Allocations that are replaced in a later pass.
    pub later: Vec<&'a Alloc>,
    /// How many failed canaries may be replaced; 0 outside of canary deployments.
    pub failed_canaries: usize,
    pub desired: DesiredUpdates,
}

struct PerNodeReconciler<'a, 'c> {
    cx: &'c PassContext<'a>,
    group: Option<&'c TaskGroup>,
    candidates: &'c Candidates,
    scope: &'c mut Scope<'a>,
    group_plan: PerNodePlan<'a>,
}

impl<'a> PerNodeReconciler<'a, '_> {
    fn count(&self) -> u32 {
        self.group.map_or(0, |group| group.count.unwrap_or(1).max(0) as u32)
    }

    /// What becomes of each live allocation: the first condition that holds decides.
    fn classify(&mut self, allocs: &[&'a Alloc]) {
        for alloc in allocs.iter().copied().filter(|alloc| !alloc.is_terminal()) {
            let returning = alloc.client == ClientStatus::Running && alloc.needs_to_reconnect();
            let changed = alloc.version.registered != self.cx.job.current().registered;
            let node = node_condition(self.cx.state, alloc);
            if alloc.name_index >= self.count() {
                self.stop(Stop::new(alloc, descriptions::NOT_NEEDED));
            } else if alloc.transition.migrate {
                self.migrate(alloc);
            } else if is_expired_unknown(alloc, node, self.cx.now) {
                self.stop(Stop::lost(alloc));
            } else if alloc.client == ClientStatus::Unknown {
                self.keep(alloc);
            } else if node == NodeCondition::Present && returning {
                self.group_plan.reconnected.push(alloc);
                self.group_plan.outdated.push(alloc);
            } else if node != NodeCondition::Present && self.is_done(alloc) {
                self.keep(alloc);
            } else if node == NodeCondition::Disconnected && alloc.client == ClientStatus::Running {
                self.group_plan.unknown.push(alloc);
            } else if matches!(node, NodeCondition::Down | NodeCondition::Deleted) {
                self.stop(Stop::lost(alloc));
            } else if node == NodeCondition::Disconnected {
                self.keep(alloc);
            } else if !self.cx.state.nodes.hot(alloc.node).takes_work() && self.is_in_pool(alloc) {
                if changed { self.stop(Stop::new(alloc, descriptions::NOT_NEEDED)) } else { self.keep(alloc) }
            } else if !self.scope.contains(alloc.node, self.cx.state.nodes.hot(alloc.node)) {
                self.stop(Stop::new(alloc, descriptions::NOT_NEEDED));
            } else if changed {
                self.group_plan.outdated.push(alloc);
            } else {
                self.keep(alloc);
            }
        }
    }

    fn stop(&mut self, stop: Stop<'a>) {
        self.group_plan.desired.stop += 1;
        self.group_plan.stops.push(stop);
    }

    fn keep(&mut self, alloc: &'a Alloc) {
        self.group_plan.desired.ignore += 1;
        self.group_plan.staying.push(alloc);
    }

    /// It was asked to migrate. On a node that accepts new allocations it is placed again; on a draining one it is not.
    fn migrate(&mut self, alloc: &'a Alloc) {
        self.group_plan.desired.migrate += 1;
        if self.candidates.position(alloc.node).is_some() {
            self.group_plan.stops.push(Stop::new(alloc, descriptions::MIGRATING));
            self.group_plan.placements.push(NodePlacement::successor(alloc));
        } else {
            self.group_plan.stops.push(Stop::new(alloc, descriptions::TAINTED));
        }
    }

    fn is_done(&self, alloc: &Alloc) -> bool {
        self.cx.job.current().kind.is_batch() && alloc.ran_successfully()
    }

    fn is_in_pool(&self, alloc: &Alloc) -> bool {
        is_in_pool(
            self.cx.job.current().job.node_pool.as_deref(),
            &self.cx.state.nodes.cold(alloc.node).document,
        )
    }

    /// Updates in place what can be, and replaces as much of the rest as `max_parallel` allows. Returns when to look
    /// again at what has to wait.
    fn update(
        &mut self,
        node_check: &mut NodeCheck<'a>,
        proposed: &Proposed<'a>,
        rollout_stage: &mut GroupDeployment,
        held: &NamesOnNodes<'a>,
    ) -> NextCheck {
        let Some(group) = self.group else { return NextCheck::default() };
        let mut updates = Updates::default();
        let mut destructive = Vec::new();
        for alloc in std::mem::take(&mut self.group_plan.outdated) {
            match updates.node_check(self.cx, group, alloc, node_check, self.scope, proposed) {
                Update::Ignore => self.group_plan.staying.push(alloc),
                Update::InPlace => {
                    self.group_plan.staying.push(alloc);
                    self.group_plan.in_place.push(alloc);
                }
                // It reconnected, but its node accepts no work yet. Once it does, there is another evaluation.
                Update::Destructive if self.candidates.position(alloc.node).is_none() => self.keep(alloc),
                Update::Destructive => destructive.push(alloc),
            }
        }
        destructive.sort_by_key(|alloc| (alloc.node_id, alloc.name_index, alloc.id));
        let mut again = NextCheck::default();
        // Without a deployment nothing watches health, so the update is paced as for a sysbatch job.
        let unwatched = self.candidates.lacks_health_reports && !rollout_stage.existing;
        let (now, later) = if unwatched || self.cx.job.current().kind == JobType::Sysbatch {
            let rollout = allowance(self.cx, group, self.group_plan.staying.iter().copied());
            let taken = destructive.len().min(rollout.allowance);
            if taken < destructive.len() {
                again = rollout.again;
            }
            let later = destructive.split_off(taken);
            (destructive, later)
        } else if rollout_stage.canaries_wanted() > 0
            && self.cx.job.current().version > 0
            && !destructive.is_empty()
        {
            self.place_canaries(node_check, proposed, rollout_stage, held, destructive)
        } else {
            let later = destructive.split_off(destructive.len().min(self.limit(rollout_stage)));
            (destructive, later)
        };
        let wants_canaries = rollout_stage.is_canarying();
        for alloc in &now {
            self.group_plan.reconnected.retain(|back| back.id != alloc.id);
            self.group_plan.stops.push(Stop::new(alloc, descriptions::UPDATING));
            self.group_plan
                .placements
                .push(NodePlacement { canary: wants_canaries, ..NodePlacement::successor(alloc) });
        }
        self.group_plan.desired.in_place_update = self.group_plan.in_place.len() as u64;
        self.group_plan.desired.reconnect = self.group_plan.reconnected.len() as u64;
        self.group_plan.desired.destructive_update = now.len() as u64;
        self.group_plan.desired.ignore += later.len() as u64;
        self.group_plan.later = later;
        again
    }

    /// How many may be replaced now: `max_parallel` without those of the deployment whose health is not known yet. None
    /// while the deployment is paused, failed or waits for its canaries.
    fn limit(&self, rollout_stage: &GroupDeployment) -> usize {
        let Some(parallel) = rollout_stage.max_parallel() else { return usize::MAX };
        let rollout = &self.cx.rollout;
        if rollout.is_paused() || rollout.is_failed() || rollout_stage.is_canarying() {
            return 0;
        }
        let own = self.group_plan.staying.iter().filter(|alloc| rollout.holds(alloc));
        parallel.saturating_sub(own.filter(|alloc| alloc.health.healthy.is_none()).count())
    }

    /// Places canaries on a share of the nodes. Returns what is replaced now, and what later. Nodes that the version
    /// cannot run on are not counted: what runs there is stopped at once.
    fn place_canaries(
        &mut self,
        node_check: &mut NodeCheck<'a>,
        proposed: &Proposed<'a>,
        rollout_stage: &mut GroupDeployment,
        held: &NamesOnNodes<'a>,
        destructive: Vec<&'a Alloc>,
    ) -> (Vec<&'a Alloc>, Vec<&'a Alloc>) {
        let (mut now, suited): (Vec<&Alloc>, Vec<&Alloc>) = destructive.into_iter().partition(|alloc| {
            let hot = self.cx.state.nodes.hot(alloc.node);
            let reason = node_check.infeasible_reason(alloc.node, hot, alloc.name_index, proposed);
            reason.is_some_and(|reason| !node_check.reasons().get(reason).exhausted)
        });
        let is_canary = |alloc: &&&Alloc| alloc.health.canary && self.cx.rollout.holds(alloc);
        let running = self.group_plan.staying.iter().filter(is_canary).count();
        let failed = held.values().filter(|alloc| alloc.is_terminal()).filter(is_canary).count();
        let all = suited.len() + running + failed;
        let share = (all * rollout_stage.canaries_wanted() as usize).div_ceil(100);
        let wanted = share.min(rollout_stage.max_parallel().unwrap_or(usize::MAX));
        rollout_stage.goal.desired_canaries = wanted as u32;
        if self.cx.rollout.is_paused() || self.cx.rollout.is_failed() {
            now.extend(suited);
            return (Vec::new(), now);
        }
        self.group_plan.failed_canaries = failed.min(wanted);
        let fresh = wanted.saturating_sub(self.group_plan.failed_canaries + running).min(suited.len());
        self.group_plan.desired.canary = fresh as u64;
        now.extend(&suited[..fresh]);
        (now, suited[fresh..].to_vec())
    }

    /// Each candidate gets every name that it does not have. Sysbatch allocations of this version run only once.
    fn fill(&mut self, held: &NamesOnNodes<'a>) {
        let mut failed_canaries = self.group_plan.failed_canaries;
        let batch = self.cx.job.current().kind.is_batch();
        let current = self.cx.job.current().registered;
        for row in self.candidates.list.iter().copied() {
            for name_index in 0..self.count() {
                let previous = held.get(&(row, name_index)).copied();
                let holds = previous.is_some_and(|alloc| {
                    !alloc.is_terminal() || (batch && alloc.version.registered == current)
                });
                if !holds {
                    let id = self.cx.state.nodes.cold(row).id;
                    let was_canary = |alloc: &Alloc| alloc.health.canary && self.cx.rollout.holds(alloc);
                    let canary = failed_canaries > 0 && previous.is_some_and(was_canary);
                    failed_canaries -= usize::from(canary);
                    self.group_plan.desired.canary += u64::from(canary);
                    self.group_plan.placements.push(NodePlacement { row, id, name_index, previous, canary });
                } else if previous.is_some_and(Alloc::is_terminal) {
                    self.group_plan.desired.ignore += 1;
                }
            }
        }
    }
}

/// The newest allocation of each name on each node. Live ones take precedence over terminal ones.
type NamesOnNodes<'a> = BTreeMap<(NodeRow, u32), &'a Alloc>;

fn held<'a>(allocs: &[&'a Alloc]) -> NamesOnNodes<'a> {
    let mut held: NamesOnNodes<'a> = BTreeMap::new();
    for alloc in allocs.iter().copied() {
        let newest = held.entry((alloc.node, alloc.name_index)).or_insert(alloc);
        let rank = |alloc: &Alloc| (!alloc.is_terminal(), alloc.created, alloc.id);
        if rank(alloc) > rank(newest) {
            *newest = alloc;
        }
    }
    held
}

impl<'a> NodePlacement<'a> {
    fn successor(alloc: &'a Alloc) -> NodePlacement<'a> {
        let (row, id, name_index) = (alloc.node, alloc.node_id, alloc.name_index);
        NodePlacement { row, id, name_index, previous: Some(alloc), canary: false }
    }
}

impl PerNodePlan<'_> {
    /// How many allocations the group has or should have, including those on nodes that turn out infeasible.
    fn reached(&self) -> u32 {
        (self.placements.len() + self.staying.len() + self.later.len() + self.unknown.len()) as u32
    }

    /// Puts into the plan what does not depend on finding room. A predecessor is stopped even if its node turns out
    /// full.
    fn carry_out(
        &self,
        cx: &PassContext,
        draft: &mut PlanDraft,
        proposed: &mut Proposed,
        follow_ups: &mut FollowUps,
        node_check: Option<&NodeCheck>,
        deployment: Option<DeploymentId>,
    ) {
        for stop in &self.stops {
            draft.stop(stop);
            proposed.stop(stop.alloc);
        }
        let mut expiries: BTreeMap<Duration, model::EvalId> = BTreeMap::new();
        for alloc in &self.unknown {
            let after = alloc.lost_after();
            let expiry = (after > Duration::ZERO)
                .then(|| *expiries.entry(after).or_insert_with(|| follow_ups.expiry(cx, cx.now.plus(after))));
            draft.mark_unknown(alloc, expiry);
        }
        self.reconnected.iter().for_each(|alloc| draft.reconnect(alloc));
        if let Some(node_check) = node_check {
            self.in_place.iter().for_each(|alloc| proposed.resize(alloc, node_check.resource_request.amount));
            let updated = self.in_place.iter().map(|alloc| alloc.id).collect();
            draft.update_in_place(cx, &node_check.resource_request.template, updated, deployment);
        }
    }
}
