#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use base::Time;
use model::event::{
    AllocHealthSet, DeploymentCollected, DeploymentCreated, DeploymentGoal, DeploymentGoalsChanged,
    DeploymentProgressObserved, DeploymentPromoted, DeploymentStatusChanged,
};
use model::{AllocId, DeploymentId, DeploymentStatus};

use super::state::{Deployment, Deployments, GroupProgress};
use crate::alloc::Alloc;
use crate::moment::Moment;
use crate::row::DeploymentRow;
use crate::{Delta, State};

impl Deployments {
    fn known(&self, id: DeploymentId) -> DeploymentRow {
        self.find(id).expect("the event names a deployment that was created")
    }

    fn change(&mut self, at: Moment, id: DeploymentId, delta: &mut Delta) -> &mut Deployment {
        let row = self.known(id);
        delta.deployments.push(row);
        let deployment = self.get_mut(row);
        (deployment.modified, deployment.modify_time) = (at.index, at.time);
        deployment
    }

    pub(crate) fn goals_changed(&mut self, at: Moment, event: &DeploymentGoalsChanged, delta: &mut Delta) {
        self.change(at, event.deployment, delta).set_goals(&event.groups);
    }

    /// What was counted here gives way to what the other cluster counts.
    pub(crate) fn progress_observed(
        &mut self,
        at: Moment,
        event: &DeploymentProgressObserved,
        delta: &mut Delta,
    ) {
        let deployment = self.change(at, event.deployment, delta);
        for seen in &event.groups {
            let group = deployment.groups.entry(seen.group.clone()).or_default();
            *group = GroupProgress {
                goal: std::mem::take(&mut group.goal),
                promoted: seen.promoted,
                placed_canaries: seen.placed_canaries.clone(),
                placed: seen.placed,
                healthy: seen.healthy,
                unhealthy: seen.unhealthy,
                require_progress_by: seen.require_progress_by,
            };
        }
    }

    pub(crate) fn forget(&mut self, at: Moment, row: DeploymentRow, delta: &mut Delta) {
        let id = self.get(row).id;
        self.change(at, id, delta).gone = true;
        self.by_id.remove(&id);
    }
}

impl Deployment {
    fn set_goals(&mut self, goals: &[DeploymentGoal]) {
        for goal in goals {
            self.groups.entry(goal.group.clone()).or_default().goal = goal.clone();
        }
    }
}

impl State {
    pub(crate) fn deployment_created(&mut self, at: Moment, event: &DeploymentCreated, delta: &mut Delta) {
        assert!(self.deployments.find(event.deployment).is_none(), "a deployment is created once");
        let job = self.jobs.known(&event.key);
        let owner = self.jobs.get(job);
        let version = owner.version(event.version).expect("a deployment is of a kept version");
        let mut deployment = Deployment {
            id: event.deployment,
            job,
            version: event.version,
            job_created: version.job_created,
            registered: version.registered,
            job_modified: owner.modified,
            priority: event.priority,
            is_multiregion: event.is_multiregion,
            status: event.status,
            description: event.description.clone(),
            groups: Default::default(),
            progressed: base::Index::ZERO,
            gone: false,
            created: at.index,
            modified: at.index,
            create_time: at.time,
            modify_time: at.time,
        };
        deployment.set_goals(&event.groups);
        let row = DeploymentRow(self.deployments.rows.push(Arc::new(deployment)));
        self.deployments.by_id.insert(event.deployment, row.0);
        self.jobs.get_mut(job).deployments.push(row);
        delta.deployments.push(row);
        delta.jobs.push(job);
    }

    /// After a pause the progress deadline starts anew.
    pub(crate) fn deployment_status_changed(
        &mut self,
        at: Moment,
        event: &DeploymentStatusChanged,
        delta: &mut Delta,
    ) {
        let deployment = self.deployments.change(at, event.deployment, delta);
        if (deployment.status, event.status) == (DeploymentStatus::Paused, DeploymentStatus::Running) {
            deployment.groups.values_mut().for_each(|group| group.reset_deadline(at.time));
        }
        deployment.status = event.status;
        deployment.description.clone_from(&event.description);
        delta.jobs.push(deployment.job);
    }

