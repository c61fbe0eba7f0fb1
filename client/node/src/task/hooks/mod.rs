//! The steps around each start and end of a task, in one ordered list.
//!
//! To add a hook, write a file with a type that implements [`TaskHook`], and add it to [`all`] at its place. Hooks run
//! one after the other, in the order of the list at every step.

mod api;
mod artifacts;
mod consul;
mod csi_plugin;
pub(crate) mod devices;
mod dispatch_payload;
pub(crate) mod environment;
pub(crate) mod identities;
mod log_shipping;
mod logs;
mod network;
mod secrets;
mod services;
mod shutdown_delay;
mod task_dir;
mod templates;
mod validate;
mod vault;
mod volumes;
pub(crate) mod workload_users;

pub(crate) use self::network::short as short_hostname;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use executor::Exit;
use model::document::Allocation;
use tokio::sync::{mpsc, watch};

use super::environment::Environment;
use super::lifecycle::Role;
use super::parts::TaskParts;
use super::requests::{Kill, TaskRequest};
use super::states::TaskStates;
use crate::context::Context;
use crate::driver::{Logs, TaskDevice, TaskMount};
use crate::hook::{HookError, HookFuture, HookState, StepMetrics, log_failure, ready};
use crate::layout::{AllocDir, TaskDir};

/// The hooks of every task, in their order.
fn all() -> Vec<Box<dyn TaskHook>> {
    vec![
        Box::new(validate::Validate),
        Box::new(workload_users::WorkloadUsers),
        Box::new(task_dir::TaskDirHook),
        Box::new(environment::EnvironmentHook),
        Box::new(identities::Identities::default()),
        Box::new(consul::ConsulToken::default()),
        Box::new(vault::VaultToken::default()),
        Box::new(secrets::Secrets),
        Box::new(logs::LogsHook),
        Box::new(log_shipping::LogShipping::default()),
        Box::new(dispatch_payload::DispatchPayload),
        Box::new(volumes::Volumes),
        Box::new(devices::Devices),
        Box::new(network::NetworkFiles),
        Box::new(artifacts::Artifacts),
        Box::new(api::TaskApiHook::default()),
        Box::new(csi_plugin::CsiPlugin::default()),
        Box::new(templates::Templates::default()),
        Box::new(services::TaskServices::default()),
        Box::new(shutdown_delay::ShutdownDelay),
    ]
}

/// One step or several around the starts and ends of a task. All steps do nothing unless implemented.
///
/// A hook may be run again at any step: the agent can die before it has stored that the hook was run.
pub trait TaskHook: Debug + Send + Sync {
    /// The key of its state on disk, and its name in messages.
    fn name(&self) -> &'static str;

    /// Before each start. What the start needs is put into `start`; `state.done` keeps it from being run again, and
    /// `state.env` is added to the environment of this and every later start.
    ///
    /// An error fails the start with `Task hook failed`, and the hooks that follow are not run.
    fn prestart<'a>(
        &'a mut self,
        _task: &'a TaskContext,
        _start: &'a mut StartRequest,
        _state: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// Instead of `prestart`, when the task of an earlier agent was found running.
    fn restored<'a>(&'a mut self, _task: &'a TaskContext, _state: &'a mut HookState) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The task runs.
    fn poststart<'a>(&'a mut self, _task: &'a TaskContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The running task is restarted and has not been sent a signal yet.
    fn prerestart<'a>(&'a mut self, _task: &'a TaskContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The running task was ordered to end and has not been sent a signal yet.
    fn prekill<'a>(&'a mut self, _task: &'a TaskContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The task has ended; it may be started again.
    fn exited<'a>(&'a mut self, _task: &'a TaskContext, _exit: &'a Exit) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The task will not be started again. Not called when the agent stops and the task goes on.
    fn stop<'a>(&'a mut self, _task: &'a TaskContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The running task has a newer version of its allocation.
    fn update<'a>(&'a mut self, _task: &'a TaskContext) -> HookFuture<'a> {
        ready(Ok(()))
    }
}

/// What a hook may know and use of its task.
#[derive(Clone, Debug)]
pub struct TaskContext {
    pub context: Arc<Context>,
    pub alloc_dir: AllocDir,
    pub tasks: Arc<TaskStates>,
    pub name: String,
    pub role: Role,
    /// The newest version of the allocation.
    pub alloc: watch::Receiver<Arc<Allocation>>,
    /// The order to end for good, once it is given.
    pub kill: watch::Receiver<Option<Kill>>,
    /// To ask the task's own loop for a restart or a signal.
    pub requests: mpsc::WeakSender<TaskRequest>,
}

impl TaskContext {
    /// The newest version of the allocation.
    pub fn alloc(&self) -> Arc<Allocation> {
        Arc::clone(&self.alloc.borrow())
    }

