//! The steps around the life of an allocation, in one ordered list.
//!
//! To add a hook, write a file with a type that implements [`AllocHook`], and add it to [`all`] at its place. Hooks run
//! one after the other, in the order of the list at every step.

mod alloc_dir;
pub mod await_previous;
mod csi;
mod fetch;
mod group_services;
mod health;
mod max_run_duration;
pub mod migrate_disk;
mod network;
mod shutdown_delay;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base::Time;
use model::document::{AllocDeploymentStatus, Allocation, TaskGroup, Timestamp};
use tokio::sync::{mpsc, watch};

use super::handle::{AllocCommand, AllocStatus, CurrentHook};
use super::status;
use crate::context::Context;
use crate::hook::{HookError, HookFuture, HookState, StepMetrics, log_failure, ready};
use crate::layout::AllocDir;
use crate::task::events::KillReason;
use crate::task::lifecycle::Roles;
use crate::task::requests::Kill;
use crate::task::states::TaskStates;

const PRERUN: StepMetrics = StepMetrics {
    success: "nomad.client.alloc_hook.prerun.success",
    failed: "nomad.client.alloc_hook.prerun.failed",
    elapsed: "nomad.client.alloc_hook.prerun.elapsed",
};

/// The hooks of every allocation, in their order.
fn all() -> Vec<Box<dyn AllocHook>> {
    vec![
        Box::new(alloc_dir::AllocDirHook),
        Box::new(max_run_duration::MaxRunDuration),
        Box::new(await_previous::AwaitPrevious),
        Box::new(migrate_disk::MigrateDisk),
        Box::new(health::HealthHook::default()),
        Box::new(network::Network),
        Box::new(group_services::GroupServices::default()),
        Box::new(csi::Csi::default()),
        Box::new(shutdown_delay::ShutdownDelay),
    ]
}

/// One step or several in the life of an allocation. All steps do nothing unless implemented.
///
/// A hook may be run again at any step: the agent can die before it has stored that the hook was run. Hooks are shared,
/// because [`AllocHook::check`] is called while another step waits; what a hook holds in memory is in a mutex.
pub trait AllocHook: Debug + Send + Sync {
    /// The key of its state on disk, and its name in messages.
    fn name(&self) -> &'static str;

    /// Before the first task starts, and again after a restart of the agent unless `state.done` is set. It is
    /// dropped where it waits when the allocation is removed.
    ///
    /// An error fails all tasks with `Setup Failure`, and the hooks that follow are not run.
    fn prerun<'a>(&'a self, _alloc: &'a AllocContext, _state: &'a mut HookState) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// There is a newer version of the allocation, after its `prerun`.
    fn update<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// Called after every change of a task and whenever a time that it has returned has come. It must not wait.
    fn check(&self, _alloc: &AllocContext, _now: Time) -> Check {
        Check::default()
    }

    /// Several tasks are restarted, and none has been sent a signal yet.
    fn prerestart<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// They run again, or will not.
    fn postrestart<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// All tasks must end, and none has been sent a signal yet.
    fn prekill<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// All tasks have ended for good. Not called when the agent stops and the tasks go on.
    fn postrun<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }

    /// The allocation is removed from this node.
    fn destroy<'a>(&'a self, _alloc: &'a AllocContext) -> HookFuture<'a> {
        ready(Ok(()))
    }
}

/// The result of [`AllocHook::check`].
#[derive(Debug, Default)]
pub struct Check {
    /// Call again at this time, even if nothing changes.
    pub again_at: Option<Time>,
    pub stop: Option<StopOrder>,
}

/// A hook's order to end the allocation.
#[derive(Debug)]
pub struct StopOrder {
    pub reason: KillReason,
    /// The client status and its description once all tasks are dead, instead of what their states say.
    pub status: (&'static str, &'static str),
}

/// What must end before an allocation starts.
#[derive(Debug, Default)]
pub struct Predecessors {
    pub previous: Previous,
    /// Those on this node that had to make room.
    pub preempted: Vec<watch::Receiver<AllocStatus>>,
}

/// The allocation that this one replaces.
#[derive(Debug, Default)]
pub enum Previous {
    /// There is none, or nothing is left of it.
    #[default]
    None,
    Here {
        status: watch::Receiver<AllocStatus>,
        dir: AllocDir,
    },
    /// Not on this node; its id.
    Elsewhere(String),
}

/// What a hook may know and use of its allocation.
#[derive(Debug)]
pub struct AllocContext {
    pub context: Arc<Context>,
    pub id: String,
    pub dir: AllocDir,
    pub tasks: Arc<TaskStates>,
    pub roles: Roles,
    /// The newest version of the allocation.
    pub versions: watch::Receiver<Arc<Allocation>>,
    /// The order to end all tasks, once it is given.
    pub stopping: watch::Receiver<Option<Kill>>,
    /// To ask the allocation's own loop for a restart.
    pub commands: mpsc::WeakSender<AllocCommand>,
    pub predecessors: Predecessors,
    pub current_hook: Arc<CurrentHook>,
    /// What is known of its health; changed with [`AllocContext::set_health`].
    pub deployment_status: Mutex<Option<AllocDeploymentStatus>>,
}

