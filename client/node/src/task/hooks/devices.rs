//! The devices that the task was given: what it needs to use them is asked of their plugin before each start.

use std::collections::BTreeMap;

use model::document::{AllocatedDeviceResource, Allocation};
use plugin::proto::device::Reservation;

use super::volumes::can_mount;
use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::{TaskDevice, TaskMount};
use crate::hook::{HookError, HookFuture, HookState};

/// What a device file may be used for if its plugin does not say: read, write, make.
const PERMISSIONS: &str = "rwm";

#[derive(Debug)]
pub struct Devices;

impl Devices {
    async fn prepare(&self, task: &TaskContext, start: &mut StartRequest) -> Result<(), HookError> {
        let alloc = start.alloc.clone();
        let driver = parts(&alloc, task, self.name())?.task.driver.clone();
        // Others see the host's files as they are, device files among them.
        let takes_files = can_mount(task, &driver);
        for wanted in of_task(&alloc, &task.name) {
            let reserved = task.context.plugins.devices.reserve(wanted).await;
            // A plugin may be back a moment later; the restart policy says how often that is tried.
            let reserved = reserved.map_err(|error| HookError::recoverable(self.name(), error))?;
            take(start, reserved, takes_files);
        }
        let variables: BTreeMap<String, String> = start.device_env.clone();
        start.environment.variables.extend(variables);
        Ok(())
    }
}

impl TaskHook for Devices {
    fn name(&self) -> &'static str {
        "devices"
    }

    /// Never done: each start asks anew.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(self.prepare(task, start))
    }
}

/// The devices that an allocation's task was given.
pub fn of_task<'a>(alloc: &'a Allocation, task: &str) -> &'a [AllocatedDeviceResource] {
    let granted = alloc.allocated_resources.as_ref().and_then(|granted| granted.tasks.get(task));
    granted.map(|granted| granted.devices.0.as_slice()).unwrap_or_default()
}

fn take(start: &mut StartRequest, reserved: Reservation, takes_files: bool) {
    start.device_env.extend(reserved.envs);
    if !takes_files {
        return;
    }
    start.mounts.extend(reserved.mounts.into_iter().map(|mount| TaskMount {
        host_path: mount.host_path.into(),
        task_path: mount.task_path,
        read_only: mount.read_only,
        propagation: "rprivate",
        selinux_label: String::new(),
    }));
    start.devices.extend(reserved.devices.into_iter().map(|device| TaskDevice {
        host_path: device.host_path.into(),
        task_path: device.task_path,
        permissions: if device.permissions.is_empty() { PERMISSIONS.to_string() } else { device.permissions },
    }));
}
