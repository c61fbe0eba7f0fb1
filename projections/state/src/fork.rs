//! Private copies of the state in which one thing is different.

use std::sync::Arc;

use model::document::Job;

use crate::job::JobVersion;
use crate::row::JobRow;
use crate::{LazyDoc, State};

impl State {
    /// This state as if that version of the job had always been this one: no allocation of it is out of date. A
    /// version that is not remembered changes nothing.
    pub fn with_version(&self, row: JobRow, number: u64, job: Job) -> State {
        let mut fork = self.clone();
        let state = fork.jobs.get_mut(row);
        if let Some(at) = state.versions.iter().position(|version| version.version == number) {
            let version = JobVersion { job: LazyDoc::of(&job), ..JobVersion::clone(&state.versions[at]) };
            state.versions[at] = Arc::new(version);
        }
        fork.settle_digest();
        fork
    }

    /// This state without the private halves of root keys, and how many copies of them it had. They are sealed, each
    /// for a server; what is left proves what was signed, and opens and signs nothing.
    pub fn without_private_keys(&self) -> (State, usize) {
        let mut fork = self.clone();
        let sealed = fork.keyring.forget_private_halves();
        (fork, sealed)
    }
}
