//! The output of tasks of plugins: a directory for each start, with the pipes that the plugin writes to, and a note whose they
//! are.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use executor::spec;

use super::copier;
use super::task::TaskRecord;
use crate::driver::{Known, Logs};

/// What the output is that nobody wants.
const NOWHERE: &str = "/dev/null";

/// In each directory: the task, so that one is found which was started and not stored.
const TASK_FILE: &str = "task.json";

#[derive(Clone, Debug)]
pub struct Outputs {
    pub directory: PathBuf,
    /// What copies.
    pub executor_program: PathBuf,
}

impl Outputs {
    /// Makes the directory of a start. Returns it, and where the task writes to.
    ///
    /// # Errors
    /// When nobody would copy what is written.
    pub async fn open(
        &self,
        alloc_id: &str,
        instance: &str,
        record: &TaskRecord,
        logs: Option<Logs>,
    ) -> Result<(PathBuf, String, String), String> {
        let short: String = alloc_id.chars().take(8).collect();
        let directory = self.directory.join(format!("{short}-{instance}"));
        let note = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            spec::write(&directory, TASK_FILE, record)
        };
        note().map_err(|error| format!("{}: {error}", directory.display()))?;
        let Some(logs) = logs else { return Ok((directory, NOWHERE.to_string(), NOWHERE.to_string())) };
        let streams = [("stdout", logs.stdout), ("stderr", logs.stderr)];
        copier::ensure(&self.executor_program, &directory, &streams).await?;
        let [stdout, stderr] = streams.map(|(name, _)| copier::pipe(&directory, name).display().to_string());
        Ok((directory, stdout, stderr))
    }

    /// Goes on copying what a task of an earlier agent writes; the process that does so is still there, as a rule.
    pub async fn resume(&self, directory: &Path) {
        if directory.join(spec::SPEC_FILE).exists()
            && let Err(error) = copier::ensure_again(&self.executor_program, directory).await
        {
            tracing::warn!(error, "the output of a task is not copied any more");
        }
    }

    /// What has come is copied, and everything is removed.
    pub async fn close(&self, directory: &Path) {
        if directory.starts_with(&self.directory) && directory != self.directory {
            copier::end(directory).await;
        }
    }

    /// Those of a driver that no handle names.
    pub fn forgotten(&self, driver: &str, known: &Known) -> Vec<(PathBuf, TaskRecord)> {
        let stored = known.handles.iter().filter_map(|handle| TaskRecord::read(&handle.state).ok());
        let stored: Vec<PathBuf> = stored.map(|record| record.outputs).collect();
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let found = entries.map(|entry| entry.path()).filter(|directory| !stored.contains(directory));
        let found = found.filter_map(|directory| {
            let record: TaskRecord = spec::read(&directory, TASK_FILE).ok().flatten()?;
            (record.driver == driver).then_some((directory, record))
        });
        found.collect()
    }
}