impl AllocContext {
    /// The newest version of the allocation.
    pub fn alloc(&self) -> Arc<Allocation> {
        Arc::clone(&self.versions.borrow())
    }

    fn lock(&self) -> MutexGuard<'_, Option<AllocDeploymentStatus>> {
        self.deployment_status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn deployment_status(&self) -> Option<AllocDeploymentStatus> {
        self.lock().clone()
    }

    /// For an allocation that now belongs to another deployment.
    pub fn set_deployment_status(&self, status: Option<AllocDeploymentStatus>) {
        *self.lock() = status;
    }

    /// True once the allocation was found healthy or unhealthy for its deployment or migration.
    pub fn is_health_known(&self) -> bool {
        self.lock().as_ref().is_some_and(|status| status.healthy.is_some())
    }

    /// Stores whether the allocation is healthy; the servers get it with the next update.
    pub fn set_health(&self, healthy: bool, now: Time) {
        let mut status = self.lock();
        let mut changed = status.clone().unwrap_or_default();
        changed.healthy = Some(healthy);
        changed.timestamp = Timestamp::from(now);
        self.context.store.put_deployment(&self.id, &changed);
        *status = Some(changed);
    }
}

/// The group of the allocation's job that it was placed for.
pub fn group_of(alloc: &Allocation) -> Option<&TaskGroup> {
    alloc.job.as_ref()?.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))
}

/// The hooks of one allocation.
#[derive(Debug)]
pub struct AllocHooks {
    list: Vec<Box<dyn AllocHook>>,
    /// Held through an update: they run one after the other.
    updating: tokio::sync::Mutex<()>,
}

impl AllocHooks {
    /// The hooks of every allocation.
    pub fn listed() -> AllocHooks {
        AllocHooks::of(all())
    }

    fn of(list: Vec<Box<dyn AllocHook>>) -> AllocHooks {
        AllocHooks { list, updating: tokio::sync::Mutex::default() }
    }

    /// Runs what is not done yet. An allocation that is stopped is not set up any further.
    ///
    /// # Errors
    /// Those of the first hook that fails; the ones after it are not run.
    pub async fn prerun(&self, alloc: &AllocContext) -> Result<(), HookError> {
        let began = Instant::now();
        let result = self.set_up(alloc).await;
        alloc.current_hook.set("");
        PRERUN.count(&alloc.context.counters, began, result.is_ok());
        result
    }

    async fn set_up(&self, alloc: &AllocContext) -> Result<(), HookError> {
        let store = &alloc.context.store;
        for hook in &self.list {
            if status::is_stopped(&alloc.alloc().desired_status) {
                return Ok(());
            }
            let mut state = store.load_hook(&alloc.id, None, hook.name());
            if state.done {
                continue;
            }
            let before = state.clone();
            alloc.current_hook.set(hook.name());
            let result = hook.prerun(alloc, &mut state).await;
            if state != before {
                store.put_hook(&alloc.id, None, hook.name(), &state);
            }
            result?;
        }
        Ok(())
    }

    pub async fn update(&self, alloc: &AllocContext) {
        let _one_at_a_time = self.updating.lock().await;
        for hook in &self.list {
            log_failure(&alloc.id, "update", hook.update(alloc).await);
        }
    }

    /// The orders of all hooks, and the first time at which one must be called again.
    pub fn check(&self, alloc: &AllocContext, now: Time) -> (Vec<StopOrder>, Option<Time>) {
        let checks: Vec<Check> = self.list.iter().map(|hook| hook.check(alloc, now)).collect();
        let again_at = checks.iter().filter_map(|check| check.again_at).min();
        (checks.into_iter().filter_map(|check| check.stop).collect(), again_at)
    }

    pub async fn prerestart(&self, alloc: &AllocContext) {
        for hook in &self.list {
            log_failure(&alloc.id, "prerestart", hook.prerestart(alloc).await);
        }
    }

    pub async fn postrestart(&self, alloc: &AllocContext) {
        for hook in &self.list {
            log_failure(&alloc.id, "postrestart", hook.postrestart(alloc).await);
        }
    }

    pub async fn prekill(&self, alloc: &AllocContext) {
        for hook in &self.list {
            log_failure(&alloc.id, "prekill", hook.prekill(alloc).await);
        }
    }

    pub async fn postrun(&self, alloc: &AllocContext) {
        for hook in &self.list {
            log_failure(&alloc.id, "postrun", hook.postrun(alloc).await);
        }
    }

    pub async fn destroy(&self, alloc: &AllocContext) {
        for hook in &self.list {
            log_failure(&alloc.id, "destroy", hook.destroy(alloc).await);
        }
    }
}

#[cfg(test)]
mod tests;
