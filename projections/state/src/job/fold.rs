#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Index;
use model::document::{Job, JobVersionTag, ScalingEvent};
use model::event::{
    JobLaunched, JobPurged, JobRegistered, JobScaled, JobStabilityChanged, JobStopped, JobVersionTagged,
    JobVersionUntagged,
};
use model::{ClientStatus, EvalStatus, JobKey, JobStatus, JobType};

use super::notes::SCALINGS_KEPT;
use super::state::{JobState, JobVersion, Jobs, VERSIONS_KEPT};
use crate::LazyDoc;
use crate::deployment::Deployment;
use crate::moment::Moment;
use crate::row::{AllocRow, JobRow};
use crate::{Delta, State};

impl Jobs {
    pub(crate) fn registered(&mut self, at: Moment, event: &JobRegistered) -> JobRow {
        let known = self.find(&event.key);
        let row = known.unwrap_or_else(|| self.add(at.index, &event.key));
        let job: LazyDoc<Job> = LazyDoc::new(event.document.0.clone());
        let state = self.get_mut(row);
        let kind =
            job.kind.as_deref().and_then(JobType::from_word).expect("a registered job has a known type");
        let before = state.versions.first();
        assert!(before.is_none_or(|before| before.version < event.version), "versions of a job only go up");
        for group in &job.task_groups {
            state.groups.entry(group.name.clone().unwrap_or_default()).or_default();
        }
        let version = JobVersion {
            version: event.version,
            // Going back to a version that was stopped does not start the job.
            stop: at.epoch >= 3 && job.stop == Some(true),
            job,
            kind,
            job_created: state.created,
            registered: at.index,
            submitted: at.time,
            submission: (!event.submission.is_empty()).then(|| LazyDoc::new(event.submission.0.clone())),
        };
        state.add_version(at, version);
        (state.modified, state.job_modified, state.summary_modified) = (at.index, at.index, at.index);
        if known.is_none() {
            self.adopt(row);
            self.child_changed(at, row);
        }
        row
    }

    pub(crate) fn stopped(&mut self, at: Moment, event: &JobStopped) -> JobRow {
        let row = self.known(&event.key);
        let state = self.get_mut(row);
        assert!(state.current().version < event.version, "versions of a job only go up");
        let stopped = JobVersion {
            version: event.version,
            stop: true,
            registered: at.index,
            submitted: at.time,
            ..JobVersion::clone(state.current())
        };
        state.add_version(at, stopped);
        (state.modified, state.job_modified) = (at.index, at.index);
        row
    }

    pub(crate) fn stability_changed(&mut self, at: Moment, event: &JobStabilityChanged) -> JobRow {
        let row = self.known(&event.key);
        let state = self.get_mut(row);
        state.stable.retain(|version| *version != event.version);
        if event.stable {
            state.stable.push(event.version);
        }
        state.modified = at.index;
        row
    }

    pub(crate) fn known(&self, key: &JobKey) -> JobRow {
        self.find(key).expect("the event names a registered job")
    }

    /// One allocation of the group moved from one client status to another; `None` is "not there".
    pub(crate) fn count(
        &mut self,
        at: Moment,
        row: JobRow,
        group: &str,
        from: Option<ClientStatus>,
        to: Option<ClientStatus>,
    ) {
        if from == to {
            return;
        }
        let state = self.get_mut(row);
        let counts = state.groups.entry(group.to_string()).or_default();
        // Failed and completed allocations stay counted, as in Nomad.
        if let Some(from) = from.filter(|from| !matches!(from, ClientStatus::Failed | ClientStatus::Complete))
        {
            let count = counts.count_mut(from);
            *count = count.saturating_sub(1);
        }
        if let Some(to) = to {
            *counts.count_mut(to) += 1;
        }
        state.summary_modified = at.index;
    }

    /// A parent's summary counts its children by status.
    fn child_changed(&mut self, at: Moment, child: JobRow) {
        if let Some(parent) = self.get(child).parent().and_then(|parent| self.find(&parent)) {
            self.get_mut(parent).summary_modified = at.index;
        }
    }

    fn add(&mut self, index: Index, key: &JobKey) -> JobRow {
        let row = self.rows.push(Arc::new(JobState {
            key: key.clone(),
            purged: false,
            status: JobStatus::Pending,
            versions: Vec::new(),
            created: index,
            modified: index,
            job_modified: index,
            groups: Default::default(),
            summary_modified: index,
            live_allocs: 0,
            live_evals: Vec::new(),
            had_evals: false,
            allocs: Arc::default(),
            evals: Arc::default(),
            deployments: Vec::new(),
            stable: Vec::new(),
            notes: None,
        }));
        self.by_key.insert(key.clone(), row);
        JobRow(row)
    }
}

