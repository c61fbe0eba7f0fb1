//! The sets of a group's allocations, and the steps up to what the current version means for them.

use std::collections::BTreeSet;

use base::{Duration, Time};
use model::{ClientStatus, Desired};
use state::alloc::Alloc;

use super::PassContext;
use super::alloc_set::AllocSet;
use super::classify::Classes;
use super::deployment::GroupDeployment;
use super::follow_up::{FollowUps, is_covered};
use super::group::{GroupPlan, Stop, Update};
use super::names::Names;
use super::rescheduling::{Leaving, Rescheduling, is_replaced};
use crate::descriptions;

/// The default kill timeout.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The allocations of a group by what becomes of them. Each step takes out those it decides.
pub struct Reconciler<'a, 'c> {
    pub cx: &'c PassContext<'a>,
    pub name: &'c str,
    pub count: usize,
    pub group_deployment: GroupDeployment,
    /// Also in `untainted` until canaries are decided.
    pub canaries: AllocSet<'a>,
    /// More canaries are needed.
    pub wants_canaries: bool,
    pub untainted: AllocSet<'a>,
    pub migrate: AllocSet<'a>,
    pub lost: AllocSet<'a>,
    pub disconnecting: AllocSet<'a>,
    /// Rescheduled in this pass.
    pub now: AllocSet<'a>,
    pub later: Vec<(Time, &'a Alloc)>,
    /// What was lost or stopped before this pass came to replacements.
    pub leaving: Leaving,
    pub names: Names,
}

impl<'a, 'c> Reconciler<'a, 'c> {
    pub fn new(
        cx: &'c PassContext<'a>,
        name: &'c str,
        count: u32,
        group_deployment: GroupDeployment,
        canaries: AllocSet<'a>,
        classes: Classes<'a>,
        leaving: Leaving,
    ) -> Reconciler<'a, 'c> {
        let due = Rescheduling::of(cx, &classes.untainted, &leaving);
        let moving = Rescheduling::of(cx, &classes.migrate, &leaving);
        let cut_off = Rescheduling::of_disconnecting(cx, &classes.disconnecting);
        let (mut untainted, mut now) = (due.untainted, due.now);
        now.append(moving.now);
        now.append(cut_off.now);
        untainted.append(cut_off.untainted);
        let later = [due.later, moving.later, cut_off.later].concat();
        let (migrate, lost) = (classes.migrate, classes.lost);
        let mut held = untainted.clone();
        [&migrate, &now, &lost].into_iter().for_each(|set| held.append(set.clone()));
        // An unknown original has the same name as its replacement, and a canary the same as the allocation that it
        // will replace: neither is a duplicate.
        let apart = |alloc: &&'a Alloc| group_deployment.is_canarying() && canaries.contains(alloc);
        let alone = |alloc: &&'a Alloc| !has_substitute(cx, alloc, &leaving) && !apart(alloc);
        let names = Names::new(count, held.iter().filter(alone));
        Reconciler {
            cx,
            name,
            count: count as usize,
            group_deployment,
            canaries,
            wants_canaries: false,
            untainted,
            migrate,
            lost,
            disconnecting: classes.disconnecting,
            now,
            later,
            leaving,
            names,
        }
    }

