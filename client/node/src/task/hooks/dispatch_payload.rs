//! The payload of a dispatched job, in the file that the task names.

use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use wire::payload;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::layout::TaskDir;
use crate::task::parts::TaskParts;

#[derive(Debug)]
pub struct DispatchPayload;

const NAME: &str = "dispatch_payload";

impl TaskHook for DispatchPayload {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Done once: the task may change the file.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        let written = parts(&start.alloc, task, NAME).and_then(|parts| write(parts, &start.dir));
        ready(written.map(|written| state.done = written))
    }
}

/// True when there was a payload to write.
fn write(parts: TaskParts<'_>, dir: &TaskDir) -> Result<bool, HookError> {
    let Some(wanted) = &parts.task.dispatch_payload else { return Ok(false) };
    if wanted.file.is_empty() || parts.job.payload.0.is_empty() {
        return Ok(false);
    }
    let file = Path::new(&wanted.file);
    if !file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(HookError::fatal(NAME, format!("path \"{}\" escapes the task directory", wanted.file)));
    }
    let payload = payload::decompress(&parts.job.payload.0).map_err(|error| HookError::fatal(NAME, error))?;
    let path = dir.local.join(file);
    let write = || {
        std::fs::create_dir_all(path.parent().expect("a file in local/ has a parent"))?;
        std::fs::write(&path, payload)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
    };
    write().map(|()| true).map_err(|error| HookError::fatal(NAME, error))
}

#[cfg(test)]
mod tests {
    use model::document::{Job, Task, TaskGroup};

    use super::*;
    use crate::layout::AllocDir;

    #[test]
    fn a_payload_is_written_in_the_local_directory_and_nowhere_else() {
        let base = tempfile::tempdir().unwrap();
        let alloc_dir = AllocDir::new(base.path(), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        let dir = alloc_dir.build_task("t", None).unwrap();
        let job = Job { payload: model::document::Bytes(b"\x02\x04hi".to_vec()), ..Job::default() };
        let write = |file: &str| {
            let task: Task =
                serde_json::from_value(serde_json::json!({"DispatchPayload": {"File": file}})).unwrap();
            super::write(TaskParts { job: &job, group: &TaskGroup::default(), task: &task }, &dir)
        };
        assert!(write("in/put.txt").unwrap());
        assert_eq!(std::fs::read(dir.local.join("in/put.txt")).unwrap(), b"hi");
        assert!(write("../x").is_err());
        assert!(write("/x").is_err());
        assert!(!write("").unwrap(), "there is nothing to write");
    }
}
