#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Index;
use model::document::AllocationMetric;
use model::event::{
    AllocReported, AllocTransitionRequested, AllocsCollected, AllocsMarkedUnknown, AllocsPlaced,
    AllocsPreempted, AllocsReconnected, AllocsStopped, AllocsUpdatedInPlace,
};
use model::{AllocId, ClientStatus, DeploymentId, Desired, Given, Report, Template};

use super::state::{Alloc, Health, KnownState, Transition};
use crate::LazyDoc;
use crate::job::JobVersion;
use crate::moment::Moment;
use crate::row::{AllocRow, JobRow};
use crate::{Delta, State};

const UNKNOWN: &str = "alloc is unknown since its node is disconnected";

impl State {
    pub(crate) fn allocs_placed(&mut self, at: Moment, event: &AllocsPlaced, delta: &mut Delta) {
        let job = self.jobs.known(&event.key);
        let version =
            self.jobs.get(job).version(event.version).expect("placements name a kept version").clone();
        let template: LazyDoc<Template> = LazyDoc::new(event.template.0.clone());
        let metrics: LazyDoc<AllocationMetric> = LazyDoc::new(event.metrics.0.clone());
        let untold: LazyDoc<Report> = LazyDoc::default();
        let (nothing_given, nobody): (LazyDoc<Given>, Arc<[AllocId]>) = (LazyDoc::default(), Arc::default());
        let (group, nothing): (Arc<str>, Arc<str>) = (event.group.as_str().into(), "".into());
        let (count, width) = (event.ids.len(), template.ports.len());
        let columns = [event.nodes.len(), event.names.len()];
        assert_eq!(columns, [count; 2], "the columns of placements are of one length");
        assert_eq!(event.ports.len(), count * width, "each placement has the ports of its template");
        for (at_column, id) in event.ids.iter().enumerate() {
            let node_id = event.nodes[at_column];
            let previous = event.previous.get(at_column).copied().filter(|id| *id != AllocId::default());
            let alloc = Alloc {
                id: *id,
                job,
                node: self.nodes.find(node_id).expect("placements name registered nodes"),
                node_id,
                version: version.clone(),
                group: group.clone(),
                name_index: event.names[at_column],
                eval: event.eval,
                desired: Desired::Run,
                desired_description: nothing.clone(),
                client: ClientStatus::Pending,
                client_description: nothing.clone(),
                transition: Transition::default(),
                template: template.clone(),
                metrics: metrics.clone(),
                ports: event.ports[at_column * width..(at_column + 1) * width].into(),
                given: event
                    .given
                    .get(at_column)
                    .filter(|given| !given.is_empty())
                    .map_or_else(|| nothing_given.clone(), |given| LazyDoc::new(given.0.clone())),
                states: Arc::default(),
                previous,
                next: None,
                follow_up: None,
                preempted: nobody.clone(),
                preempted_by: None,
                deployment: event.deployment,
                health: Health {
                    canary: event.canary,
                    modified: if event.canary { at.index } else { Index::ZERO },
                    ..Health::default()
                },
                report: untold.clone(),
                gone: false,
                created: at.index,
                modified: at.index,
                alloc_modified: at.index,
                create_time: at.time,
                modify_time: at.time,
            };
            self.count_member(at, &alloc, delta);
            self.add_alloc(at, alloc, delta);
        }
    }

    pub(crate) fn allocs_updated_in_place(
        &mut self,
        at: Moment,
        event: &AllocsUpdatedInPlace,
        delta: &mut Delta,
    ) {
        let template: LazyDoc<Template> = LazyDoc::new(event.template.0.clone());
        for row in self.alloc_rows(&event.allocs) {
            let job = self.allocs.get(row).job;
            let version: Arc<JobVersion> =
                self.jobs.get(job).version(event.version).expect("updates name a kept version").clone();
            let before = self.allocs.get(row).amount();
            self.change_alloc(at, row, delta, |alloc| {
                (alloc.version, alloc.template, alloc.eval) = (version, template.clone(), event.eval);
                alloc.alloc_modified = at.index;
            });
            self.join_deployment(at, row, event.deployment, delta);
            let alloc = self.allocs.get(row);
            if alloc.takes_room() {
                self.nodes.resize(at.index, alloc.node, before, alloc.amount());
            }
        }
    }