    /// Allocations on nodes that disconnect become unknown; follow-up evaluations reschedule them or mark them as lost.
    pub fn disconnect(&mut self, plan: &mut GroupPlan<'a>, follow_ups: &mut FollowUps) {
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

    /// The evaluation that the unknown allocation waits for is still pending. What failed does not store which it is.
    fn is_awaiting(&self, alloc: &Alloc) -> bool {
        let unknown = alloc.client == ClientStatus::Unknown;
        let named = alloc.follow_up.filter(|_| unknown).and_then(|id| self.cx.state.evals.lookup(id));
        named.is_some_and(|eval| !eval.status.is_terminal() && eval.facts.wait_until > self.cx.now)
    }

    /// Stops what is lost. True if a client may still be stopping one of the group's lost allocations: then nothing new
    /// is placed yet.
    pub fn stop_lost(
        &mut self,
        allocs: &[&'a Alloc],
        plan: &mut GroupPlan<'a>,
        follow_ups: &mut FollowUps,
    ) -> bool {
        let cx = self.cx;
        let ends = |alloc: &'a Alloc| client_stops_at(cx, alloc).map(|time| (time, alloc));
        let waiting: Vec<(Time, &Alloc)> = self.lost.iter().filter_map(ends).collect();
        // In Nomad only the evaluation that began such a wait knows of it; any other evaluation of the job would place
        // the replacement early.
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

    /// Stops allocations above the count: after a promotion first those that the canaries replace, then migrating ones
    /// with the highest names, then one of two with the same name, then those with the highest names. Unknown ones do
    /// not count.
    pub fn stop_surplus(&mut self, plan: &mut GroupPlan<'a>) {
        let mut working = self.untainted.clone();
        if self.group_deployment.is_canarying() {
            self.canaries.iter().for_each(|canary| _ = working.remove(canary));
        }
        let known = working.iter().filter(|alloc| alloc.client != ClientStatus::Unknown).count();
        let mut surplus = (known + self.migrate.len()).saturating_sub(self.count);
        if surplus == 0 {
            return;
        }
        let named = |set: &AllocSet<'a>, names: &BTreeSet<u32>| -> Vec<&'a Alloc> {
            set.iter().filter(|alloc| names.contains(&alloc.name_index)).collect()
        };
        if !self.group_deployment.is_canarying() {
            let promoted: BTreeSet<u32> = self.canaries.iter().map(|canary| canary.name_index).collect();
            let mut replaced = named(&working, &promoted);
            replaced.retain(|alloc| !self.canaries.contains(alloc));
            for alloc in by_preference(replaced).into_iter().take(surplus) {
                working.remove(alloc);
                self.untainted.remove(alloc);
                self.stop_unneeded(alloc, plan);
                surplus -= 1;
            }
        }
        let highest = Names::new(self.count as u32, self.migrate.iter()).highest(surplus);
        for alloc in named(&self.migrate, &highest).into_iter().take(surplus) {
            self.migrate.remove(alloc);
            self.stop_unneeded(alloc, plan);
            surplus -= 1;
        }
        for alloc in by_preference(working.iter().collect()) {
            let shares = self.names.is_shared(alloc.name_index) && !self.has_substitute(alloc);
            if surplus > 0 && shares && self.untainted.remove(alloc) {
                working.remove(alloc);
                self.stop_unneeded(alloc, plan);
                surplus -= 1;
            }
        }
        let highest = self.names.highest(surplus);
        let rest: Vec<&Alloc> = working.iter().collect();
        let first = named(&working, &highest);
        for alloc in by_preference(first).into_iter().chain(by_preference(rest)) {
            if surplus > 0 && self.untainted.remove(alloc) {
                plan.stop(Stop::new(alloc, descriptions::NOT_NEEDED));
                surplus -= 1;
            }
        }
    }

    /// Sorts allocations by what the current version means for them. Returns those with a destructive update.
    pub fn update(
        &mut self,
        plan: &mut GroupPlan<'a>,
        update_of: &mut dyn FnMut(&'a Alloc) -> Update,
    ) -> Vec<&'a Alloc> {
        let mut destructive = Vec::new();
        let mut changed = 0;
        for alloc in self.untainted.iter() {
            let substituted = self.has_substitute(alloc);
            match update_of(alloc) {
                Update::Ignore => plan.desired.ignore += 1,
                Update::InPlace => {
                    plan.in_place.push(alloc);
                    changed += u32::from(!substituted);
                }
                // Its replacement is updated. A second successor would be one too many, and if the original reconnects
                // it is stopped because its version is older.
                Update::Destructive if substituted => plan.desired.ignore += 1,
                Update::Destructive => {
                    destructive.push(alloc);
                    changed += 1;
                }
            }
        }
        plan.desired.in_place_update = plan.in_place.len() as u64;
        plan.desired.reconnect = plan.reconnected.len() as u64;
        self.expect(changed);
        destructive
    }

    /// A deployment that begins now waits for this many more healthy allocations.
    pub fn expect(&mut self, more: u32) {
        if !self.group_deployment.existing {
            self.group_deployment.goal.desired_total += more;
        }
    }

    pub fn has_substitute(&self, alloc: &Alloc) -> bool {
        has_substitute(self.cx, alloc, &self.leaving)
    }

    fn stop_unneeded(&mut self, alloc: &'a Alloc, plan: &mut GroupPlan<'a>) {
        self.free_name(alloc);
        plan.stop(Stop::new(alloc, descriptions::NOT_NEEDED));
    }

    pub fn free_name(&mut self, alloc: &'a Alloc) {
        // What has a replacement was never counted.
        if !self.has_substitute(alloc) {
            self.names.free(alloc.name_index);
        }
    }

    /// The predecessor's name, unless another allocation has it too.
    pub fn name_for(&mut self, previous: &Alloc) -> u32 {
        let index = previous.name_index;
        if !self.names.is_shared(index) {
            return index;
        }
        self.names.free(index);
        self.names.next(1)[0]
    }
}

/// The order in which surplus is stopped: of one name the older version first, then the younger allocation.
fn by_preference<'a>(mut allocs: Vec<&'a Alloc>) -> Vec<&'a Alloc> {
    let key = |alloc: &&'a Alloc| {
        let version = (alloc.version.job_created, alloc.version.version);
        (alloc.is_stopping(), alloc.name_index, version, std::cmp::Reverse((alloc.created, alloc.id)))
    };
    allocs.retain(|alloc| !alloc.is_stopping());
    allocs.sort_by_key(key);
    allocs
}

/// It is unknown, and a replacement stays that has the same name: the two are one place of the group.
fn has_substitute(cx: &PassContext, alloc: &Alloc, leaving: &Leaving) -> bool {
    alloc.client == ClientStatus::Unknown && is_replaced(cx, alloc, leaving)
}

/// When the client of a lost allocation will have stopped it by itself, if that is in the future.
fn client_stops_at(cx: &PassContext, alloc: &Alloc) -> Option<Time> {
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
