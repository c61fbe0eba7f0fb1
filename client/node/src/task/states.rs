//! The states of the tasks of one allocation, shared by the loops of the tasks and that of the allocation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::document::{TaskEvent, TaskState};
use tokio::sync::watch;

use super::events;
use super::lifecycle::States;
use crate::clock;
use crate::driver::RunningTask;
use crate::store::{Store, StoredTask};

/// The tasks of one allocation by name. Each change is stored, and wakes the loop of the allocation.
#[derive(Debug)]
pub struct TaskStates {
    alloc_id: String,
    store: Store,
    tasks: Mutex<BTreeMap<String, StoredTask>>,
    running: Mutex<BTreeMap<String, Arc<dyn RunningTask>>>,
    changed: watch::Sender<()>,
}

impl TaskStates {
    pub fn new(alloc_id: &str, store: Store, tasks: BTreeMap<String, StoredTask>) -> TaskStates {
        TaskStates {
            alloc_id: alloc_id.to_string(),
            store,
            tasks: Mutex::new(tasks),
            running: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of one task, which is added if it is new.
    pub fn change(&self, task: &str, change: impl FnOnce(&mut StoredTask)) {
        let mut tasks = self.lock();
        let stored = tasks.entry(task.to_string()).or_default();
        let before = stored.state.events.last().map(|event| event.time);
        change(stored);
        for TaskEvent { kind, display_message, time, .. } in stored.state.events.iter() {
            if Some(*time) > before {
                tracing::info!(alloc = self.alloc_id, task, kind, message = display_message, "task event");
            }
        }
        self.store.put_task(&self.alloc_id, task, stored);
        drop(tasks);
        self.changed.send_replace(());
    }

    pub fn add_event(&self, task: &str, event: TaskEvent) {
        self.change(task, |stored| events::append(&mut stored.state, event, clock::now()));
    }

    pub fn enter(&self, task: &str, state: &str) {
        self.change(task, |stored| events::enter(&mut stored.state, state, clock::now()));
    }

    pub fn task(&self, task: &str) -> StoredTask {
        self.lock().get(task).cloned().unwrap_or_default()
    }

    pub fn state(&self, task: &str) -> Option<TaskState> {
        self.lock().get(task).map(|stored| stored.state.clone())
    }

    pub fn states(&self) -> States {
        self.lock().iter().map(|(name, stored)| (name.clone(), stored.state.clone())).collect()
    }

    fn lock_running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn RunningTask>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task as its driver has it, while it runs.
    pub fn running(&self, task: &str) -> Option<Arc<dyn RunningTask>> {
        self.lock_running().get(task).cloned()
    }

    pub fn all_running(&self) -> BTreeMap<String, Arc<dyn RunningTask>> {
        self.lock_running().clone()
    }

    pub fn set_running(&self, name: &str, task: Arc<dyn RunningTask>) {
        self.lock_running().insert(name.to_string(), task);
    }

    pub fn set_ended(&self, name: &str) {
        self.lock_running().remove(name);
    }

    /// Something else that the loop of the allocation looks at has changed.
    pub fn touch(&self) {
        self.changed.send_replace(());
    }

    /// Gets a message after each change.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
