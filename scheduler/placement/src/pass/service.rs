//! One pass over a service or batch job.

use std::collections::{BTreeMap, BTreeSet};

use base::Index;
use model::DeploymentId;
use model::document::TaskGroup;
use state::alloc::Alloc;
use state::job::JobVersion;

use crate::feasibility::candidates::Scope;
use crate::feasibility::node_check::{Distinct, NodeCheck};
use crate::feasibility::proposed::Proposed;
use crate::pass::placer::Placer;
use crate::pass::plan_draft::PlanDraft;
use crate::ranking::memory::Memory;
use crate::reconcile::{Definition, is_destructive};
use crate::reconcile::{FollowUps, GroupPlan, PassContext, Summary, Update, conclude, reconcile};
use crate::settings::settings;

pub fn pass(cx: &PassContext, seed: u64, memory: &mut Memory) -> PlanDraft {
    let mut draft = PlanDraft::new(cx, seed);
    let mut proposed = Proposed::new(cx.state);
    let allocs: Vec<&Alloc> = cx.job.allocs.iter().map(|row| cx.state.allocs.get(*row)).collect();
    draft.stop_unreachable(cx, allocs.iter().copied());
    let version = cx.job.current();
    let mut scope = Scope::new(cx.state, &version.job);
    let mut node_checks = node_checks(cx, version);
    let mut shared = Context { scope: &mut scope, node_checks: &mut node_checks, proposed: &proposed };
    let (mut decisions, follow_ups) = decide(cx, seed, &allocs, &mut shared);
    let deployment = conclude(cx, &mut draft, seed, summary(&mut decisions));
    for (name, decision) in &mut decisions {
        deployment.into_iter().for_each(|id| decision.belong_to(id, version));
        carry_out(cx, &mut draft, &mut proposed, node_checks.get(name), name, decision);
    }
    let mut placer = Placer::new(cx, memory, proposed, allocs, seed);
    for (name, decision) in &decisions {
        if let Some(node_check) = node_checks.get(name) {
            placer.place(&mut draft, name, node_check, decision);
        }
    }
    placer.add_classes(&mut draft);
    draft.plan.follow_ups = follow_ups.created;
    draft
}

/// What the decisions of all groups share.
struct Context<'c, 'e> {
    scope: &'c mut Scope<'e>,
    node_checks: &'c mut BTreeMap<String, NodeCheck<'e>>,
    proposed: &'c Proposed<'e>,
}

/// The node checks of each group, unless the job is stopped.
pub fn node_checks<'e>(cx: &PassContext<'e>, version: &'e JobVersion) -> BTreeMap<String, NodeCheck<'e>> {
    let groups = version.job.task_groups.iter().filter(|_| cx.job.is_wanted());
    let settings = settings(cx.state, version.job.node_pool.as_deref().unwrap_or_default());
    let node_check = |group: &'e TaskGroup| {
        (group.name.clone().unwrap_or_default(), NodeCheck::new(cx.state, cx.job, version, group, &settings))
    };
    groups.map(node_check).collect()
}

/// The deployment goals of all groups, once each is decided.
fn summary(decisions: &mut [(String, GroupPlan)]) -> Summary {
    Summary {
        goals: decisions.iter_mut().filter_map(|(_, decision)| decision.goal.take()).collect(),
        complete: decisions.iter().all(|(_, decision)| decision.complete),
    }
}

/// Decides each group, in the order of their names.
fn decide<'e>(
    cx: &PassContext<'e>,
    seed: u64,
    allocs: &[&'e Alloc],
    shared: &mut Context<'_, 'e>,
) -> (Vec<(String, GroupPlan<'e>)>, FollowUps) {
    let version = cx.job.current();
    let mut by_group: BTreeMap<&str, Vec<&Alloc>> = BTreeMap::new();
    allocs.iter().for_each(|alloc| by_group.entry(&alloc.group).or_default().push(alloc));
    let wanted = version.job.task_groups.iter().filter_map(|group| group.name.as_deref());
    let names: BTreeSet<&str> = by_group.keys().copied().chain(wanted).collect();
    let mut follow_ups = FollowUps::new(seed);
    let mut decisions = Vec::new();
    for name in names {
        let group = version.group(name).filter(|_| cx.job.is_wanted());
        let of_group = by_group.remove(name).unwrap_or_default();
        let mut updates = Updates::default();
        let mut node_check = |alloc: &'e Alloc| match (group, shared.node_checks.get_mut(name)) {
            (Some(group), Some(node_check)) => {
                updates.node_check(cx, group, alloc, node_check, shared.scope, shared.proposed)
            }
            _ => Update::Ignore,
        };
        let decision = reconcile(cx, name, group, &of_group, &mut follow_ups, &mut node_check);
        decisions.push((name.to_string(), decision));
    }
    (decisions, follow_ups)
}