    /// Counts what happened to the task, for the metrics.
    pub fn count(&self, metric: &'static str) {
        let labels = crate::figures::of_task(&self.alloc.borrow(), &self.name);
        self.context.counters.happened_to(metric, labels, std::time::Instant::now());
    }
}

const PRESTART: StepMetrics = StepMetrics {
    success: "nomad.client.task_hook.prestart.success",
    failed: "nomad.client.task_hook.prestart.failed",
    elapsed: "nomad.client.task_hook.prestart.elapsed",
};

/// One start of a task, as far as the hooks have prepared it.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The version of the allocation that is started.
    pub alloc: Arc<Allocation>,
    pub dir: TaskDir,
    pub environment: Environment,
    /// None where the job wants no logs.
    pub logs: Option<Logs>,
    /// What is mounted for the task besides its directories.
    pub mounts: Vec<TaskMount>,
    pub devices: Vec<TaskDevice>,
    pub device_env: BTreeMap<String, String>,
    /// The network of the group, if it has one of its own, and the files by which names are found in it.
    pub network_namespace: Option<PathBuf>,
    pub hosts_file: Option<PathBuf>,
    pub resolv_conf: Option<PathBuf>,
}

impl StartRequest {
    pub fn new(task: &TaskContext) -> StartRequest {
        StartRequest {
            alloc: task.alloc(),
            dir: task.alloc_dir.task(&task.name),
            environment: Environment::default(),
            logs: None,
            mounts: Vec::new(),
            devices: Vec::new(),
            device_env: BTreeMap::new(),
            network_namespace: None,
            hosts_file: None,
            resolv_conf: None,
        }
    }
}

/// The part of the job that concerns the task.
///
/// # Errors
/// When the allocation no longer has the task.
fn parts<'a>(
    alloc: &'a Allocation,
    task: &TaskContext,
    hook: &'static str,
) -> Result<TaskParts<'a>, HookError> {
    TaskParts::find(alloc, &task.name)
        .ok_or_else(|| HookError::fatal(hook, "the job no longer has this task"))
}

/// The hooks of one task with their states.
#[derive(Debug)]
pub struct TaskHooks(Vec<(Box<dyn TaskHook>, HookState)>);

impl TaskHooks {
    /// All hooks, with the states that an earlier agent has stored.
    pub fn load(task: &TaskContext) -> TaskHooks {
        TaskHooks::of(all(), task)
    }

    fn of(hooks: Vec<Box<dyn TaskHook>>, task: &TaskContext) -> TaskHooks {
        let id = &task.alloc.borrow().id;
        let stored = |hook: &dyn TaskHook| task.context.store.load_hook(id, Some(&task.name), hook.name());
        TaskHooks(
            hooks.into_iter().map(|hook| (stored(&*hook), hook)).map(|(state, hook)| (hook, state)).collect(),
        )
    }

    /// Prepares a start.
    ///
    /// # Errors
    /// Those of the first hook that fails; the ones after it are not run.
    pub async fn prestart(&mut self, task: &TaskContext) -> Result<StartRequest, HookError> {
        let began = Instant::now();
        let result = self.prepare(task).await;
        PRESTART.count(&task.context.counters, began, result.is_ok());
        result
    }

    async fn prepare(&mut self, task: &TaskContext) -> Result<StartRequest, HookError> {
        let mut start = StartRequest::new(task);
        for (hook, state) in &mut self.0 {
            if !state.done {
                let before = state.clone();
                let result = hook.prestart(task, &mut start, state).await;
                store(task, &**hook, &before, state);
                result?;
            }
            start.environment.variables.extend(state.env.clone());
        }
        Ok(start)
    }

    pub async fn restored(&mut self, task: &TaskContext) {
        for (hook, state) in &mut self.0 {
            let before = state.clone();
            log_failure(&task.alloc().id, "restored", hook.restored(task, state).await);
            store(task, &**hook, &before, state);
        }
    }

    pub async fn poststart(&mut self, task: &TaskContext) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "poststart", hook.poststart(task).await);
        }
    }

    pub async fn prerestart(&mut self, task: &TaskContext) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "prerestart", hook.prerestart(task).await);
        }
    }

    pub async fn prekill(&mut self, task: &TaskContext) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "prekill", hook.prekill(task).await);
        }
    }

    pub async fn exited(&mut self, task: &TaskContext, exit: &Exit) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "exited", hook.exited(task, exit).await);
        }
    }

    pub async fn stop(&mut self, task: &TaskContext) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "stop", hook.stop(task).await);
        }
    }

    pub async fn update(&mut self, task: &TaskContext) {
        for (hook, _) in &mut self.0 {
            log_failure(&task.alloc().id, "update", hook.update(task).await);
        }
    }
}

fn store(task: &TaskContext, hook: &dyn TaskHook, before: &HookState, state: &HookState) {
    if before != state {
        task.context.store.put_hook(&task.alloc.borrow().id, Some(&task.name), hook.name(), state);
    }
}

#[cfg(test)]
mod tests;
