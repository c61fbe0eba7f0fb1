//! The volumes of the group that the task mounts, for drivers whose tasks have files of their own.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use model::document::{TaskGroup, VolumeMount, VolumeRequest};

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::csi::paths::Usage;
use crate::driver::{TaskDevice, TaskMount};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::settings::HostVolume;

const BLOCK_DEVICE: &str = "block-device";
const PRIVATE: &str = "rprivate";

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
    can.is_some_and(|can| can.mounts)
}

fn mount(hook: &'static str, task: &TaskContext, start: &mut StartRequest) -> Result<(), HookError> {
    let alloc = start.alloc.clone();
    let parts = parts(&alloc, task, hook)?;
    let context = &task.context;
    let host = |name: &str, sticky: bool| {
        let configured = context.settings.host_volumes.get(name).filter(|_| !sticky).cloned();
        configured.or_else(|| context.host_volumes.named(name))
    };
    let published = |name: &str| context.csi.published(&alloc.id, name);
    let index = start.environment.variables.get("NOMAD_ALLOC_INDEX").cloned().unwrap_or_default();
    let state_dir = &context.settings.state_dir;
    let driver = context.drivers.capabilities(&parts.task.driver);
    let keeps = driver.is_some_and(|can| can.device_permissions);
    let (mut mounts, mut devices) = (Vec::new(), Vec::new());
    let failed = |text: String| HookError::fatal(hook, text);
    for mount in &parts.task.volume_mounts {
        let found = match of_plugin(parts.group, mount) {
            Some(name) => csi(name, mount, published(name), state_dir).map_err(failed)?,
            None => Given::Files(resolve(parts.group, mount, &index, &host).map_err(failed)?),
        };
        match found {
            Given::Files(found) => {
                mounts.push(TaskMount { task_path: start.environment.replace(&found.task_path), ..found });
            }
            Given::Device(found) if !keeps && !found.permissions.contains('w') => {
                return Err(failed(no_permissions(&parts.task.driver, &found)));
            }
            Given::Device(found) => {
                devices.push(TaskDevice { task_path: start.environment.replace(&found.task_path), ..found });
            }
        }
    }
    (start.mounts, start.devices) = (mounts, devices);
    Ok(())
}

/// What a task has of a volume.
#[derive(Debug)]
enum Given {
    Files(TaskMount),
    /// The volume itself, of which the task makes what it likes.
    Device(TaskDevice),
}

fn no_permissions(driver: &str, device: &TaskDevice) -> String {
    format!(
        "volume_mount \"{}\": driver \"{driver}\" cannot keep a task from writing to a block device: leave read_only out, \
         or use docker or podman",
        device.task_path
    )
}

/// The name of the volume, if it is one of a storage plugin.
fn of_plugin<'g>(group: &'g TaskGroup, mount: &VolumeMount) -> Option<&'g str> {
    let (name, request) = group.volumes.get_key_value(mount.volume.as_deref()?)?;
    (request.kind == "csi").then_some(name)
}

/// What the hook of the allocation has published.
fn csi(name: &str, mount: &VolumeMount, published: Option<Usage>, state_dir: &Path) -> Result<Given, String> {
    let usage = published.ok_or_else(|| format!("volume \"{name}\" is not published on this node"))?;
    let read_only = usage.read_only || mount.read_only == Some(true);
    let target = usage.target(state_dir);
    let given = mounted(name, mount, target.clone(), read_only)?;
    if usage.attachment_mode != BLOCK_DEVICE {
        return Ok(Given::Files(given));
    }
    if given.propagation != PRIVATE || !given.selinux_label.is_empty() {
        return Err(format!(
            "volume \"{name}\" is a block device: expected no selinux_label, and no propagation_mode but \"private\""
        ));
    }
    device(&target, given)
        .map(Given::Device)
        .map_err(|error| format!("plugin {}: volume \"{name}\" is published, but {error}", usage.plugin_id))
}