/// Puts into the plan what does not depend on finding a node.
fn carry_out(
    cx: &PassContext,
    draft: &mut PlanDraft,
    proposed: &mut Proposed,
    node_check: Option<&NodeCheck>,
    name: &str,
    decision: &GroupPlan,
) {
    for stop in &decision.stops {
        draft.stop(stop);
        proposed.stop(stop.alloc);
    }
    decision.unknown.iter().for_each(|(alloc, follow_up)| draft.mark_unknown(alloc, *follow_up));
    decision.reconnected.iter().for_each(|alloc| draft.reconnect(alloc));
    if let Some(node_check) = node_check {
        decision.in_place.iter().for_each(|alloc| proposed.resize(alloc, node_check.resource_request.amount));
        let updated = decision.in_place.iter().map(|alloc| alloc.id).collect();
        draft.update_in_place(
            cx,
            &node_check.resource_request.template,
            updated,
            deployment_to_join(cx, draft),
        );
    }
    if cx.job.current().group(name).is_some() {
        draft.queued.insert(name.to_string(), decision.requested() as u32);
    }
    let explained = draft.groups.entry(name.to_string()).or_default();
    explained.desired = decision.desired.clone();
    explained.reconnects.clone_from(&decision.reconnects);
}

/// The newest deployment once the plan is applied: allocations that are updated in place join it.
pub fn deployment_to_join(cx: &PassContext, draft: &PlanDraft) -> Option<DeploymentId> {
    let created = draft.plan.deployment.as_ref().map(|created| created.deployment);
    created.or(cx.rollout.latest().map(|latest| latest.id))
}

/// What a new version means for allocations of a group, by the version they run.
#[derive(Debug, Default)]
pub struct Updates {
    destructive: BTreeMap<Index, bool>,
}

impl Updates {
    /// What the current version means for an allocation: ignored if it runs it already, destructive if a field changed
    /// that a running task cannot follow or if its node is no longer feasible, otherwise in place.
    pub fn node_check<'e>(
        &mut self,
        cx: &PassContext<'e>,
        group: &TaskGroup,
        alloc: &'e Alloc,
        node_check: &mut NodeCheck<'e>,
        scope: &mut Scope<'e>,
        proposed: &Proposed<'e>,
    ) -> Update {
        let (old, new) = (&alloc.version, cx.job.current());
        if old.registered == new.registered {
            return Update::Ignore;
        }
        let destructive = self.destructive.entry(old.registered).or_insert_with(|| {
            old.group(&alloc.group).is_none_or(|before| {
                is_destructive(
                    Definition { job: &old.job, group: before },
                    Definition { job: &new.job, group },
                )
            })
        });
        if *destructive {
            return Update::Destructive;
        }
        if alloc.is_terminal() {
            return Update::Ignore;
        }
        let hot = cx.state.nodes.hot(alloc.node);
        if hot.gone || !scope.contains(alloc.node, hot) || shares_host(cx, alloc, node_check.distinct_hosts) {
            return Update::Destructive;
        }
        let fits = node_check.fits_in_place(alloc, hot, proposed);
        if fits { Update::InPlace } else { Update::Destructive }
    }
}

/// Another allocation of the job violates `distinct_hosts` on the same node.
fn shares_host(cx: &PassContext, alloc: &Alloc, distinct: Option<Distinct>) -> bool {
    let Some(distinct) = distinct else { return false };
    let rows = &cx.state.nodes.load(alloc.node).allocs;
    rows.iter().map(|row| cx.state.allocs.get(*row)).any(|other| {
        let counts = distinct == Distinct::Job || other.group == alloc.group;
        other.id != alloc.id && other.job == alloc.job && !other.is_terminal() && counts
    })
}