    /// Canaries become ordinary members, and the progress deadline starts anew.
    pub(crate) fn deployment_promoted(&mut self, at: Moment, event: &DeploymentPromoted, delta: &mut Delta) {
        let deployment = self.deployments.change(at, event.deployment, delta);
        let mut canaries = Vec::new();
        for name in &event.groups {
            let group = deployment.groups.get_mut(name).expect("a promoted group is part of the deployment");
            group.promoted = true;
            group.reset_deadline(at.time);
            canaries.extend_from_slice(&group.placed_canaries);
        }
        let rows: Vec<_> = canaries.into_iter().filter_map(|id| self.allocs.find(id)).collect();
        for row in rows {
            self.change_alloc(at, row, delta, |alloc| {
                alloc.health.canary = false;
                alloc.health.modified = at.index;
                alloc.alloc_modified = at.index;
            });
        }
    }

    pub(crate) fn deployment_collected(
        &mut self,
        at: Moment,
        event: &DeploymentCollected,
        delta: &mut Delta,
    ) {
        let row = self.deployments.known(event.deployment);
        let deployment = self.deployments.get(row);
        assert!(!deployment.is_active(), "what is not over is not forgotten");
        let job = deployment.job;
        self.jobs.get_mut(job).deployments.retain(|kept| *kept != row);
        self.deployments.forget(at, row, delta);
    }

    pub(crate) fn alloc_health_set(&mut self, at: Moment, event: &AllocHealthSet, delta: &mut Delta) {
        for row in self.alloc_rows(&event.allocs) {
            let before = self.allocs.get(row).health.healthy;
            self.change_alloc(at, row, delta, |alloc| {
                alloc.health.judge(at, event.healthy, at.time);
                alloc.alloc_modified = at.index;
            });
            self.count_verdict(at, row, before, delta);
        }
    }

    /// The allocation is part of its deployment from here on.
    pub(crate) fn count_member(&mut self, at: Moment, alloc: &Alloc, delta: &mut Delta) {
        let Some(id) = alloc.deployment else { return };
        let canary = alloc.health.canary;
        let (id, group, member) = (id, alloc.group.clone(), alloc.id);
        self.of_group(at, id, &group, delta, |group| group.gained(member, canary, at.time));
    }

    /// The health of the allocation was set; `before` is what it was.
    pub(crate) fn count_verdict(
        &mut self,
        at: Moment,
        row: crate::alloc::AllocRow,
        before: Option<bool>,
        delta: &mut Delta,
    ) {
        let alloc = self.allocs.get(row);
        let (Some(id), Some(healthy)) = (alloc.deployment, alloc.health.healthy) else { return };
        let (group, time) = (alloc.group.clone(), alloc.health.time);
        self.of_group(at, id, &group, delta, |group| group.judged(before, healthy, time));
        // Its job may have been purged, with the deployment.
        if healthy && before != Some(true) && self.deployments.lookup(id).is_some() {
            self.deployments.change(at, id, delta).progressed = at.index;
        }
    }

    /// Does nothing for a group that is not part of the deployment.
    fn of_group(
        &mut self,
        at: Moment,
        id: DeploymentId,
        name: &str,
        delta: &mut Delta,
        change: impl FnOnce(&mut GroupProgress),
    ) {
        if self.deployments.lookup(id).is_some_and(|deployment| deployment.groups.contains_key(name)) {
            let deployment = self.deployments.change(at, id, delta);
            change(deployment.groups.get_mut(name).expect("it was just found"));
        }
    }
}

impl GroupProgress {
    fn gained(&mut self, alloc: AllocId, canary: bool, now: Time) {
        self.placed += 1;
        if canary {
            self.placed_canaries.push(alloc);
        }
        if self.require_progress_by == Time::ZERO && self.goal.progress_deadline.0 > 0 {
            self.require_progress_by = now.plus(self.goal.progress_deadline);
        }
    }

    fn judged(&mut self, before: Option<bool>, healthy: bool, time: Time) {
        match (before, healthy) {
            (None, true) => self.healthy += 1,
            (None, false) => self.unhealthy += 1,
            (Some(true), false) => {
                self.healthy = self.healthy.saturating_sub(1);
                self.unhealthy += 1;
            }
            (Some(true), true) | (Some(false), _) => {}
        }
        if healthy && before != Some(true) && self.goal.progress_deadline.0 > 0 {
            let extended = time.plus(self.goal.progress_deadline);
            self.require_progress_by = self.require_progress_by.max(extended);
        }
    }
}
