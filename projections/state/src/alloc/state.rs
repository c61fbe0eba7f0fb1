use std::sync::Arc;

use base::{IdMap, Index, Time};
use model::document::AllocationMetric;
use model::{AllocId, ClientStatus, DeploymentId, Desired, EvalId, Given, JobType, NodeId, Report, Template};

use crate::LazyDoc;
use crate::job::JobVersion;
use crate::moment::Moment;
use crate::node::Amount;
use crate::row::{AllocRow, JobRow, NodeRow};
use crate::rows::{Rows, releases};

/// A client status the servers concluded, and when: the compatible part of an allocation's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownState {
    pub status: ClientStatus,
    pub time: Time,
}

/// What operators or servers asked the scheduler to do with an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transition {
    pub migrate: bool,
    pub reschedule: bool,
    pub no_shutdown_delay: bool,
    pub force_reschedule: bool,
    pub disable_placement: bool,
}

impl Transition {
    /// It is to leave its place, in one way or another.
    pub fn is_asked_to_leave(&self) -> bool {
        self.migrate || self.reschedule || self.force_reschedule
    }
}

/// What is known of an allocation's health, and its part in a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub canary: bool,
    /// None before there is a verdict.
    pub healthy: Option<bool>,
    pub time: Time,
    /// Zero if nothing is known.
    pub modified: Index,
}

