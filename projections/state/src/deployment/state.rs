use std::collections::BTreeMap;
use std::sync::Arc;

use base::{IdMap, Index, Time};
use model::event::DeploymentGoal;
use model::{AllocId, DeploymentId, DeploymentStatus};
use serde::{Deserialize, Serialize};

use crate::job::JobVersion;
use crate::row::{DeploymentRow, JobRow};
use crate::rows::{Rows, releases};

/// The progress of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupProgress {
    pub goal: DeploymentGoal,
    pub promoted: bool,
    /// In the order in which they were placed; ended ones stay.
    pub placed_canaries: Vec<AllocId>,
    pub placed: u32,
    /// Allocations whose health was first set to healthy. One that recovers is not counted, as in Nomad.
    pub healthy: u32,
    pub unhealthy: u32,
    /// Zero while nothing has been placed, and without a limit.
    pub require_progress_by: Time,
}

impl GroupProgress {
    /// It waits for the promotion of its canaries.
    pub fn is_canarying(&self) -> bool {
        self.goal.desired_canaries > 0 && !self.promoted
    }

    /// Something still has to become healthy.
    pub fn is_short(&self) -> bool {
        let wanted = if self.is_canarying() { self.goal.desired_canaries } else { self.goal.desired_total };
        self.healthy < wanted
    }

    pub(super) fn reset_deadline(&mut self, now: Time) {
        if self.require_progress_by != Time::ZERO {
            self.require_progress_by = now.plus(self.goal.progress_deadline);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    pub id: DeploymentId,
    pub job: JobRow,
    /// The version of the job, and which incarnation of its name it is of.
    pub version: u64,
    pub job_created: Index,
    /// When the version was registered, and when the job was last changed before the deployment began.
    pub registered: Index,
    pub job_modified: Index,
    /// Of the evaluations it leads to.
    pub priority: u32,
    pub is_multiregion: bool,
    pub status: DeploymentStatus,
    pub description: String,
    pub groups: BTreeMap<String, GroupProgress>,
    /// The last batch in which an allocation became healthy: the scheduler has to go on after it.
    pub progressed: Index,
    /// It was forgotten.
    pub gone: bool,
    pub created: Index,
    pub modified: Index,
    pub create_time: Time,
    pub modify_time: Time,
}

impl Deployment {
    pub fn is_active(&self) -> bool {
        self.status.is_active()
    }

    pub fn is_of(&self, version: &JobVersion) -> bool {
        (self.job_created, self.version) == (version.job_created, version.version)
    }

    pub fn needs_promotion(&self) -> bool {
        self.groups.values().any(GroupProgress::is_canarying)
    }

    /// Every group with canaries is promoted as soon as they are healthy.
    pub fn promotes_itself(&self) -> bool {
        promotes_itself(self.groups.values().map(|group| &group.goal))
    }
}

/// When the deployment fails unless something becomes healthy; none while nothing can be late.
pub fn next_deadline(deployment: &Deployment) -> Option<Time> {
    let late = |group: &&GroupProgress| group.require_progress_by != Time::ZERO && group.is_short();
    let running = deployment.status == DeploymentStatus::Running && !deployment.gone;
    let groups = deployment.groups.values().filter(late).filter(|_| running);
    groups.map(|group| group.require_progress_by).min()
}

/// Some groups have canaries, and all of those say `auto_promote`.
pub(super) fn promotes_itself<'a>(goals: impl Iterator<Item = &'a DeploymentGoal>) -> bool {
    let mut canaries = goals.filter(|goal| goal.desired_canaries > 0).peekable();
    canaries.peek().is_some() && canaries.all(|goal| goal.auto_promote)
}

releases!(Deployment, Deployment::released());

impl Deployment {
    /// How a deployment reads that was forgotten and released.
    fn released() -> Deployment {
        Deployment {
            id: DeploymentId::default(),
            job: JobRow(0),
            version: 0,
            job_created: Index::ZERO,
            registered: Index::ZERO,
            job_modified: Index::ZERO,
            priority: 0,
            is_multiregion: false,
            status: DeploymentStatus::Cancelled,
            description: String::new(),
            groups: BTreeMap::new(),
            progressed: Index::ZERO,
            gone: true,
            created: Index::ZERO,
            modified: Index::ZERO,
            create_time: Time::ZERO,
            modify_time: Time::ZERO,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deployments {
    pub(crate) by_id: IdMap<DeploymentId>,
    pub(crate) rows: Rows<Arc<Deployment>>,
}

impl Deployments {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn find(&self, id: DeploymentId) -> Option<DeploymentRow> {
        self.by_id.get(&id).map(DeploymentRow)
    }

    pub fn get(&self, row: DeploymentRow) -> &Deployment {
        &self.rows[row.0]
    }

    pub fn lookup(&self, id: DeploymentId) -> Option<&Deployment> {
        self.find(id).map(|row| self.get(row))
    }

    /// Known deployments in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (DeploymentRow, &Deployment)> {
        self.by_id.rows().map(|row| (DeploymentRow(row), self.get(DeploymentRow(row))))
    }

    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = DeploymentRow> {
        self.by_id.with_prefix(prefix).map(DeploymentRow)
    }

    pub(super) fn get_mut(&mut self, row: DeploymentRow) -> &mut Deployment {
        Arc::make_mut(self.rows.held_mut(row.0))
    }
}