    /// In another deployment than before its health is unknown again.
    fn join_deployment(
        &mut self,
        at: Moment,
        row: AllocRow,
        deployment: Option<DeploymentId>,
        delta: &mut Delta,
    ) {
        if self.allocs.get(row).deployment == deployment {
            return;
        }
        let alloc = self.allocs.get_mut(row);
        (alloc.deployment, alloc.health) = (deployment, Health::default());
        let alloc = alloc.clone();
        self.count_member(at, &alloc, delta);
    }

    pub(crate) fn allocs_stopped(&mut self, at: Moment, event: &AllocsStopped, delta: &mut Delta) {
        let description: Arc<str> = event.description.as_str().into();
        for row in self.alloc_rows(&event.allocs) {
            self.change_alloc(at, row, delta, |alloc| {
                (alloc.desired, alloc.desired_description) = (event.desired, description.clone());
                alloc.alloc_modified = at.index;
                if event.follow_up.is_some() {
                    alloc.follow_up = event.follow_up;
                }
                if let Some(status) = event.client {
                    conclude(alloc, at, status);
                }
            });
        }
    }

    /// The preempted allocations and the one that preempts them name each other.
    pub(crate) fn allocs_preempted(&mut self, at: Moment, event: &AllocsPreempted, delta: &mut Delta) {
        let description: Arc<str> = format!("Preempted by alloc ID {}", event.by).into();
        for row in self.alloc_rows(&event.allocs) {
            self.change_alloc(at, row, delta, |alloc| {
                (alloc.desired, alloc.desired_description) = (Desired::Evict, description.clone());
                (alloc.preempted_by, alloc.alloc_modified) = (Some(event.by), at.index);
            });
        }
        let by = self.allocs.find(event.by).expect("who others make room for was placed");
        self.change_alloc(at, by, delta, |alloc| {
            alloc.preempted = alloc.preempted.iter().chain(&event.allocs).copied().collect();
        });
    }

    pub(crate) fn allocs_marked_unknown(
        &mut self,
        at: Moment,
        event: &AllocsMarkedUnknown,
        delta: &mut Delta,
    ) {
        for row in self.alloc_rows(&event.allocs) {
            self.change_alloc(at, row, delta, |alloc| {
                conclude(alloc, at, ClientStatus::Unknown);
                alloc.client_description = UNKNOWN.into();
                alloc.alloc_modified = at.index;
                alloc.follow_up = event.follow_up;
            });
        }
    }

    pub(crate) fn allocs_reconnected(&mut self, at: Moment, event: &AllocsReconnected, delta: &mut Delta) {
        for row in self.alloc_rows(&event.allocs) {
            self.change_alloc(at, row, delta, |alloc| {
                let status = alloc.client;
                conclude(alloc, at, status);
                alloc.alloc_modified = at.index;
            });
        }
    }

    /// A report changes only what a node knows; the desired status stays.
    pub(crate) fn alloc_reported(&mut self, at: Moment, event: &AllocReported, delta: &mut Delta) {
        let row = self.allocs.find(event.alloc).expect("the report names a placed allocation");
        let verdict = self.allocs.get(row).health.healthy;
        self.change_alloc(at, row, delta, |alloc| {
            assert_eq!(alloc.client, event.from, "a report starts from the status before it");
            assert_eq!(alloc.node_id, event.node, "a node reports its own allocations");
            if alloc.client == ClientStatus::Unknown {
                alloc.follow_up = None;
            }
            alloc.client = event.to;
            alloc.client_description = event.description.as_str().into();
            alloc.report = LazyDoc::new(event.report.0.clone());
            if let Some(health) = event.health {
                alloc.health.judge(at, health.healthy, health.time);
            }
        });
        if event.health.is_some() {
            self.count_verdict(at, row, verdict, delta);
        }
        let node = self.allocs.get(row).node;
        self.nodes.allocs_known_at(at.index, node);
        delta.capacity |= event.to.is_terminal();
    }

    pub(crate) fn alloc_transition_requested(
        &mut self,
        at: Moment,
        event: &AllocTransitionRequested,
        delta: &mut Delta,
    ) {
        for row in self.alloc_rows(&event.allocs) {
            self.change_alloc(at, row, delta, |alloc| {
                alloc.transition.migrate |= event.migrate;
                alloc.transition.reschedule |= event.reschedule;
                alloc.transition.no_shutdown_delay |= event.no_shutdown_delay;
                alloc.transition.force_reschedule |= event.force_reschedule;
                alloc.transition.disable_placement |= event.disable_placement;
                alloc.alloc_modified = at.index;
            });
        }
    }

