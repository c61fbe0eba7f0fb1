//! Dispatched and launched jobs: which job is their parent, and counts of children by status.

use std::sync::Arc;

use model::{JobKey, JobStatus};

use super::state::{JobState, Jobs};
use crate::row::JobRow;

/// The children of a job, counted by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildrenSummary {
    pub pending: u32,
    pub running: u32,
    pub dead: u32,
}

impl Jobs {
    /// Jobs that name this one as their parent, oldest first. It may be gone itself.
    pub fn children(&self, parent: &JobKey) -> impl Iterator<Item = &JobState> {
        self.children.get(parent).into_iter().flat_map(|rows| rows.iter()).map(|row| self.get(*row))
    }

    pub fn children_summary(&self, parent: &JobKey) -> ChildrenSummary {
        let mut summary = ChildrenSummary::default();
        for child in self.children(parent) {
            match child.status {
                JobStatus::Pending => summary.pending += 1,
                JobStatus::Running => summary.running += 1,
                JobStatus::Dead => summary.dead += 1,
            }
        }
        summary
    }

    /// A job was added that may have a parent.
    pub(crate) fn adopt(&mut self, row: JobRow) {
        if let Some(parent) = self.get(row).parent() {
            let children = Arc::make_mut(&mut self.children).entry(parent).or_default();
            Arc::make_mut(children).push(row);
        }
    }

    /// A job is removed that may have a parent.
    pub(crate) fn orphan(&mut self, row: JobRow) {
        let Some(parent) = self.get(row).parent() else { return };
        let all = Arc::make_mut(&mut self.children);
        if let Some(children) = all.get_mut(&parent) {
            Arc::make_mut(children).retain(|child| *child != row);
            if children.is_empty() {
                all.remove(&parent);
            }
        }
    }
}

impl JobState {
    /// The parent of the job. Only ids with a slash are looked at: those that are made for children have one.
    pub fn parent(&self) -> Option<JobKey> {
        if !self.key.id.contains('/') {
            return None;
        }
        let parent = self.current().job.parent_id.as_deref().filter(|parent| !parent.is_empty())?;
        Some(JobKey::new(&self.key.namespace, parent))
    }
}
