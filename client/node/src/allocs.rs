//! All allocations of this node: started, updated, stopped, and garbage collected.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Duration;
use futures_util::future::join_all;
use model::document::{AllocDeploymentStatus, Allocation, TaskState, Timestamp};
use tokio::sync::Semaphore;
use wire::RemoteError;

use crate::alloc::handle::{AllocCommand, AllocHandle};
use crate::alloc::hooks::{Predecessors, Previous};
use crate::alloc::runner::AllocRunner;
use crate::alloc::status;
use crate::clock;
use crate::context::Context;
use crate::driver::{DriverEvent, Known};
use crate::layout;
use crate::stats::used_percent;
use crate::store::{StoreError, StoredAlloc};
use crate::task::events;
use crate::task::hooks::workload_users;

/// The allocations by id.
#[derive(Debug)]
pub struct Allocs {
    context: Arc<Context>,
    known: Mutex<AllocTable>,
    /// Bounds how many that have ended are removed at the same time.
    removals: Semaphore,
}

#[derive(Debug, Default)]
struct AllocTable {
    running: BTreeMap<String, AllocHandle>,
    /// Those with nothing to run here: they ended before, were garbage collected, or could not be started. They stay
    /// until the servers no longer assign them, with the index at which they were last changed.
    inactive: BTreeMap<String, u64>,
}

impl AllocTable {
    /// Nothing runs under this id any more, and nothing will.
    fn deactivate(&mut self, id: &str) -> Option<AllocHandle> {
        let handle = self.running.remove(id)?;
        let index = handle.alloc.borrow().alloc_modify_index;
        self.inactive.insert(id.to_string(), index);
        Some(handle)
    }
}

impl Allocs {
    pub fn new(context: Arc<Context>) -> Allocs {
        let removals = Semaphore::new(context.settings.gc.parallel_destroys.max(1));
        Allocs { context, known: Mutex::default(), removals }
    }

