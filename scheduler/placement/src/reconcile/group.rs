//! The decision for one group: the steps and their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::document::{DesiredUpdates, Reconnect, TaskGroup};
use model::event::DeploymentGoal;
use model::{AllocId, ClientStatus, DeploymentId, EvalId};
use state::alloc::Alloc;
use state::job::JobVersion;

use super::alloc_set::AllocSet;
use super::classify::Classes;
use super::deployment::GroupDeployment;
use super::follow_up::FollowUps;
use super::reconciler::Reconciler;
use super::{PassContext, reconnect};
use crate::descriptions;

/// What the current version of the job means for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    Ignore,
    InPlace,
    Destructive,
}

/// An allocation that is stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    pub alloc: &'a Alloc,
    pub description: &'static str,
    pub client: Option<ClientStatus>,
    pub follow_up: Option<EvalId>,
}

impl<'a> Stop<'a> {
    pub fn new(alloc: &'a Alloc, description: &'static str) -> Stop<'a> {
        Stop { alloc, description, client: None, follow_up: None }
    }

    pub fn lost(alloc: &'a Alloc) -> Stop<'a> {
        Stop { client: Some(ClientStatus::Lost), ..Stop::new(alloc, descriptions::LOST) }
    }
}

/// A request to place one allocation.
#[derive(Clone, Copy, Debug)]
pub struct PlacementRequest<'a> {
    pub name_index: u32,
    pub previous: Option<&'a Alloc>,
    /// The version it runs: not always the current one.
    pub version: &'a Arc<JobVersion>,
    pub deployment: Option<DeploymentId>,
    pub canary: bool,
    /// Stopped if, and only if, this request is placed.
    pub instead_of: Option<Stop<'a>>,
}

/// What becomes of one group.
#[derive(Debug, Default)]
pub struct GroupPlan<'a> {
    pub stops: Vec<Stop<'a>>,
    /// Successors in a destructive update; each replaces its predecessor.
    pub destructive: Vec<PlacementRequest<'a>>,
    pub places: Vec<PlacementRequest<'a>>,
    pub in_place: Vec<&'a Alloc>,
    /// They become unknown, each with the evaluation it waits for.
    pub unknown: Vec<(&'a Alloc, Option<EvalId>)>,
    pub reconnected: Vec<&'a Alloc>,
    pub desired: DesiredUpdates,
    /// The choices between originals and their replacements.
    pub reconnects: Vec<Reconnect>,
    /// The group's new goal in the deployment, if it changed.
    pub goal: Option<DeploymentGoal>,
    /// The group is as wanted, and nothing of it is still to change.
    pub complete: bool,
}

impl<'a> GroupPlan<'a> {
    pub fn stop(&mut self, stop: Stop<'a>) {
        self.desired.stop += 1;
        self.stops.push(stop);
    }

    pub fn requested(&self) -> usize {
        self.destructive.len() + self.places.len()
    }

    /// In the order in which they are placed.
    pub fn requests(&self) -> impl Iterator<Item = &PlacementRequest<'a>> {
        self.destructive.iter().chain(&self.places)
    }

    /// Requests for the current version join its deployment.
    pub fn belong_to(&mut self, deployment: DeploymentId, wanted: &Arc<JobVersion>) {
        let requests = self.destructive.iter_mut().chain(&mut self.places);
        let own = requests.filter(|request| Arc::ptr_eq(request.version, wanted));
        own.for_each(|request| request.deployment = Some(deployment));
    }
}