/// The device that a plugin has published at a path: the file itself, or what a link leads to.
fn device(target: &Path, given: TaskMount) -> Result<TaskDevice, String> {
    let found = target.canonicalize().and_then(|path| Ok((path.metadata()?.file_type(), path)));
    let (kind, host_path) = found.map_err(|error| format!("{}: {error}", target.display()))?;
    if !kind.is_block_device() {
        return Err(format!("{} is no block device", target.display()));
    }
    let permissions = if given.read_only { "r" } else { "rw" };
    Ok(TaskDevice { host_path, task_path: given.task_path, permissions: permissions.to_string() })
}

/// `host` finds a volume by its name; a sticky one has to be one that was made here.
///
/// # Errors
/// Names what is not there or not possible.
fn resolve(
    group: &TaskGroup,
    mount: &VolumeMount,
    index: &str,
    host: &impl Fn(&str, bool) -> Option<HostVolume>,
) -> Result<TaskMount, String> {
    let name = mount.volume.clone().unwrap_or_default();
    let request: &VolumeRequest =
        group.volumes.get(&name).ok_or_else(|| format!("the group has no volume \"{name}\""))?;
    if request.kind != "host" {
        return Err(format!(
            "volume \"{name}\" is of type \"{}\": expected \"host\" or \"csi\"",
            request.kind
        ));
    }
    let source = match request.per_alloc {
        true => format!("{}[{index}]", request.source),
        false => request.source.clone(),
    };
    let found =
        host(&source, request.sticky).ok_or_else(|| format!("this node has no host volume \"{source}\""))?;
    let read_only = found.read_only || request.read_only || mount.read_only == Some(true);
    mounted(&name, mount, found.path, read_only)
}

fn mounted(
    name: &str,
    mount: &VolumeMount,
    host_path: PathBuf,
    read_only: bool,
) -> Result<TaskMount, String> {
    let destination = mount.destination.clone().filter(|path| !path.is_empty());
    let propagation = match mount.propagation_mode.as_deref().unwrap_or_default() {
        "" | "private" => PRIVATE,
        "host-to-task" => "rslave",
        "bidirectional" => "rshared",
        other => return Err(format!("volume \"{name}\": propagation_mode \"{other}\" is not known")),
    };
    Ok(TaskMount {
        host_path,
        task_path: destination.ok_or_else(|| format!("volume_mount \"{name}\" needs a destination"))?,
        read_only,
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
        let find =
            |name: &str, _| known.iter().find(|(known, _)| *known == name).map(|(_, found)| found.clone());
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

    /// A volume that is published as this file is used so.
    fn block(published: &Path, mount: Value) -> Result<Given, String> {
        let state_dir = tempfile::tempdir().unwrap();
        let usage: Usage = serde_json::from_value(json!({
            "plugin_id": "ebs", "namespace": "default", "volume_id": "data", "external_id": "vol-1", "alloc_id": "a",
            "read_only": false, "access_mode": "single-node-writer", "attachment_mode": "block-device",
        }))
        .unwrap();
        let target = usage.target(state_dir.path());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(published, &target).unwrap();
        csi("v", &serde_json::from_value(mount).unwrap(), Some(usage), state_dir.path())
    }

    #[test]
    fn a_volume_that_is_used_as_a_device_has_to_be_one() {
        let mount = json!({"Volume": "v", "Destination": "/dev/xvdb"});
        let error = block(Path::new("/dev/null"), mount.clone()).unwrap_err();
        assert!(error.starts_with("plugin ebs: volume \"v\" is published, but "), "{error}");
        assert!(error.ends_with(" is no block device"), "{error}");
        let error = block(Path::new("/does/not/exist"), mount).unwrap_err();
        assert!(error.contains("No such file or directory"), "{error}");
        for more in [json!({"PropagationMode": "bidirectional"}), json!({"SELinuxLabel": "z"})] {
            let mut mount = json!({"Volume": "v", "Destination": "/dev/xvdb"});
            mount.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let error = block(Path::new("/dev/null"), mount).unwrap_err();
            assert!(
                error.starts_with("volume \"v\" is a block device: expected no selinux_label"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_cannot_be_mounted_is_named() {
        let host = json!({"Type": "host", "Source": "disk"});
        for (volume, mount, text) in [
            (host.clone(), json!({"Volume": "x"}), "the group has no volume \"x\""),
            (json!({"Type": "nfs"}), json!({"Volume": "data"}), "volume \"data\" is of type \"nfs\""),
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
