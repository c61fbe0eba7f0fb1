use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{IdMap, Index, Time};
use model::document::{Job, JobSubmission, JobVersionTag, PeriodicConfig, ScalingEvent, TaskGroup};
use model::{ClientStatus, JobKey, JobStatus, JobType};

use super::children::Children;
use super::notes::Notes;
use crate::LazyDoc;
use crate::row::{AllocRow, DeploymentRow, EvalRow, JobRow};
use crate::rows::{Rows, releases};

/// Versions of a job that are remembered, the current one included.
pub const VERSIONS_KEPT: usize = 6;

/// One version of a job. Allocations hold the version they run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobVersion {
    pub version: u64,
    /// Stopping a job makes a version too: the same job, not wanted.
    pub stop: bool,
    /// Canonical, as it was registered; what the servers know besides is not in it.
    pub job: LazyDoc<Job>,
    pub kind: JobType,
    /// When the job itself, this incarnation of its name, was created.
    pub job_created: Index,
    /// The batch that registered this version.
    pub registered: Index,
    pub submitted: Time,
    pub submission: Option<LazyDoc<JobSubmission>>,
}

impl JobVersion {
    pub fn group(&self, name: &str) -> Option<&TaskGroup> {
        self.job.task_groups.iter().find(|group| group.name.as_deref() == Some(name))
    }

    pub fn priority(&self) -> u32 {
        self.job.priority.and_then(|p| u32::try_from(p).ok()).unwrap_or(50)
    }
}

/// Allocations of one group, counted by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSummary {
    pub queued: u32,
    pub starting: u32,
    pub running: u32,
    pub complete: u32,
    pub failed: u32,
    pub lost: u32,
    pub unknown: u32,
}

impl GroupSummary {
    pub(crate) fn numbers(&self) -> [u32; 7] {
        let GroupSummary { queued, starting, running, complete, failed, lost, unknown } = *self;
        [queued, starting, running, complete, failed, lost, unknown]
    }

    pub(crate) fn from_numbers(numbers: [u32; 7]) -> GroupSummary {
        let [queued, starting, running, complete, failed, lost, unknown] = numbers;
        GroupSummary { queued, starting, running, complete, failed, lost, unknown }
    }

