//! Dispatched and launched jobs: which job is their parent, and counts of children by status.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::pages::PAGE_ROWS;
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

/// The children of one job, by pages of jobs: a change copies one page of them, however many there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Children(BTreeMap<u32, Arc<Vec<JobRow>>>);

impl Children {
    fn add(&mut self, row: JobRow) {
        let page = Arc::make_mut(self.0.entry(page(row)).or_default());
        let at = page.partition_point(|other| *other < row);
        page.insert(at, row);
    }

    fn remove(&mut self, row: JobRow) {
        let Some(rows) = self.0.get_mut(&page(row)) else { return };
        Arc::make_mut(rows).retain(|other| *other != row);
        if rows.is_empty() {
            self.0.remove(&page(row));
        }
    }
}

fn page(row: JobRow) -> u32 {
    row.0 / PAGE_ROWS as u32
}

impl Jobs {
    /// Jobs that name this one as their parent, oldest first. It may be gone itself.
    pub fn children(&self, parent: &JobKey) -> impl Iterator<Item = &JobState> {
        let pages = self.children.get(parent).into_iter().flat_map(|children| children.0.values());
        pages.flat_map(|rows| rows.iter()).map(|row| self.get(*row))
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
            Arc::make_mut(children).add(row);
        }
    }

    /// A job is removed that may have a parent.
    pub(crate) fn orphan(&mut self, row: JobRow) {
        let Some(parent) = self.get(row).parent() else { return };
        let all = Arc::make_mut(&mut self.children);
        if let Some(children) = all.get_mut(&parent) {
            Arc::make_mut(children).remove(row);
            if children.0.is_empty() {
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
