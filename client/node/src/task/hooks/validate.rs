//! Rejects what this agent does not support. Running the task without it would be worse than not running it.

use model::document::Task;

use super::volumes::can_mount;
use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};

#[derive(Debug)]
pub struct Validate;

impl TaskHook for Validate {
    fn name(&self) -> &'static str {
        "validate"
    }

    /// Never done: a newer version of the job may ask for more.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(
            parts(&start.alloc, task, self.name())
                .and_then(|parts| check(parts.task, can_mount(task, &parts.task.driver))),
        )
    }
}

/// Names the first block that is not supported, as the hook that Nomad has for it.
fn check(task: &Task, can_mount: bool) -> Result<(), HookError> {
    let blocks = [("pause", task.schedule.is_some()), ("consul_connect", !task.kind.is_empty())];
    if !can_mount && !task.volume_mounts.is_empty() {
        let text = format!(
            "driver \"{}\" cannot mount volumes: its tasks see the host's file system as it is; leave volume_mount out, \
             and use the path that \"node status -verbose\" shows for the volume",
            task.driver
        );
        return Err(HookError::fatal("volumes", text));
    }
    match blocks.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((hook, _)) => Err(HookError::fatal(hook, "not supported by this node")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn task(value: Value) -> Task {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn blocks_that_are_not_supported_are_rejected_by_name() {
        check(&task(json!({"Identity": {"Name": "default", "Env": true}})), false).unwrap();
        check(&task(json!({"Artifacts": [{"GetterSource": "x"}]})), false).unwrap();
        check(&task(json!({"Vault": {}})), true).unwrap();
        let error = check(&task(json!({"Kind": "connect-proxy:web"})), true).unwrap_err();
        assert_eq!(error.to_string(), "consul_connect: not supported by this node");
        let mounts = json!({"Driver": "raw_exec", "VolumeMounts": [{"Volume": "data"}]});
        check(&task(mounts.clone()), true).unwrap();
        let mount = check(&task(mounts), false);
        let text = mount.unwrap_err().to_string();
        assert!(text.starts_with("volumes: driver \"raw_exec\" cannot mount volumes: "), "{text}");
    }
}
