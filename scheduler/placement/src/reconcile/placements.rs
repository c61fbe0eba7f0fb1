//! What is still to be placed for a group, and how much of it may be placed or replaced now.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::event::DeploymentGoal;
use model::{ClientStatus, DeploymentId};
use state::alloc::Alloc;
use state::job::JobVersion;

use super::alloc_set::AllocSet;
use super::deployment::proven;
use super::group::{GroupPlan, PlacementRequest, Stop};
use super::reconciler::Reconciler;
use super::rescheduling::is_replaced;
use crate::descriptions;

/// Why an allocation is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// One failed or became unknown, and is rescheduled.
    Rescheduled,
    Lost,
}

impl<'a> Reconciler<'a, '_> {
    /// Requests canaries, if destructive updates are pending or the deployment waits for canaries, and there are too few.
    pub fn place_canaries(&mut self, plan: &mut GroupPlan<'a>, destructive: &[&'a Alloc]) {
        if self.group_deployment.is_canarying() {
            self.canaries.iter().for_each(|canary| _ = self.untainted.remove(canary));
        }
        let wanted = self.group_deployment.canaries_wanted();
        let live = self.canaries.len() as u32;
        // What the canaries were to replace may be lost by now. Nothing but canaries has the deployment go on.
        let waits = self.group_deployment.existing && self.group_deployment.is_canarying();
        self.wants_canaries = (waits || !destructive.is_empty()) && live < wanted;
        if !self.wants_canaries {
            return;
        }
        self.group_deployment.goal.desired_canaries = wanted;
        if self.cx.rollout.is_paused() || self.cx.rollout.is_failed() {
            return;
        }
        let held: BTreeSet<u32> = self.canaries.iter().map(|canary| canary.name_index).collect();
        let returning = self.lost.iter().chain(self.now.iter());
        let returning = returning.filter(|alloc| !self.cx.is_current(&alloc.version));
        let replaced = destructive.iter().copied().chain(returning).map(|alloc| alloc.name_index).collect();
        for name_index in self.names.next_canaries((wanted - live) as usize, &held, &replaced) {
            let request = self.request(name_index, None);
            plan.places.push(PlacementRequest { canary: true, ..request });
            plan.desired.canary += 1;
        }
    }

    /// Requests replacements of what failed or was lost, then new allocations up to the count. Returns how many are
    /// missing, whether or not they may be placed now.
    pub fn place(&mut self, plan: &mut GroupPlan<'a>, allocs: &[&'a Alloc], waits: bool) -> usize {
        if waits {
            return 0;
        }
        let mut held = self.untainted.clone();
        held.append(self.migrate.clone());
        held.append(self.now.clone());
        let places = held.iter().filter(|alloc| !self.has_substitute(alloc)).count();
        let missing = self.count.saturating_sub(places);
        let unreplaced = |alloc: &&Alloc| !is_replaced(self.cx, alloc, &self.leaving);
        let again: AllocSet = self.lost.iter().filter(unreplaced).take(missing).collect();
        // The names of lost allocations that are not replaced are freed before new names are chosen.
        let forgone: Vec<&Alloc> = self.lost.iter().filter(|alloc| !again.contains(alloc)).collect();
        forgone.into_iter().for_each(|alloc| self.free_name(alloc));
        let fresh = missing - again.len();
        let all = self.now.len() + again.len() + fresh;
        self.expect(all as u32);
        let now = self.now.clone();
        let replaced = now.iter().map(|alloc| (Missing::Rescheduled, alloc));
        for (why, alloc) in replaced.chain(again.iter().map(|alloc| (Missing::Lost, alloc))) {
            if self.is_ready() || self.comes_anyway(why, alloc) {
                self.place_again(plan, why, alloc);
            }
        }
        if self.is_ready() {
            for name_index in self.names.next(fresh) {
                plan.places.push(self.request(name_index, None));
                plan.desired.place += 1;
            }
        } else {
            self.place_what_had_no_room(plan, allocs, fresh);
        }
        all
    }

    /// The deployment is neither paused nor failed, and does not wait for canaries.
    fn is_ready(&self) -> bool {
        let rollout = &self.cx.rollout;
        !rollout.is_paused() && !rollout.is_failed() && !self.group_deployment.is_canarying()
    }

    /// Replacements that are placed even while the deployment is paused, failed or waits for canaries. What failed as
    /// part of a failed deployment is not replaced.
    fn comes_anyway(&self, why: Missing, alloc: &Alloc) -> bool {
        why == Missing::Lost || !(self.cx.rollout.is_failed() && self.cx.rollout.holds(alloc))
    }

    fn place_again(&mut self, plan: &mut GroupPlan<'a>, why: Missing, alloc: &'a Alloc) {
        // An unknown allocation may reconnect, and a migrating one is stopped anyway.
        let ends = why == Missing::Rescheduled
            && alloc.client != ClientStatus::Unknown
            && !self.disconnecting.contains(alloc)
            && !self.migrate.contains(alloc);
        plan.desired.stop += u64::from(ends);
        plan.desired.place += 1;
        let instead_of = ends.then(|| Stop::new(alloc, descriptions::RESCHEDULED));
        let name_index = self.name_for(alloc);
        plan.places.push(PlacementRequest { instead_of, ..self.request(name_index, Some(alloc)) });
    }

    /// Requests replacements for what was lost or had to move since the deployment began and could not be placed then.
    fn place_what_had_no_room(&mut self, plan: &mut GroupPlan<'a>, allocs: &[&'a Alloc], most: usize) {
        let Some(current) = self.cx.rollout.current else { return };
        let waits = |alloc: &&&Alloc| {
            let moved = alloc.transition.migrate && !alloc.transition.disable_placement;
            let gone = alloc.is_stopping() && (alloc.was_lost() || moved) && alloc.next.is_none();
            gone && alloc.alloc_modified >= current.created && !self.cx.rollout.holds(alloc)
        };
        let mut waiting: Vec<&Alloc> = allocs.iter().filter(waits).copied().collect();
        waiting.sort_by_key(|alloc| (alloc.name_index, std::cmp::Reverse((alloc.created, alloc.id))));
        // A name that somebody else has by now is not missing, and one that was lost again and again is missing once.
        let live = allocs.iter().filter(|alloc| !alloc.is_stopping() && !alloc.is_terminal());
        let mut held: BTreeSet<u32> =
            live.filter(|alloc| !alloc.health.canary).map(|alloc| alloc.name_index).collect();
        waiting.retain(|alloc| held.insert(alloc.name_index));
        waiting.truncate(most);
        waiting.into_iter().for_each(|alloc| self.place_again(plan, Missing::Lost, alloc));
    }

    /// Requests successors for destructive updates, as many at once as allowed.
    pub fn replace(&mut self, plan: &mut GroupPlan<'a>, destructive: Vec<&'a Alloc>, missing: usize) {
        let allowance = if self.is_ready() { self.allowance(&destructive) } else { 0 };
        let taken = destructive.len().min(allowance - allowance.min(missing));
        plan.desired.destructive_update = taken as u64;
        plan.desired.ignore += (destructive.len() - taken) as u64;
        for alloc in destructive.into_iter().take(taken) {
            let instead_of = Some(Stop::new(alloc, descriptions::UPDATING));
            let name_index = self.name_for(alloc);
            plan.destructive.push(PlacementRequest { instead_of, ..self.wanted(name_index, Some(alloc)) });
        }
    }

    /// How many may be updated at once: `max_parallel` without those of the deployment whose health is not known yet,
    /// and 0 if one of them is unhealthy.
    fn allowance(&self, destructive: &[&'a Alloc]) -> usize {
        let Some(parallel) = self.group_deployment.max_parallel() else {
            return self.count.max(destructive.len());
        };
        if destructive.is_empty() && self.migrate.is_empty() {
            return self.count;
        }
        if self.cx.rollout.current.is_none() {
            return parallel;
        }
        let own = || self.untainted.iter().filter(|alloc| self.cx.rollout.holds(alloc));
        if own().any(|alloc| alloc.health.healthy == Some(false)) {
            return 0;
        }
        parallel.saturating_sub(own().filter(|alloc| alloc.health.healthy.is_none()).count())
    }

    /// Stops what migrates, without waiting for the successor, and requests the successor.
    pub fn migrate(&mut self, plan: &mut GroupPlan<'a>) {
        let migrate: Vec<&Alloc> = self.migrate.iter().collect();
        plan.desired.migrate = migrate.len() as u64;
        for alloc in migrate {
            plan.stops.push(Stop::new(alloc, descriptions::MIGRATING));
            // For batch allocations that are rescheduled, the reschedule policy has decided already.
            let decided = self.cx.job.current().kind.is_batch() && alloc.transition.reschedule;
            let unwanted = alloc.transition.disable_placement;
            if decided || unwanted || self.has_substitute(alloc) {
                continue;
            }
            let name_index = self.name_for(alloc);
            plan.places.push(self.request(name_index, Some(alloc)));
        }
        // Canaries stand beside what is replaced: they leave it its place.
        let canaries = plan.places.iter().filter(|request| request.canary).count();
        let most = if plan.places.len() > canaries { self.count + canaries } else { self.count };
        if plan.places.len() > most {
            plan.places.truncate(most);
            plan.desired.place = self.count as u64;
        }
    }

    /// Nothing is still to change.
    pub fn is_settled(&self) -> bool {
        let moves =
            self.wants_canaries || !self.migrate.is_empty() || !self.now.is_empty() || !self.later.is_empty();
        !moves && self.group_deployment.is_complete()
    }

    /// The group's new goal in the deployment, if it changed. A deployment begins only with a change.
    pub fn goal(mut self, changes: bool) -> Option<DeploymentGoal> {
        let total = self.group_deployment.goal.desired_total.min(self.count as u32);
        if !self.group_deployment.existing {
            self.group_deployment.goal.desired_total = total;
        }
        let begins = changes && total > 0 && self.group_deployment.update.is_some();
        self.group_deployment.news(begins)
    }

    /// A request for the right version: while canaries run, or after the deployment failed, replacements get the
    /// version that is [`proven`].
    fn request(&self, name_index: u32, previous: Option<&'a Alloc>) -> PlacementRequest<'a> {
        let request = self.wanted(name_index, previous);
        let rests = self.group_deployment.is_canarying() || self.cx.rollout.is_failed();
        let Some(previous) = previous.filter(|_| rests && !request.canary) else { return request };
        match proven(self.cx, self.name, &previous.version) {
            Some((version, deployment)) => PlacementRequest { version, deployment, ..request },
            None => request,
        }
    }

    fn wanted(&self, name_index: u32, previous: Option<&'a Alloc>) -> PlacementRequest<'a> {
        let (version, deployment): (&'a Arc<JobVersion>, Option<DeploymentId>) =
            (self.cx.job.current(), None);
        let canary =
            previous.is_some_and(|previous| previous.health.canary && self.cx.rollout.holds(previous));
        PlacementRequest { name_index, previous, version, deployment, canary, instead_of: None }
    }
}
