//! Where the output of the task is written.

use model::document::Task;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::Logs;
use crate::hook::{HookFuture, HookState, ready};
use crate::layout::AllocDir;
use executor::spec::LogSpec;

#[derive(Debug)]
pub struct LogsHook;

impl TaskHook for LogsHook {
    fn name(&self) -> &'static str {
        "logmon"
    }

    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        let logs = parts(&start.alloc, task, self.name()).map(|parts| logs(parts.task, &task.alloc_dir));
        ready(logs.map(|logs| start.logs = logs))
    }
}

/// `None` where the task wants no logs.
fn logs(task: &Task, alloc_dir: &AllocDir) -> Option<Logs> {
    let config = task.log_config.clone().unwrap_or_default();
    if config.disabled == Some(true) || config.enabled == Some(false) {
        return None;
    }
    let spec = |stream: &str| LogSpec {
        directory: alloc_dir.logs(),
        name: format!("{}.{stream}", task.name),
        files_max: config.max_files.unwrap_or(10).max(1) as u64,
        file_bytes_max: config.max_file_size_mb.unwrap_or(10).max(1) as u64 * 1024 * 1024,
    };
    Some(Logs { stdout: spec("stdout"), stderr: spec("stderr") })
}