    pub(crate) fn allocs_collected(&mut self, at: Moment, event: &AllocsCollected, delta: &mut Delta) {
        let rows = self.alloc_rows(&event.allocs);
        let jobs: BTreeSet<JobRow> = rows.iter().map(|row| self.allocs.get(*row).job).collect();
        rows.into_iter().for_each(|row| self.forget_alloc(at, row, delta));
        for job in jobs {
            let owner = self.jobs.get_mut(job);
            Arc::make_mut(&mut owner.allocs).retain(|row| !self.allocs.get(*row).gone);
            if owner.purged && owner.allocs.is_empty() {
                Arc::make_mut(&mut self.jobs.outlived).remove(&job);
            }
        }
    }

    pub(crate) fn forget_alloc(&mut self, at: Moment, row: AllocRow, delta: &mut Delta) {
        let alloc = self.allocs.get(row).clone();
        if alloc.takes_room() {
            self.nodes.give_back(at.index, alloc.node, row, &alloc);
            delta.capacity = true;
        }
        if !alloc.is_terminal() {
            self.jobs.get_mut(alloc.job).one_less_live();
        }
        self.nodes.forget_alloc(alloc.node, row);
        self.allocs.by_id.remove(&alloc.id);
        let forgotten = self.allocs.get_mut(row);
        (forgotten.gone, forgotten.modified) = (true, at.index);
        delta.allocs.push(row);
        delta.nodes.push(alloc.node);
    }

    fn add_alloc(&mut self, at: Moment, alloc: Alloc, delta: &mut Delta) {
        assert!(self.allocs.find(alloc.id).is_none(), "an allocation is placed once");
        let row = AllocRow(self.allocs.rows.len() as u32);
        self.allocs.by_id.insert(alloc.id, row.0);
        self.nodes.host(at.index, alloc.node, row, &alloc);
        self.jobs.count(at, alloc.job, &alloc.group, None, Some(ClientStatus::Pending));
        let job = self.jobs.get_mut(alloc.job);
        Arc::make_mut(&mut job.allocs).push(row);
        job.live_allocs += 1;
        if let Some(previous) = alloc.previous.and_then(|id| self.allocs.find(id)) {
            let replaced = self.allocs.get_mut(previous);
            (replaced.next, replaced.modified) = (Some(alloc.id), at.index);
            delta.allocs.push(previous);
        }
        delta.jobs.push(alloc.job);
        delta.allocs.push(row);
        self.allocs.rows.push(Arc::new(alloc));
    }

    /// Changes one allocation and carries what follows from it to its node and its job.
    pub(crate) fn change_alloc(
        &mut self,
        at: Moment,
        row: AllocRow,
        delta: &mut Delta,
        change: impl FnOnce(&mut Alloc),
    ) {
        let alloc = self.allocs.get_mut(row);
        let (room, ended, status) = (alloc.takes_room(), alloc.is_terminal(), alloc.client);
        change(alloc);
        (alloc.modified, alloc.modify_time) = (at.index, at.time);
        let alloc = self.allocs.get(row);
        let job: JobRow = alloc.job;
        match (room, alloc.takes_room()) {
            (true, false) => self.nodes.give_back(at.index, alloc.node, row, alloc),
            (false, true) => self.nodes.take(at.index, alloc.node, row, alloc),
            (true, true) | (false, false) => {}
        }
        delta.capacity |= room && !alloc.takes_room();
        self.jobs.count(at, job, &alloc.group, Some(status), Some(alloc.client));
        match (ended, alloc.is_terminal()) {
            (false, true) => self.jobs.get_mut(job).one_less_live(),
            (true, false) => self.jobs.get_mut(job).live_allocs += 1,
            (true, true) | (false, false) => {}
        }
        delta.jobs.push(job);
        delta.allocs.push(row);
    }

    pub(crate) fn alloc_rows(&self, ids: &[AllocId]) -> Vec<AllocRow> {
        let row = |id: &AllocId| self.allocs.find(*id).expect("the event names placed allocations");
        ids.iter().map(row).collect()
    }
}

/// A client status that the servers set is added to the allocation's states, with the time of the batch.
fn conclude(alloc: &mut Alloc, at: Moment, status: ClientStatus) {
    alloc.client = status;
    Arc::make_mut(&mut alloc.states).push(KnownState { status, time: at.time });
}
