//! What is made ready before a task starts, and what is refused because this agent does not do it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use model::document::{Allocation, Job, Task, TaskGroup};

use super::snappy;
use crate::driver::{Limits, Logs};
use crate::layout::{AllocDir, TaskDir};
use executor::spec::LogSpec;

/// A step that failed, and its words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{hook}: {message}")]
pub struct HookError {
    pub hook: &'static str,
    pub message: String,
}

/// The parts of an allocation's job that concern one task.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub job: &'a Job,
    pub group: &'a TaskGroup,
    pub task: &'a Task,
}

impl<'a> Parts<'a> {
    /// `None` when the allocation's job no longer has the task.
    pub fn find(alloc: &'a Allocation, task: &str) -> Option<Parts<'a>> {
        let job = alloc.job.as_ref()?;
        let group = job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))?;
        let task = group.tasks.iter().find(|own| own.name == task)?;
        Some(Parts { job, group, task })
    }
}

/// Names the first block that this agent cannot honour. Running the task without it would be worse than
/// not running it.
pub fn unsupported(task: &Task) -> Result<(), HookError> {
    let identity =
        task.identity.iter().chain(&task.identities.0).any(|identity| identity.env || identity.file);
    let blocks = [
        ("vault", task.vault.is_some()),
        ("secrets", !task.secrets.is_empty()),
        ("identity", identity),
        ("volumes", !task.volume_mounts.is_empty()),
        ("artifacts", !task.artifacts.is_empty()),
        ("template", !task.templates.is_empty()),
        ("csi_plugin_supervisor", task.csi_plugin_config.is_some()),
        ("pause", task.schedule.is_some()),
        ("consul_connect", !task.kind.is_empty()),
        ("devices", task.resources.as_ref().is_some_and(|resources| !resources.devices.is_empty())),
    ];
    match blocks.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((hook, _)) => Err(HookError { hook, message: "not supported by this node".to_string() }),
    }
}

/// Writes the payload of a dispatched job where the task wants it.
pub fn write_payload(parts: Parts<'_>, dir: &TaskDir) -> Result<(), HookError> {
    let Some(wanted) = &parts.task.dispatch_payload else { return Ok(()) };
    if wanted.file.is_empty() || parts.job.payload.0.is_empty() {
        return Ok(());
    }
    let failed = |message: String| HookError { hook: "dispatch_payload", message };
    let file = Path::new(&wanted.file);
    if !file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(failed(format!("path \"{}\" escapes the task directory", wanted.file)));
    }
    let payload = snappy::decode(&parts.job.payload.0).map_err(|error| failed(error.to_string()))?;
    let path = dir.local.join(file);
    let write = || {
        std::fs::create_dir_all(path.parent().expect("a file in local/ has a parent"))?;
        std::fs::write(&path, payload)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
    };
    write().map_err(|error| failed(error.to_string()))
}

/// Where the output of the task goes; `None` where it wants no logs.
pub fn logs(task: &Task, alloc_dir: &AllocDir) -> Option<Logs> {
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

pub fn limits(alloc: &Allocation, task: &str) -> Limits {
    let granted = alloc.allocated_resources.as_ref().and_then(|granted| granted.tasks.get(task));
    granted.map_or(Limits::default(), |granted| Limits {
        cpu_mhz: granted.cpu.cpu_shares,
        memory_mb: granted.memory.memory_mb,
        memory_max_mb: granted.memory.memory_max_mb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(value: serde_json::Value) -> Task {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn blocks_that_cannot_be_honoured_are_refused_by_name() {
        unsupported(&task(serde_json::json!({"Identity": {"Name": "default"}}))).unwrap();
        for (block, hook) in [
            (serde_json::json!({"Templates": [{"EmbeddedTmpl": "x"}]}), "template"),
            (serde_json::json!({"Artifacts": [{"GetterSource": "x"}]}), "artifacts"),
            (serde_json::json!({"Vault": {}}), "vault"),
            (serde_json::json!({"Identity": {"Env": true}}), "identity"),
        ] {
            let error = unsupported(&task(block)).unwrap_err();
            assert_eq!(error.to_string(), format!("{hook}: not supported by this node"));
        }
    }

    #[test]
    fn a_payload_lands_in_the_local_directory_and_nowhere_else() {
        let base = tempfile::tempdir().unwrap();
        let alloc_dir = AllocDir::new(base.path(), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        let dir = alloc_dir.build_task("t").unwrap();
        let job = Job { payload: model::document::Bytes(b"\x02\x04hi".to_vec()), ..Job::default() };
        let write = |file: &str| {
            let task = task(serde_json::json!({"DispatchPayload": {"File": file}}));
            write_payload(Parts { job: &job, group: &TaskGroup::default(), task: &task }, &dir)
        };
        write("in/put.txt").unwrap();
        assert_eq!(std::fs::read(dir.local.join("in/put.txt")).unwrap(), b"hi");
        assert!(write("../x").is_err());
        assert!(write("/x").is_err());
    }
}
