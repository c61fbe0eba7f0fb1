//! The decision for one group (sections 4.2 to 4.12, as far as there are no deployments).

use std::collections::BTreeSet;

use base::{Duration, Time};
use model::document::{DesiredUpdates, TaskGroup};
use model::{AllocId, ClientStatus, Desired, EvalId};
use state::alloc::Alloc;

use super::classify::Classes;
use super::due::{Due, is_replaced};
use super::follow_up::{FollowUps, is_covered};
use super::names::Names;
use super::rolling::Again;
use super::sets::Set;
use super::{Situation, reconnect, rolling};
use crate::texts;

/// Tasks that do not say are given this long to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// What a newer version of the job means for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    Ignore,
    InPlace,
    Destructive,
}

/// An allocation that is to end.
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
        Stop { client: Some(ClientStatus::Lost), ..Stop::new(alloc, texts::LOST) }
    }
}

/// An allocation that is to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub name_index: u32,
    pub previous: Option<&'a Alloc>,
    /// What ends if, and only if, this one finds a place.
    pub instead_of: Option<Stop<'a>>,
}

/// What is to become of one group.
#[derive(Debug, Default)]
pub struct GroupPlan<'a> {
    pub stops: Vec<Stop<'a>>,
    /// Successors of what a new version replaces; each takes the place of its predecessor.
    pub destructive: Vec<Wish<'a>>,
    pub places: Vec<Wish<'a>>,
    pub in_place: Vec<&'a Alloc>,
    /// Cut off, and the evaluation each waits for.
    pub unknown: Vec<(&'a Alloc, Option<EvalId>)>,
    pub reconnected: Vec<&'a Alloc>,
    pub desired: DesiredUpdates,
    /// When to go on with an update that may not do everything now.
    pub again: Again,
}

impl<'a> GroupPlan<'a> {
    pub fn stop(&mut self, stop: Stop<'a>) {
        self.desired.stop += 1;
        self.stops.push(stop);
    }

    pub fn requested(&self) -> usize {
        self.destructive.len() + self.places.len()
    }
}