    fn lock(&self) -> MutexGuard<'_, AllocTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Option<AllocHandle> {
        self.lock().running.get(id).cloned()
    }

    /// It was here, and nothing is left of it.
    pub fn is_inactive(&self, id: &str) -> bool {
        self.lock().inactive.contains_key(id)
    }

    pub fn all(&self) -> Vec<(String, AllocHandle)> {
        self.lock().running.iter().map(|(id, handle)| (id.clone(), handle.clone())).collect()
    }

    /// Goes on with the tasks of an earlier agent, and ends those that it has not stored.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub async fn restore(&self) -> Result<(), StoreError> {
        let stored = self.context.store.load()?;
        let tasks = stored.iter().flat_map(|alloc| alloc.tasks.values());
        let ran = stored.iter().filter(|alloc| !alloc.tasks.is_empty());
        let known = Known {
            handles: tasks.filter_map(|task| task.handle.clone()).collect(),
            allocs: ran.map(|alloc| alloc.alloc.id.clone()).collect(),
        };
        self.context.drivers.end_unknown(&known).await;
        let assigned = stored.iter().map(|alloc| alloc.alloc.id.clone()).collect();
        if let Err(error) = layout::unmount_unknown(&self.context.settings.alloc_dir, &assigned) {
            tracing::warn!(%error, "directories in memory are left");
        }
        // After their tasks. Those of which nothing ran yet get a new one when the servers send them again.
        let left = self.context.networks.collect(known.allocs).await;
        for (alloc_id, driver) in left {
            let removed = match self.context.drivers.destroy_network(&driver, &alloc_id).await {
                Ok(()) => self.context.networks.forget(&alloc_id).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = removed {
                tracing::warn!(alloc = alloc_id, driver, error, "a network is left");
            }
        }
        // Before any task takes one.
        for alloc in &stored {
            self.restore_users(alloc);
        }
        for alloc in stored {
            if let Some(acknowledged) = alloc.acknowledged.clone() {
                self.context.updates.restore(acknowledged);
            }
            // Nothing of it ever ran; if it still should, the servers will send it again.
            if alloc.tasks.is_empty() {
                self.context.store.forget(&alloc.alloc.id);
                continue;
            }
            self.add(alloc);
        }
        Ok(())
    }

    /// The users that tasks of an earlier agent have for themselves, as long as they are not dead.
    fn restore_users(&self, stored: &StoredAlloc) {
        let id = &stored.alloc.id;
        for (task, _) in stored.tasks.iter().filter(|(_, task)| task.state.state != events::DEAD) {
            let hook = self.context.store.load_hook(id, Some(task), workload_users::NAME);
            if let Some(uid) = hook.values.get(workload_users::UID).and_then(|uid| uid.parse().ok()) {
                self.context.users.restore(id, task, uid);
            }
        }
    }

    /// Which of the assigned allocations must be fetched: those that are new, or newer than what is known.
    pub fn to_fetch(&self, assigned: &BTreeMap<String, u64>) -> Vec<String> {
        let known = self.lock();
        let is_wanted = |id: &String, index: u64| match known.running.get(id) {
            Some(handle) => handle.alloc.borrow().alloc_modify_index < index,
            None => known.inactive.get(id).is_none_or(|inactive| *inactive < index),
        };
        assigned.iter().filter(|(id, index)| is_wanted(id, **index)).map(|(id, _)| id.clone()).collect()
    }

    /// Brings the node in line with what the servers assigned; `fetched` are the new and changed ones.
    pub async fn apply(&self, assigned: &BTreeMap<String, u64>, fetched: Vec<Allocation>) {
        let (gone, collected): (Vec<(String, AllocHandle)>, Vec<String>) = {
            let mut known = self.lock();
            let collected = known.inactive.extract_if(.., |id, _| !assigned.contains_key(id));
            let collected = collected.map(|(id, _)| id).collect();
            (known.running.extract_if(.., |id, _| !assigned.contains_key(id)).collect(), collected)
        };
        for id in collected {
            self.context.forget_alloc(&id);
        }
        for (id, handle) in gone {
            let context = Arc::clone(&self.context);
            self.context.tasks.spawn(async move {
                handle.destroy().await;
                context.forget_alloc(&id);
            });
        }
        for alloc in fetched {
            match self.get(&alloc.id) {
                Some(handle) => {
                    handle.commands.send(AllocCommand::Update(Arc::new(alloc))).await.ok();
                }
                // It ended here, or on a node that went by this name, and its files were garbage collected.
                None if status::is_terminal(&alloc.client_status) => {
                    self.lock().inactive.insert(alloc.id, alloc.alloc_modify_index);
                }
                // New; or it was garbage collected here, and the servers' state was restored from an older one.
                None => {
                    self.lock().inactive.remove(&alloc.id);
                    self.context.store.put_alloc(&alloc);
                    self.add(StoredAlloc {
                        alloc,
                        tasks: BTreeMap::new(),
                        deployment: None,
                        acknowledged: None,
                    });
                }
            }
        }
    }

    fn add(&self, stored: StoredAlloc) {
        let predecessors = self.predecessors(&stored.alloc);
        let alloc = stored.alloc.clone();
        let spawned = AllocRunner::spawn(&self.context, stored, predecessors);
        let mut known = self.lock();
        match spawned {
            Ok(handle) => {
                known.running.insert(alloc.id, handle);
            }
            Err(error) => {
                tracing::error!(alloc = alloc.id, error, "an allocation was not started");
                known.inactive.insert(alloc.id.clone(), alloc.alloc_modify_index);
                drop(known);
                self.context.store.forget(&alloc.id);
                self.context.updates.put(failed_update(&alloc, &error, &self.context.node().id));
            }
        }
    }

    fn predecessors(&self, alloc: &Allocation) -> Predecessors {
        let id = &alloc.previous_allocation;
        let previous = match self.get(id) {
            Some(AllocHandle { status, dir, .. }) => Previous::Here { status, dir },
            None if id.is_empty() || self.is_inactive(id) => Previous::None,
            None => Previous::Elsewhere(id.clone()),
        };
        let preempted = alloc.preempted_allocations.iter().filter_map(|id| self.get(id));
        Predecessors { previous, preempted: preempted.map(|handle| handle.status).collect() }
    }

    /// Adds what a driver says about a task to the events of that task.
    pub fn add_driver_event(&self, event: DriverEvent) {
        if let Some(alloc) = self.get(&event.alloc_id) {
            alloc.tasks.add_event(&event.task, events::driver_message(&event.message));
        }
    }

    /// Garbage collects an allocation whose tasks have ended.
    ///
    /// # Errors
    /// When there is none of this id, or it still runs.
    pub async fn collect(&self, id: &str) -> Result<(), RemoteError> {
        let handle = {
            let mut known = self.lock();
            match known.running.get(id) {
                None => return Err(RemoteError::unknown_alloc(id)),
                Some(handle) if !handle.is_done() => return Err("allocation still running".into()),
                Some(_) => {
                    // Still assigned, yet not to be fetched and run again.
                    known.deactivate(id)
                }
            }
        };
        if let Some(handle) = handle {
            // Never closed.
            let _one_of_few = self.removals.acquire().await;
            handle.destroy().await;
        }
        Ok(())
    }

    /// Garbage collects all allocations that have ended.
    pub async fn collect_all(&self) {
        join_all(self.ended().iter().map(|id| self.collect(id))).await;
    }

    /// The allocations that have ended, oldest end first.
    fn ended(&self) -> Vec<String> {
        let known = self.lock();
        let mut ended: Vec<(i64, String)> = known
            .running
            .iter()
            .filter(|(_, handle)| handle.is_done())
            .map(|(id, handle)| (handle.status.borrow().done_at, id.clone()))
            .collect();
        ended.sort();
        ended.into_iter().map(|(_, id)| id).collect()
    }

    /// Garbage collects the oldest allocations while the node is too full. Nothing that runs is ended for that, and what
    /// the servers still take for running stays: an agent that restarts before they know would run it again.
    pub async fn make_room(&self) {
        let mut ended: VecDeque<String> = self.ended().into();
        ended.retain(|id| self.context.updates.is_end_known(id));
        while let Some(oldest) = ended.pop_front() {
            let surplus = self.surplus();
            if surplus == 0 && !self.is_disk_full() {
                return;
            }
            // How many there are too many is known; what one of them takes of the disk is known when it is gone.
            let others =
                surplus.saturating_sub(1).min(self.context.settings.gc.parallel_destroys.saturating_sub(1));
            let some: Vec<String> = ended.drain(..others.min(ended.len())).chain([oldest]).collect();
            tracing::info!(allocs = some.join(" "), "garbage collecting to make room");
            join_all(some.iter().map(|id| self.collect(id))).await;
        }
    }

    /// How many allocations there are too many.
    fn surplus(&self) -> usize {
        self.lock().running.len().saturating_sub(self.context.settings.gc.allocs_max)
    }

    fn is_disk_full(&self) -> bool {
        let gc = self.context.settings.gc;
        let Ok(disk) = rustix::fs::statvfs(&self.context.settings.alloc_dir) else { return false };
        used_percent(disk.f_blocks, disk.f_bfree, disk.f_bavail) > f64::from(gc.disk_usage_percent_max)
            || used_percent(disk.f_files, disk.f_ffree, disk.f_favail) > f64::from(gc.inode_usage_percent_max)
    }

    /// Stops the allocations that must not run without contact to the servers for this long, as if the servers had asked
    /// for it: their end is reported when the servers are back.
    pub async fn stop_disconnected(&self, disconnected: Duration) {
        for (id, handle) in self.all() {
            let longest = stop_after_disconnect(&handle.alloc.borrow());
            let stopping = status::is_stopped(&handle.alloc.borrow().desired_status) || handle.is_done();
            if longest.is_some_and(|longest| disconnected >= longest) && !stopping {
                tracing::warn!(alloc = id, "stopping an allocation that must not run without servers");
                let mut stopped = Allocation::clone(&handle.alloc.borrow());
                stopped.desired_status = "stop".to_string();
                handle.commands.send(AllocCommand::Update(Arc::new(stopped))).await.ok();
            }
        }
    }

    /// Ends everything and removes it.
    pub async fn destroy_all(&self) {
        let all = std::mem::take(&mut self.lock().running);
        let mut ending = tokio::task::JoinSet::new();
        for handle in all.into_values() {
            ending.spawn(async move { handle.destroy().await });
        }
        ending.join_all().await;
    }
}

