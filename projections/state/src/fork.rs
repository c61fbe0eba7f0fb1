//! Private copies of the state in which one thing is different.

use std::sync::Arc;

use model::document::Job;

use crate::job::JobVersion;
use crate::row::JobRow;
use crate::{LazyDoc, State};

impl State {
    /// This state as if the job's current version had always been this one: no allocation of it is out of date.
    pub fn with_current(&self, row: JobRow, job: Job) -> State {
        let mut fork = self.clone();
        let state = fork.jobs.get_mut(row);
        let version = JobVersion { job: LazyDoc::of(&job), ..JobVersion::clone(state.current()) };
        state.versions[0] = Arc::new(version);
        fork.settle_digest();
        fork
    }
}