impl Health {
    pub(crate) fn judge(&mut self, at: Moment, healthy: bool, time: Time) {
        *self = Health { canary: self.canary, healthy: Some(healthy), time, modified: at.index };
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alloc {
    pub id: AllocId,
    pub job: JobRow,
    pub node: NodeRow,
    pub node_id: NodeId,
    /// The version of the job it runs.
    pub version: Arc<JobVersion>,
    pub group: Arc<str>,
    /// The number in its name.
    pub name_index: u32,
    pub eval: EvalId,
    pub desired: Desired,
    pub desired_description: Arc<str>,
    pub client: ClientStatus,
    pub client_description: Arc<str>,
    pub transition: Transition,
    pub template: LazyDoc<Template>,
    pub metrics: LazyDoc<AllocationMetric>,
    /// Host ports, in the order of the template's.
    pub ports: Arc<[u16]>,
    /// What it was given beyond its template; an in-place update leaves it.
    pub given: LazyDoc<Given>,
    /// Never shortened, also not when it is stopped.
    pub states: Arc<Vec<KnownState>>,
    pub previous: Option<AllocId>,
    pub next: Option<AllocId>,
    pub follow_up: Option<EvalId>,
    /// Who makes room for it.
    pub preempted: Arc<[AllocId]>,
    pub preempted_by: Option<AllocId>,
    pub deployment: Option<DeploymentId>,
    pub health: Health,
    pub report: LazyDoc<Report>,
    /// It was forgotten.
    pub gone: bool,
    pub created: Index,
    pub modified: Index,
    /// The last batch that changed what its node should do: a node's own report does not.
    pub alloc_modified: Index,
    pub create_time: Time,
    pub modify_time: Time,
}

/// The name of an allocation of that version: `web.server[0]`.
pub fn name(version: &JobVersion, group: &str, index: u32) -> String {
    let key = if version.kind.is_per_node() { &version.job.name } else { &version.job.id };
    format!("{}.{group}[{index}]", key.as_deref().unwrap_or_default())
}

impl Alloc {
    /// The servers want it to end.
    pub fn is_stopping(&self) -> bool {
        self.desired != Desired::Run
    }

    /// It has ended, or is wanted to.
    pub fn is_terminal(&self) -> bool {
        self.is_stopping() || self.client.is_terminal()
    }

    /// It takes room on its node: until the node says that it ended, or it is given up.
    pub fn takes_room(&self) -> bool {
        !self.gone && !self.client.is_terminal()
    }

    pub fn amount(&self) -> Amount {
        Amount::of(&self.template, &self.given)
    }

    /// It was given something beyond its template: cores, devices, or ports on other addresses. Nothing is read
    /// for the answer.
    pub fn is_equipped(&self) -> bool {
        !self.given.bytes().is_empty()
    }

    pub fn name(&self) -> String {
        name(&self.version, &self.group, self.name_index)
    }

    /// The servers' last conclusion is `unknown`: its return has not been recorded yet.
    pub fn needs_to_reconnect(&self) -> bool {
        self.states.last().is_some_and(|state| state.status == ClientStatus::Unknown)
    }

    /// The servers once gave it up for lost, whatever its node reported of it later.
    pub fn was_lost(&self) -> bool {
        self.states.iter().any(|state| state.status == ClientStatus::Lost)
    }

    /// When the newest unbroken run of `unknown` began; zero if it never was.
    pub fn last_unknown(&self) -> Time {
        let newest_first = self.states.iter().rev().skip_while(|state| state.status != ClientStatus::Unknown);
        let run = newest_first.take_while(|state| state.status == ClientStatus::Unknown);
        run.last().map_or(Time::ZERO, |state| state.time)
    }

    /// How long it may stay unknown before it is lost; zero when the group does not say.
    pub fn lost_after(&self) -> base::Duration {
        let disconnect = self.version.group(&self.group).and_then(|group| group.disconnect.as_ref());
        disconnect.and_then(|block| block.lost_after).map_or(base::Duration::ZERO, |span| span.0)
    }

    /// It was unknown for longer than it may be.
    pub fn is_expired(&self, now: Time) -> bool {
        let since = self.last_unknown();
        self.client == ClientStatus::Unknown && since != Time::ZERO && since.plus(self.lost_after()) <= now
    }

    /// Every task ended, and none failed.
    pub fn ran_successfully(&self) -> bool {
        let tasks = &self.report.task_states;
        !tasks.is_empty() && tasks.values().all(|task| task.state == "dead" && !task.failed)
    }

    /// When its last task ended; when it was last changed if none did.
    pub fn last_event_time(&self) -> Time {
        let ended = self.report.task_states.values().map(|task| task.finished_at.time()).max();
        ended.filter(|time| *time != Time::ZERO).unwrap_or(self.modify_time)
    }
}

releases!(Alloc, Alloc::released());

impl Alloc {
    /// How an allocation reads that was forgotten and released.
    fn released() -> Alloc {
        let version = JobVersion {
            version: 0,
            stop: true,
            job: LazyDoc::default(),
            kind: JobType::Service,
            job_created: Index::ZERO,
            registered: Index::ZERO,
            submitted: Time::ZERO,
            submission: None,
        };
        Alloc {
            id: AllocId::default(),
            job: JobRow(0),
            node: NodeRow(0),
            node_id: NodeId::default(),
            version: Arc::new(version),
            group: "".into(),
            name_index: 0,
            eval: EvalId::default(),
            desired: Desired::Stop,
            desired_description: "".into(),
            client: ClientStatus::Complete,
            client_description: "".into(),
            transition: Transition::default(),
            template: LazyDoc::default(),
            metrics: LazyDoc::default(),
            ports: Arc::default(),
            given: LazyDoc::default(),
            states: Arc::default(),
            previous: None,
            next: None,
            follow_up: None,
            preempted: Arc::default(),
            preempted_by: None,
            deployment: None,
            health: Health::default(),
            report: LazyDoc::default(),
            gone: true,
            created: Index::ZERO,
            modified: Index::ZERO,
            alloc_modified: Index::ZERO,
            create_time: Time::ZERO,
            modify_time: Time::ZERO,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocs {
    pub(crate) by_id: IdMap<AllocId>,
    pub(crate) rows: Rows<Arc<Alloc>>,
}

impl Allocs {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn find(&self, id: AllocId) -> Option<AllocRow> {
        self.by_id.get(&id).map(AllocRow)
    }

    pub fn get(&self, row: AllocRow) -> &Alloc {
        &self.rows[row.0]
    }

    pub fn lookup(&self, id: AllocId) -> Option<&Alloc> {
        self.find(id).map(|row| self.get(row))
    }

    /// Known allocations in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (AllocRow, &Alloc)> {
        self.by_id.rows().map(|row| (AllocRow(row), self.get(AllocRow(row))))
    }

    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = AllocRow> {
        self.by_id.with_prefix(prefix).map(AllocRow)
    }

    pub(super) fn get_mut(&mut self, row: AllocRow) -> &mut Alloc {
        Arc::make_mut(self.rows.held_mut(row.0))
    }
}