impl Jobs {
    pub(crate) fn launched(&mut self, at: Moment, event: &JobLaunched) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let notes = job.notes_mut();
        notes.launched = notes.launched.max(Some(event.at));
        row
    }

    pub(crate) fn scaled(&mut self, at: Moment, event: &JobScaled) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let (time, create_index) = (at.time.0.max(0).unsigned_abs(), at.index.0);
        let scaling = ScalingEvent { time, create_index, ..event.scaling.read() };
        let history = job.notes_mut().scalings.entry(event.group.clone()).or_default();
        history.insert(0, scaling);
        history.truncate(SCALINGS_KEPT);
        row
    }

    pub(crate) fn version_tagged(&mut self, at: Moment, event: &JobVersionTagged) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let tag = JobVersionTag {
            name: event.name.clone(),
            description: event.description.clone(),
            tagged_time: at.time.0,
        };
        job.notes_mut().tags.insert(event.version, tag);
        row
    }

    pub(crate) fn version_untagged(&mut self, at: Moment, event: &JobVersionUntagged) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        job.notes_mut().tags.retain(|_, tag| tag.name != event.name);
        job.drop_old_versions(at);
        row
    }

    fn noted(&mut self, at: Moment, key: &JobKey) -> (JobRow, &mut JobState) {
        let row = self.known(key);
        let job = self.get_mut(row);
        job.modified = at.index;
        (row, job)
    }
}

impl JobState {
    fn add_version(&mut self, at: Moment, version: JobVersion) {
        let replaced = self.versions.first().map(|before| before.version).filter(|_| at.epoch >= 3);
        if let Some(replaced) = replaced {
            let status = self.status.to_string();
            self.notes_mut().statuses.insert(replaced, status);
        }
        self.versions.insert(0, Arc::new(version));
        self.drop_old_versions(at);
    }

    /// Keeps the newest versions, those that have a tag, and the newest stable one: it is what a failed deployment
    /// goes back to.
    fn drop_old_versions(&mut self, at: Moment) {
        let stable = self.stable.iter().max().copied().filter(|_| at.epoch >= 2);
        let pinned =
            |version: &JobVersion| self.tag(version.version).is_some() || stable == Some(version.version);
        // The newest stable version is one of those that are kept, not one more.
        let untagged_stable = stable.filter(|stable| self.tag(*stable).is_none());
        let others_kept = VERSIONS_KEPT - usize::from(untagged_stable.is_some());
        let mut others = 0;
        let kept = self.versions.iter().filter(|version| {
            others += usize::from(!pinned(version));
            others <= others_kept || pinned(version)
        });
        self.versions = kept.cloned().collect();
        let versions = &self.versions;
        let is_kept = |number: u64| versions.iter().any(|kept| kept.version == number);
        self.stable.retain(|stable| is_kept(*stable));
        if let Some(notes) = self.notes.as_mut().map(Arc::make_mut) {
            notes.statuses.retain(|number, _| is_kept(*number));
        }
    }
}

impl State {
    /// Removes the job and the allocations that have ended, and ends its unfinished evaluations.
    pub(crate) fn job_purged(&mut self, at: Moment, event: &JobPurged, delta: &mut Delta) {
        let row = self.jobs.known(&event.key);
        let allocs = self.jobs.get(row).allocs.clone();
        // What runs keeps its room until its node has stopped it.
        let stays = |alloc: &AllocRow| at.epoch >= 2 && self.allocs.get(*alloc).takes_room();
        let (stay, go): (Vec<AllocRow>, Vec<AllocRow>) = allocs.iter().copied().partition(stays);
        go.into_iter().for_each(|alloc| self.forget_alloc(at, alloc, delta));
        for eval in self.jobs.get(row).live_evals.clone() {
            let description = format!("job {:?} deleted", event.key.id);
            self.end_eval(at, eval, EvalStatus::Complete, description, delta);
        }
        for deployment in std::mem::take(&mut self.jobs.get_mut(row).deployments) {
            self.deployments.forget(at, deployment, delta);
        }
        let left = self.jobs.get(row);
        assert!(left.live_evals.is_empty(), "no evaluation of a purged job goes on");
        assert_eq!(left.live_allocs, 0, "no allocation of a purged job goes on");
        self.jobs.child_changed(at, row);
        self.jobs.orphan(row);
        let state = self.jobs.get_mut(row);
        let is_outlived = !stay.is_empty();
        (state.purged, state.modified, state.allocs) = (true, at.index, Arc::new(stay));
        state.notes = None;
        if is_outlived {
            Arc::make_mut(&mut self.jobs.outlived).insert(row);
        }
        self.jobs.by_key.remove(&event.key);
        delta.jobs.push(row);
    }

    /// Computes job statuses once per batch, at its end.
    pub(crate) fn settle_job_statuses(&mut self, at: Moment, delta: &Delta) {
        let touched: BTreeSet<JobRow> = delta.jobs.iter().copied().collect();
        for row in touched {
            let job = self.jobs.get(row);
            let newest = job.deployments.last().map(|row| self.deployments.get(*row));
            let status = status(job, newest.is_some_and(Deployment::is_active));
            if status != job.status {
                let job = self.jobs.get_mut(row);
                (job.status, job.modified) = (status, at.index);
                self.jobs.child_changed(at, row);
            }
        }
    }
}

/// The status of a job as Nomad derives it from its allocations, evaluations and newest deployment.
fn status(job: &JobState, deploys: bool) -> JobStatus {
    let wanted = &job.current().job;
    let stays = wanted.periodic.is_some() || wanted.parameterized_job.is_some() && !wanted.dispatched;
    if stays || job.current().kind == JobType::System {
        return if job.is_stopped() { JobStatus::Dead } else { JobStatus::Running };
    }
    if deploys || job.live_allocs > 0 {
        JobStatus::Running
    } else if !job.live_evals.is_empty() {
        JobStatus::Pending
    } else if job.had_evals || job.is_stopped() {
        JobStatus::Dead
    } else {
        JobStatus::Pending
    }
}