    pub(crate) fn count_mut(&mut self, status: ClientStatus) -> &mut u32 {
        match status {
            ClientStatus::Pending => &mut self.starting,
            ClientStatus::Running => &mut self.running,
            ClientStatus::Complete => &mut self.complete,
            ClientStatus::Failed => &mut self.failed,
            ClientStatus::Lost => &mut self.lost,
            ClientStatus::Unknown => &mut self.unknown,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct JobState {
    pub key: JobKey,
    /// Forgotten: the row stays, the job does not.
    pub purged: bool,
    pub status: JobStatus,
    /// Newest first; the first is the current one.
    pub versions: Vec<Arc<JobVersion>>,
    pub created: Index,
    pub modified: Index,
    /// The last batch that changed what is wanted, as opposed to what is known.
    pub job_modified: Index,
    pub groups: BTreeMap<String, GroupSummary>,
    pub summary_modified: Index,
    /// Allocations that are neither ended nor asked to end.
    pub live_allocs: u32,
    /// Evaluations that have not ended.
    pub live_evals: Vec<EvalRow>,
    pub had_evals: bool,
    pub allocs: Arc<Vec<AllocRow>>,
    pub evals: Arc<Vec<EvalRow>>,
    /// Oldest first.
    pub deployments: Vec<DeploymentRow>,
    /// Stable versions: those to revert to when a deployment fails.
    pub stable: Vec<u64>,
    pub notes: Option<Arc<Notes>>,
}

impl JobState {
    pub fn current(&self) -> &Arc<JobVersion> {
        self.versions.first().expect("a job has at least the version it was registered with")
    }

    pub fn version(&self, number: u64) -> Option<&Arc<JobVersion>> {
        self.versions.iter().find(|version| version.version == number)
    }

    pub fn is_stopped(&self) -> bool {
        self.current().stop
    }

    pub fn is_stable(&self, version: u64) -> bool {
        self.stable.contains(&version)
    }

    /// When it is launched, if it is periodic and not stopped.
    pub fn schedule(&self) -> Option<&PeriodicConfig> {
        if self.purged {
            return None;
        }
        let version = self.current();
        // A document that has no such block does not have its name either: most are not read for it.
        let is_named = version.job.bytes().windows(8).any(|bytes| bytes == b"Periodic");
        if !is_named || !self.is_wanted() {
            return None;
        }
        let is_model = version.job.parameterized_job.is_some() && !version.job.dispatched;
        version.job.periodic.as_ref().filter(|_| !is_model)
    }

    /// Neither stopped nor purged.
    pub fn is_wanted(&self) -> bool {
        !self.purged && !self.is_stopped()
    }
}

impl JobState {
    /// The tag of the version.
    pub fn tag(&self, version: u64) -> Option<&JobVersionTag> {
        self.notes.as_ref()?.tags.get(&version)
    }

    /// The version with that tag.
    pub fn tagged(&self, name: &str) -> Option<u64> {
        let tags = &self.notes.as_ref()?.tags;
        tags.iter().find(|(_, tag)| tag.name == name).map(|(version, _)| *version)
    }

    /// How the group was scaled, newest first.
    pub fn scalings(&self, group: &str) -> &[ScalingEvent] {
        self.notes.as_ref().and_then(|notes| notes.scalings.get(group)).map_or(&[], Vec::as_slice)
    }

    /// The moment a periodic job was last launched for; before the first time, when its newest version came.
    pub fn last_launch(&self) -> Time {
        let submitted = self.current().submitted;
        self.notes.as_ref().and_then(|notes| notes.launched).map_or(submitted, |at| at.max(submitted))
    }

    pub(crate) fn one_less_live(&mut self) {
        let less = self.live_allocs.checked_sub(1);
        self.live_allocs = less.expect("a live allocation of a job ends once");
    }

    pub(super) fn notes_mut(&mut self) -> &mut Notes {
        Arc::make_mut(self.notes.get_or_insert_default())
    }
}

releases!(JobState, JobState::released());

impl JobState {
    /// How a job reads that was purged and released.
    pub(crate) fn released() -> JobState {
        JobState {
            key: JobKey::new("", ""),
            purged: true,
            status: JobStatus::Dead,
            versions: Vec::new(),
            created: Index::ZERO,
            modified: Index::ZERO,
            job_modified: Index::ZERO,
            groups: BTreeMap::new(),
            summary_modified: Index::ZERO,
            live_allocs: 0,
            live_evals: Vec::new(),
            had_evals: true,
            allocs: Arc::default(),
            evals: Arc::default(),
            deployments: Vec::new(),
            stable: Vec::new(),
            notes: None,
        }
    }

    /// It is [`JobState::released`]: every other job has a version.
    pub(crate) fn is_released(&self) -> bool {
        self.versions.is_empty()
    }

    /// It was purged and nothing of it is left.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.purged && self.allocs.is_empty() && self.evals.is_empty() && self.deployments.is_empty()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobs {
    pub(crate) by_key: IdMap<JobKey>,
    pub(crate) rows: Rows<Arc<JobState>>,
    /// Of each job that others name as their parent. Follows from the rows.
    pub(crate) children: Arc<BTreeMap<JobKey, Arc<Children>>>,
    /// Purged jobs that still have allocations. Follows from the rows.
    pub(crate) outlived: Arc<BTreeSet<JobRow>>,
}

impl Jobs {
    /// Jobs that are known now, stopped ones included.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn find(&self, key: &JobKey) -> Option<JobRow> {
        self.by_key.get(key).map(JobRow)
    }

    pub fn get(&self, row: JobRow) -> &JobState {
        &self.rows[row.0]
    }

    pub fn lookup(&self, key: &JobKey) -> Option<&JobState> {
        self.find(key).map(|row| self.get(row))
    }

    /// Purged jobs of which an allocation has not been collected.
    pub fn purged(&self) -> impl Iterator<Item = &JobState> {
        self.outlived.iter().map(|row| self.get(*row))
    }

    /// Rows of all jobs of which anything is left, purged ones included.
    pub fn all_rows(&self) -> impl Iterator<Item = JobRow> {
        self.rows.held().map(|(row, _)| JobRow(row))
    }

    /// Known jobs, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (JobRow, &JobState)> {
        self.by_key.rows().map(|row| (JobRow(row), self.get(JobRow(row))))
    }

    pub(crate) fn get_mut(&mut self, row: JobRow) -> &mut JobState {
        Arc::make_mut(self.rows.held_mut(row.0))
    }
}
