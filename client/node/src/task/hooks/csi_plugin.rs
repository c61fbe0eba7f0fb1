//! A task that is a storage plugin: it gets a directory for its socket and one for its mounts, and somebody who looks after it.

use model::document::TaskCSIPluginConfig;
use tokio_util::task::AbortOnDropHandle;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::csi::{Supervised, paths, watch};
use crate::driver::{FsIsolation, TaskMount};
use crate::hook::{HookError, HookFuture, HookState, ready};
use executor::Exit;

const NAME: &str = "csi_plugin_supervisor";

/// Where the plugin answers, as the interface calls the variable.
const ENDPOINT: &str = "CSI_ENDPOINT";

#[derive(Debug, Default)]
pub struct CsiPlugin {
    of: Option<(Supervised, TaskCSIPluginConfig)>,
    watching: Option<AbortOnDropHandle<()>>,
}

impl TaskHook for CsiPlugin {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: a newer version of the job may mount elsewhere.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(self.prepare(task, start, state).map_err(|error| HookError::fatal(NAME, error)))
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, _: &'a mut HookState) -> HookFuture<'a> {
        let found = self.find(task).map_err(|error| HookError::fatal(NAME, error));
        if found.is_ok() {
            self.begin(task);
        }
        ready(found)
    }

    fn poststart<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.begin(task);
        ready(Ok(()))
    }

    fn exited<'a>(&'a mut self, task: &'a TaskContext, _: &'a Exit) -> HookFuture<'a> {
        self.end(task);
        ready(Ok(()))
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.end(task);
        if let Some((of, _)) = &self.of
            && let Some(directory) = of.socket.parent()
        {
            std::fs::remove_file(&of.socket).ok();
            std::fs::remove_dir(directory).ok();
            directory.parent().map(std::fs::remove_dir);
        }
        ready(Ok(()))
    }
}

impl CsiPlugin {
    /// Which plugin the task is, if it is one.
    fn find(&mut self, task: &TaskContext) -> Result<(), String> {
        let alloc = task.alloc();
        let parts = parts(&alloc, task, NAME).map_err(|error| error.message)?;
        let Some(config) = parts.task.csi_plugin_config.clone() else { return Ok(()) };
        let isolation = isolation(task, &parts.task.driver);
        let base = config.stage_publish_base_dir.clone();
        let inside = match isolation {
            FsIsolation::None => None,
            _ if base.is_empty() => Some("/local/csi".to_string()),
            _ => Some(base),
        };
        let of = Supervised::new(&config, task, inside)?;
        if isolation == FsIsolation::Chroot && of.is_for_nodes() {
            return Err(format!(
                "csi_plugin type \"{}\": driver \"{}\" keeps mounts of its tasks from the host; use docker, podman or raw_exec",
                config.kind, parts.task.driver
            ));
        }
        self.of = Some((of, config));
        Ok(())
    }

    fn prepare(
        &mut self,
        task: &TaskContext,
        start: &mut StartRequest,
        state: &mut HookState,
    ) -> Result<(), String> {
        self.find(task)?;
        let Some((of, config)) = &self.of else { return Ok(()) };
        let alloc = task.alloc();
        let driver = parts(&alloc, task, NAME).map_err(|error| error.message)?.task.driver.clone();
        let directory = of.socket.parent().ok_or("a socket without a directory")?;
        let io = |error: std::io::Error| format!("{}: {error}", task.context.settings.state_dir.display());
        std::fs::create_dir_all(directory).map_err(io)?;
        // Of an earlier start: nobody answers there.
        std::fs::remove_file(&of.socket).ok();
        for folder in ["staging", "per-alloc"] {
            std::fs::create_dir_all(of.mounts.join(folder)).map_err(io)?;
        }
        let mut endpoint = of.socket.to_string_lossy().into_owned();
        let isolation = isolation(task, &driver);
        if isolation != FsIsolation::None {
            let mount_dir = if config.mount_dir.is_empty() { "/csi" } else { &config.mount_dir };
            endpoint = format!("{}/{}", mount_dir.trim_end_matches('/'), paths::SOCKET);
            start.mounts.push(mount(directory, mount_dir, "rprivate"));
            if of.is_for_nodes() {
                start.mounts.push(mount(&of.mounts, &of.mounts_inside, "rshared"));
                // Disks come and go while the plugin runs.
                start.mounts.push(mount(std::path::Path::new("/dev"), "/dev", "rprivate"));
            }
        }
        state.env = [(ENDPOINT.to_string(), format!("unix://{endpoint}"))].into();
        Ok(())
    }

    fn begin(&mut self, task: &TaskContext) {
        if let Some((of, config)) = self.of.clone() {
            let watching = tokio::spawn(watch(task.clone(), of, config));
            self.watching = Some(AbortOnDropHandle::new(watching));
        }
    }

    fn end(&mut self, task: &TaskContext) {
        if self.watching.take().is_some()
            && let Some((of, _)) = &self.of
        {
            task.context.csi.gone(&task.context, of);
        }
    }
}

fn isolation(task: &TaskContext, driver: &str) -> FsIsolation {
    task.context.drivers.capabilities(driver).map_or(FsIsolation::None, |can| can.fs_isolation)
}

fn mount(host: &std::path::Path, task_path: &str, propagation: &'static str) -> TaskMount {
    TaskMount {
        host_path: host.to_owned(),
        task_path: task_path.to_string(),
        read_only: false,
        propagation,
        selinux_label: String::new(),
    }
}