/// Decides one group. `group` is its definition in the current version, if there is one; `update_of` returns what that
/// version means for an allocation.
pub fn reconcile<'a>(
    cx: &PassContext<'a>,
    name: &str,
    group: Option<&TaskGroup>,
    allocs: &[&'a Alloc],
    follow_ups: &mut FollowUps,
    update_of: &mut dyn FnMut(&'a Alloc) -> Update,
) -> GroupPlan<'a> {
    if !cx.job.is_wanted() {
        return stop_all(cx, allocs.iter().copied().filter(|alloc| !alloc.is_terminal()));
    }
    let batch = cx.job.current().kind.is_batch();
    let kept = |alloc: &&'a Alloc| !alloc.is_stopping() || (batch && !alloc.transition.reschedule);
    let members = allocs.iter().copied().filter(kept);
    let count = group.map_or(0, |group| group.count.unwrap_or(1).max(0) as u32);
    let Some(group) = group.filter(|_| count > 0) else { return stop_all(cx, members) };

    let mut plan = GroupPlan::default();
    let group_deployment = GroupDeployment::of(cx, name, group);
    let (old, members): (Vec<&Alloc>, Vec<&Alloc>) =
        members.partition(|alloc| batch && alloc.is_terminal() && cx.is_older(&alloc.version));
    let (members, canaries) = split_off_canaries(cx, &group_deployment, members, &mut plan);
    let has_run = members.iter().any(|alloc| cx.is_current(&alloc.version));
    let mut classes = Classes::of(cx, members.into_iter());
    plan.desired.ignore += (old.len() + classes.ignore.len()) as u64;
    reconnect::resolve(cx, &group_deployment, &mut classes, &mut plan);
    classes.lost.append(std::mem::take(&mut classes.expiring));
    let stopped = plan.stops.iter().map(|stop| stop.alloc.id);
    let leaving = stopped.chain(classes.lost.iter().map(|alloc| alloc.id)).collect();

    let mut reconciler = Reconciler::new(cx, name, count, group_deployment, canaries, classes, leaving);
    reconciler.disconnect(&mut plan, follow_ups);
    let waits = reconciler.stop_lost(allocs, &mut plan, follow_ups);
    reconciler.stop_surplus(&mut plan);
    let destructive = reconciler.update(&mut plan, update_of);
    let changes = !destructive.is_empty() || !plan.in_place.is_empty();
    reconciler.place_canaries(&mut plan, &destructive);
    let moves = reconciler.place(&mut plan, allocs, waits);
    reconciler.replace(&mut plan, destructive, moves);
    reconciler.migrate(&mut plan);
    plan.complete = !waits && !changes && moves == 0 && reconciler.is_settled();
    plan.goal = reconciler.goal(changes || !has_run);
    let stopped: BTreeSet<AllocId> = plan.stops.iter().map(|stop| stop.alloc.id).collect();
    plan.unknown.retain(|(alloc, _)| !stopped.contains(&alloc.id));
    plan
}

/// The job is stopped, or the group was removed.
fn stop_all<'a>(cx: &PassContext<'a>, allocs: impl Iterator<Item = &'a Alloc>) -> GroupPlan<'a> {
    let classes = Classes::of(cx, allocs.filter(|alloc| !alloc.is_stopping()));
    let mut plan = GroupPlan { complete: true, ..GroupPlan::default() };
    for set in [&classes.untainted, &classes.migrate, &classes.disconnecting, &classes.reconnecting] {
        set.iter().for_each(|alloc| plan.stop(Stop::new(alloc, descriptions::NOT_NEEDED)));
    }
    classes.lost.iter().for_each(|alloc| plan.stop(Stop::lost(alloc)));
    let unknown = classes.ignore.iter().chain(classes.expiring.iter());
    unknown
        .filter(|alloc| alloc.client == ClientStatus::Unknown)
        .for_each(|alloc| plan.stop(Stop::new(alloc, descriptions::NOT_NEEDED)));
    plan
}

/// Stops canaries of old or failed deployments, and those that migrate or are lost: new canaries are placed for those.
/// Returns the remaining allocations, and which of them are canaries.
///
/// A promoted canary is an allocation like the others and is replaced like them. Nomad would not link its successor.
fn split_off_canaries<'a>(
    cx: &PassContext<'a>,
    group_deployment: &GroupDeployment,
    members: Vec<&'a Alloc>,
    plan: &mut GroupPlan<'a>,
) -> (Vec<&'a Alloc>, AllocSet<'a>) {
    let unneeded = cx.rollout.unneeded_canaries();
    let (unneeded, members): (Vec<&Alloc>, Vec<&Alloc>) =
        members.into_iter().partition(|alloc| unneeded.contains(&alloc.id));
    unneeded.into_iter().for_each(|alloc| plan.stop(Stop::new(alloc, descriptions::NOT_NEEDED)));
    let ids = cx.rollout.canaries();
    let canaries = || members.iter().copied().filter(|alloc| ids.contains(&alloc.id));
    if !group_deployment.is_canarying() {
        let canaries = canaries().collect();
        return (members, canaries);
    }
    // They do not count as stopped in the plan's numbers, because new canaries replace them.
    let classes = Classes::of(cx, canaries());
    let mut leaving = classes.migrate.clone();
    classes.migrate.iter().for_each(|alloc| plan.stops.push(Stop::new(alloc, descriptions::MIGRATING)));
    for lost in [classes.lost, classes.expiring] {
        lost.iter().for_each(|alloc| plan.stops.push(Stop::lost(alloc)));
        leaving.append(lost);
    }
    let members = members.into_iter().filter(|alloc| !leaving.contains(alloc)).collect();
    // One that is cut off may return: it needs no other in its stead.
    let mut staying = classes.untainted;
    [classes.disconnecting, classes.reconnecting].into_iter().for_each(|set| staying.append(set));
    (members, staying)
}