/// `stop_on_client_after` of the allocation's group, under either of its names.
fn stop_after_disconnect(alloc: &Allocation) -> Option<Duration> {
    let job = alloc.job.as_ref()?;
    let group = job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))?;
    let newer = group.disconnect.as_ref().and_then(|disconnect| disconnect.stop_on_client_after);
    newer.or(group.stop_after_client_disconnect).map(|span| span.0).filter(|span| span.0 > 0)
}

/// The update for an allocation that cannot be run.
fn failed_update(alloc: &Allocation, error: &str, node_id: &str) -> Allocation {
    let now = Timestamp::from(clock::now());
    let job = alloc.job.as_ref();
    let group = job
        .and_then(|job| job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group)));
    let tasks = group.iter().flat_map(|group| &group.tasks);
    let dead = TaskState { state: "dead".into(), failed: true, finished_at: now, ..TaskState::default() };
    let known = alloc.deployment_status.clone();
    let judged = known.as_ref().is_some_and(|status| status.healthy.is_some());
    let deployment =
        AllocDeploymentStatus { healthy: Some(false), timestamp: now, ..known.clone().unwrap_or_default() };
    Allocation {
        id: alloc.id.clone(),
        node_id: node_id.to_string(),
        client_status: "failed".into(),
        client_description: format!("Unable to add allocation due to error: {error}"),
        task_states: tasks.map(|task| (task.name.clone(), dead.clone())).collect(),
        deployment_status: if judged { known } else { Some(deployment) },
        ..Allocation::default()
    }
}
