//! The volumes of the group that the task mounts, for drivers whose tasks have files of their own.

use model::document::{TaskGroup, VolumeMount, VolumeRequest};

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::{FsIsolation, TaskMount};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::settings::HostVolume;

#[derive(Debug)]
pub struct Volumes;

impl TaskHook for Volumes {
    fn name(&self) -> &'static str {
        "volumes"
    }

    /// Never done: each start has the newest version of the job.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(mount(self.name(), task, start))
    }
}

/// True for drivers that can mount something for their tasks.
pub fn can_mount(task: &TaskContext, driver: &str) -> bool {
    let can = task.context.drivers.capabilities(driver);
    can.is_some_and(|can| can.fs_isolation != FsIsolation::None)
}

fn mount(hook: &'static str, task: &TaskContext, start: &mut StartRequest) -> Result<(), HookError> {
    let alloc = start.alloc.clone();
    let parts = parts(&alloc, task, hook)?;
    let volumes = &task.context.settings.host_volumes;
    let index = start.environment.variables.get("NOMAD_ALLOC_INDEX").cloned().unwrap_or_default();
    let mounts = parts.task.volume_mounts.iter().map(|mount| {
        let found = resolve(parts.group, mount, &index, &|name| volumes.get(name))?;
        Ok(TaskMount { task_path: start.environment.replace(&found.task_path), ..found })
    });
    start.mounts = mounts.collect::<Result<_, String>>().map_err(|text| HookError::fatal(hook, text))?;
    Ok(())
}

/// # Errors
/// Names what is not there or not possible.
fn resolve<'v>(
    group: &TaskGroup,
    mount: &VolumeMount,
    index: &str,
    host: &impl Fn(&str) -> Option<&'v HostVolume>,
) -> Result<TaskMount, String> {
    let name = mount.volume.clone().unwrap_or_default();
    let request: &VolumeRequest =
        group.volumes.get(&name).ok_or_else(|| format!("the group has no volume \"{name}\""))?;
    if request.kind != "host" {
        return Err(format!(
            "volume \"{name}\" is of type \"{}\": this node mounts those of type \"host\"",
            request.kind
        ));
    }
    if request.sticky {
        return Err(format!("volume \"{name}\" is sticky: this node has no such volumes"));
    }
    let source = match request.per_alloc {
        true => format!("{}[{index}]", request.source),
        false => request.source.clone(),
    };
    let found = host(&source).ok_or_else(|| format!("this node has no host volume \"{source}\""))?;
    let destination = mount.destination.clone().filter(|path| !path.is_empty());
    let propagation = match mount.propagation_mode.as_deref().unwrap_or_default() {
        "" | "private" => "rprivate",
        "host-to-task" => "rslave",
        "bidirectional" => "rshared",
        other => return Err(format!("volume \"{name}\": propagation_mode \"{other}\" is not known")),
    };
    Ok(TaskMount {
        host_path: found.path.clone(),
        task_path: destination.ok_or_else(|| format!("volume_mount \"{name}\" needs a destination"))?,
        read_only: found.read_only || request.read_only || mount.read_only == Some(true),
        propagation,
        selinux_label: mount.se_linux_label.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resolved(volume: Value, mount: Value) -> Result<TaskMount, String> {
        let group = serde_json::from_value(json!({"Volumes": {"data": volume}})).unwrap();
        let known = [("disk", false), ("disk[3]", false), ("cd", true)]
            .map(|(name, read_only)| (name, HostVolume { path: format!("/srv/{name}").into(), read_only }));
        let mount = serde_json::from_value(mount).unwrap();
        let find = |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, volume)| volume);
        resolve(&group, &mount, "3", &find)
    }

    #[test]
    fn a_volume_of_the_host_is_found_by_the_source_of_its_request() {
        let mount = json!({"Volume": "data", "Destination": "/d", "PropagationMode": "host-to-task"});
        let found = resolved(json!({"Type": "host", "Source": "disk"}), mount.clone()).unwrap();
        assert_eq!((found.host_path.to_str(), found.task_path.as_str()), (Some("/srv/disk"), "/d"));
        assert_eq!((found.read_only, found.propagation), (false, "rslave"));
        let found =
            resolved(json!({"Type": "host", "Source": "disk", "PerAlloc": true}), mount.clone()).unwrap();
        assert_eq!(found.host_path.to_str(), Some("/srv/disk[3]"));
        assert!(resolved(json!({"Type": "host", "Source": "cd"}), mount).unwrap().read_only);
    }

    #[test]
    fn what_cannot_be_mounted_is_named() {
        let host = json!({"Type": "host", "Source": "disk"});
        for (volume, mount, text) in [
            (host.clone(), json!({"Volume": "x"}), "the group has no volume \"x\""),
            (json!({"Type": "csi"}), json!({"Volume": "data"}), "volume \"data\" is of type \"csi\""),
            (
                json!({"Type": "host", "Source": "no"}),
                json!({"Volume": "data"}),
                "this node has no host volume \"no\"",
            ),
            (host.clone(), json!({"Volume": "data"}), "volume_mount \"data\" needs a destination"),
            (
                host,
                json!({"Volume": "data", "PropagationMode": "x"}),
                "volume \"data\": propagation_mode \"x\"",
            ),
        ] {
            let error = resolved(volume, mount).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