/// Decides one group. `group` is its definition in the job as it is wanted, if it is; `judge` says what the
/// wanted version means for an allocation.
pub fn reconcile<'a>(
    cx: &Situation<'a>,
    group: Option<&TaskGroup>,
    allocs: &[&'a Alloc],
    follow_ups: &mut FollowUps,
    judge: &mut dyn FnMut(&'a Alloc) -> Update,
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
    let (old, members): (Vec<&Alloc>, Vec<&Alloc>) =
        members.partition(|alloc| batch && alloc.is_terminal() && cx.is_older(&alloc.version));
    let mut classes = Classes::of(cx, members.into_iter());
    plan.desired.ignore += (old.len() + classes.ignore.len()) as u64;
    reconnect::resolve(cx, &mut classes, &mut plan);
    classes.lost.append(std::mem::take(&mut classes.expiring));
    let mut work = Work::new(cx, count, classes);
    work.disconnect(&mut plan, follow_ups);
    let waits = work.give_up_lost(allocs, &mut plan, follow_ups);
    work.stop_surplus(&mut plan);
    let destructive = work.update(&mut plan, judge);
    work.place(&mut plan, waits);
    work.replace(&mut plan, group, destructive);
    work.migrate(&mut plan);
    let stopped: BTreeSet<AllocId> = plan.stops.iter().map(|stop| stop.alloc.id).collect();
    plan.unknown.retain(|(alloc, _)| !stopped.contains(&alloc.id));
    plan
}

/// The job or the group is not wanted any more.
fn stop_all<'a>(cx: &Situation<'a>, allocs: impl Iterator<Item = &'a Alloc>) -> GroupPlan<'a> {
    let classes = Classes::of(cx, allocs.filter(|alloc| !alloc.is_stopping()));
    let mut plan = GroupPlan::default();
    for set in [&classes.untainted, &classes.migrate, &classes.disconnecting, &classes.reconnecting] {
        set.iter().for_each(|alloc| plan.stop(Stop::new(alloc, texts::NOT_NEEDED)));
    }
    classes.lost.iter().for_each(|alloc| plan.stop(Stop::lost(alloc)));
    let unknown = classes.ignore.iter().chain(classes.expiring.iter());
    unknown
        .filter(|alloc| alloc.client == ClientStatus::Unknown)
        .for_each(|alloc| plan.stop(Stop::new(alloc, texts::NOT_NEEDED)));
    plan
}

/// The sets that the steps hand on, each smaller than before.
struct Work<'a, 'c> {
    cx: &'c Situation<'a>,
    count: usize,
    untainted: Set<'a>,
    migrate: Set<'a>,
    lost: Set<'a>,
    disconnecting: Set<'a>,
    /// To be replaced in this pass.
    now: Set<'a>,
    later: Vec<(Time, &'a Alloc)>,
    names: Names,
}

impl<'a, 'c> Work<'a, 'c> {
    fn new(cx: &'c Situation<'a>, count: u32, classes: Classes<'a>) -> Work<'a, 'c> {
        let due = Due::of(cx, &classes.untainted, &classes.lost);
        let moving = Due::of(cx, &classes.migrate, &classes.lost);
        let cut_off = Due::of_disconnecting(cx, &classes.disconnecting);
        let (mut untainted, mut now) = (due.untainted, due.now);
        now.append(moving.now);
        now.append(cut_off.now);
        untainted.append(cut_off.untainted);
        let later = [due.later, moving.later, cut_off.later].concat();
        let (migrate, lost) = (classes.migrate, classes.lost);
        let mut held = untainted.clone();
        [&migrate, &now, &lost].into_iter().for_each(|set| held.append(set.clone()));
        // An unknown original shares its name with its substitute: that is no duplicate.
        let alone = |alloc: &&'a Alloc| !has_substitute(cx, alloc, &lost);
        let names = Names::new(count, held.iter().filter(alone));
        let disconnecting = classes.disconnecting;
        Work { cx, count: count as usize, untainted, migrate, lost, disconnecting, now, later, names }
    }

    /// What falls silent becomes unknown, and waits for its replacement or for its loss.
    fn disconnect(&mut self, plan: &mut GroupPlan<'a>, follow_ups: &mut FollowUps) {
        let cx = self.cx;
        let expiry = |alloc: &'a Alloc| (cx.now.plus(alloc.lost_after()), alloc);
        let timeouts = follow_ups.disconnects(cx, self.disconnecting.iter().map(expiry).collect());
        plan.desired.reschedule_later = self.later.len() as u64;
        if !self.disconnecting.is_empty() {
            plan.desired.disconnect = self.disconnecting.len() as u64;
            plan.desired.reschedule_now = self.now.len() as u64;
        }
        let open = |(time, alloc): &(Time, &'a Alloc)| {
            self.disconnecting.contains(alloc) || !(self.is_awaiting(alloc) || is_covered(cx, *time))
        };
        let open = self.later.iter().filter(|later| open(later)).copied().collect();
        let reschedules = follow_ups.reschedules(cx, open);
        for alloc in self.disconnecting.iter() {
            let follow_up = reschedules.get(&alloc.id).or_else(|| timeouts.get(&alloc.id)).copied();
            plan.unknown.push((alloc, follow_up));
        }
    }

    /// The evaluation the allocation names is still to come.
    fn is_awaiting(&self, alloc: &Alloc) -> bool {
        let named = alloc.follow_up.and_then(|id| self.cx.state.evals.lookup(id));
        named.is_some_and(|eval| !eval.status.is_terminal() && eval.facts.wait_until > self.cx.now)
    }

    /// Stops what is lost. True if a client may still be ending one of the group's lost allocations: then
    /// nothing new is placed yet.
    fn give_up_lost(
        &mut self,
        allocs: &[&'a Alloc],
        plan: &mut GroupPlan<'a>,
        follow_ups: &mut FollowUps,
    ) -> bool {
        let cx = self.cx;
        let ends = |alloc: &'a Alloc| client_stops_at(cx, alloc).map(|time| (time, alloc));
        let waiting: Vec<(Time, &Alloc)> = self.lost.iter().filter_map(ends).collect();
        // The reference remembers such a wait only in the evaluation that began it; any other evaluation
        // of the job would place the replacement early.
        let began_before = allocs.iter().any(|alloc| {
            let given_up = alloc.desired == Desired::Stop && alloc.client == ClientStatus::Lost;
            given_up && alloc.next.is_none() && client_stops_at(cx, alloc).is_some()
        });
        let waits = began_before || !waiting.is_empty();
        let assigned = follow_ups.stops_on_client(cx, waiting);
        for alloc in self.lost.iter() {
            plan.stop(Stop { follow_up: assigned.get(&alloc.id).copied(), ..Stop::lost(alloc) });
        }
        waits
    }

    /// More than wanted: migrating ones with the highest names go first, then the highest names, then
    /// duplicates. Unknown ones are not counted and hardly ever chosen.
    fn stop_surplus(&mut self, plan: &mut GroupPlan<'a>) {
        let known = self.untainted.iter().filter(|alloc| alloc.client != ClientStatus::Unknown).count();
        let mut surplus = (known + self.migrate.len()).saturating_sub(self.count);
        if surplus == 0 {
            return;
        }
        let highest = Names::new(self.count as u32, self.migrate.iter()).highest(surplus);
        let named = |set: &Set<'a>, names: &BTreeSet<u32>| -> Vec<&'a Alloc> {
            set.iter().filter(|alloc| names.contains(&alloc.name_index)).collect()
        };
        for alloc in named(&self.migrate, &highest).into_iter().take(surplus) {
            self.migrate.remove(alloc);
            self.free_name(alloc);
            plan.stop(Stop::new(alloc, texts::NOT_NEEDED));
            surplus -= 1;
        }
        let highest = self.names.highest(surplus);
        let rest: Vec<&Alloc> = self.untainted.iter().collect();
        let first = named(&self.untainted, &highest);
        for alloc in self.by_preference(first).into_iter().chain(self.by_preference(rest)) {
            if surplus > 0 && self.untainted.remove(alloc) {
                plan.stop(Stop::new(alloc, texts::NOT_NEEDED));
                surplus -= 1;
            }
        }
    }

    /// Which of several goes first: of one name the older version, then the younger allocation.
    fn by_preference(&self, mut allocs: Vec<&'a Alloc>) -> Vec<&'a Alloc> {
        let key = |alloc: &&'a Alloc| {
            let version = (alloc.version.job_created, alloc.version.version);
            (alloc.is_stopping(), alloc.name_index, version, std::cmp::Reverse((alloc.created, alloc.id)))
        };
        allocs.retain(|alloc| !alloc.is_stopping());
        allocs.sort_by_key(key);
        allocs
    }

    /// Tells what the wanted version leaves alone, changes in place, or replaces.
    fn update(
        &mut self,
        plan: &mut GroupPlan<'a>,
        judge: &mut dyn FnMut(&'a Alloc) -> Update,
    ) -> Vec<&'a Alloc> {
        let mut destructive = Vec::new();
        for alloc in self.untainted.iter() {
            match judge(alloc) {
                Update::Ignore => plan.desired.ignore += 1,
                Update::InPlace => plan.in_place.push(alloc),
                // Its substitute is updated. Two successors would be one too many, and should it come back,
                // it ends for being of an older version.
                Update::Destructive if has_substitute(self.cx, alloc, &self.lost) => plan.desired.ignore += 1,
                Update::Destructive => destructive.push(alloc),
            }
        }
        plan.desired.in_place_update = plan.in_place.len() as u64;
        plan.desired.reconnect = plan.reconnected.len() as u64;
        destructive
    }

    /// Replacements of what failed or was lost, then fresh ones up to the count.
    fn place(&mut self, plan: &mut GroupPlan<'a>, waits: bool) {
        if waits {
            return;
        }
        let mut held = self.untainted.clone();
        held.append(self.migrate.clone());
        held.append(self.now.clone());
        let missing = self.count.saturating_sub(held.len());
        let unreplaced = |alloc: &&Alloc| !is_replaced(self.cx, alloc, &self.lost);
        let again: Set = self.lost.iter().filter(unreplaced).take(missing).collect();
        // Nobody takes over the names of the others: they are free before anything else is named.
        let forgone: Vec<&Alloc> = self.lost.iter().filter(|alloc| !again.contains(alloc)).collect();
        forgone.into_iter().for_each(|alloc| self.free_name(alloc));
        let now: Vec<&Alloc> = self.now.iter().collect();
        for alloc in now {
            let keeps = alloc.client == ClientStatus::Unknown
                || self.disconnecting.contains(alloc)
                || self.migrate.contains(alloc);
            plan.desired.stop += u64::from(!keeps);
            let stop = (!keeps).then(|| Stop::new(alloc, texts::RESCHEDULED));
            let name_index = self.name_for(alloc);
            plan.places.push(Wish { name_index, previous: Some(alloc), instead_of: stop });
        }
        let fresh = missing - again.len();
        for alloc in again.iter() {
            let name_index = self.name_for(alloc);
            plan.places.push(Wish { name_index, previous: Some(alloc), instead_of: None });
        }
        for name_index in self.names.next(fresh) {
            plan.places.push(Wish { name_index, previous: None, instead_of: None });
        }
    }

    /// Takes the place of what the wanted version replaces, as many at once as the group allows.
    fn replace(&mut self, plan: &mut GroupPlan<'a>, group: &TaskGroup, destructive: Vec<&'a Alloc>) {
        let rollout = rolling::allowance(self.cx, group, self.untainted.iter());
        let allowance = rollout.allowance - rollout.allowance.min(plan.places.len());
        let taken = destructive.len().min(allowance);
        if taken < destructive.len() {
            plan.again = rollout.again;
        }
        plan.desired.destructive_update = taken as u64;
        plan.desired.ignore += (destructive.len() - taken) as u64;
        for alloc in destructive.into_iter().take(taken) {
            let instead_of = Some(Stop::new(alloc, texts::UPDATING));
            let name_index = self.name_for(alloc);
            plan.destructive.push(Wish { name_index, previous: Some(alloc), instead_of });
        }
    }

    /// What was asked to move: its end does not wait for its successor.
    fn migrate(&mut self, plan: &mut GroupPlan<'a>) {
        let migrate: Vec<&Alloc> = self.migrate.iter().collect();
        plan.desired.place = plan.places.len() as u64;
        plan.desired.migrate = migrate.len() as u64;
        for alloc in migrate {
            plan.stops.push(Stop::new(alloc, texts::MIGRATING));
            // A batch allocation to be rescheduled was decided by its policy.
            let decided = self.cx.job.current().kind.is_batch() && alloc.transition.reschedule;
            if decided || has_substitute(self.cx, alloc, &self.lost) {
                continue;
            }
            let name_index = self.name_for(alloc);
            plan.places.push(Wish { name_index, previous: Some(alloc), instead_of: None });
        }
        if plan.places.len() > self.count {
            plan.places.truncate(self.count);
            plan.desired.place = self.count as u64;
        }
    }

    fn free_name(&mut self, alloc: &'a Alloc) {
        // What has a substitute was never counted as a holder.
        if !has_substitute(self.cx, alloc, &self.lost) {
            self.names.free(alloc.name_index);
        }
    }

    /// The predecessor's name, unless another allocation has it as well.
    fn name_for(&mut self, previous: &Alloc) -> u32 {
        let index = previous.name_index;
        if !self.names.is_shared(index) {
            return index;
        }
        self.names.free(index);
        self.names.next(1)[0]
    }
}

/// Cut off, and something runs in its stead that this pass does not give up.
fn has_substitute<'a>(cx: &Situation<'a>, alloc: &'a Alloc, lost: &Set<'a>) -> bool {
    alloc.client == ClientStatus::Unknown && is_replaced(cx, alloc, lost)
}

/// When the client of a lost allocation stops it by itself, if that is still to come.
fn client_stops_at(cx: &Situation, alloc: &Alloc) -> Option<Time> {
    let group = alloc.version.group(&alloc.group)?;
    let span = group.disconnect.as_ref()?.stop_on_client_after?.0;
    if span <= Duration::ZERO {
        return None;
    }
    let timeouts = group.tasks.iter().filter_map(|task| task.kill_timeout.map(|timeout| timeout.0));
    let kill_timeout = timeouts.fold(KILL_TIMEOUT, Duration::max);
    let lost = alloc.states.iter().find(|known| known.status == ClientStatus::Lost);
    let from = lost.map_or(cx.now, |known| known.time);
    Some(from.plus(span).plus(kill_timeout)).filter(|time| *time > cx.now)
}
