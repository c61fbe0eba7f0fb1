//! Where the tasks of one allocation write down what becomes of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::document::{TaskEvent, TaskState};
use tokio::sync::Notify;

use crate::clock;
use crate::store::{Store, StoredTask};
use crate::task::events;
use crate::task::lifecycle::States;

/// The tasks of one allocation by name. Each change is stored, and wakes who watches.
#[derive(Debug)]
pub struct Board {
    alloc_id: String,
    store: Store,
    tasks: Mutex<BTreeMap<String, StoredTask>>,
    changed: Notify,
}

impl Board {
    pub fn new(alloc_id: &str, store: Store, tasks: BTreeMap<String, StoredTask>) -> Board {
        Board { alloc_id: alloc_id.to_string(), store, tasks: Mutex::new(tasks), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes one task. A task nobody put here is made.
    pub fn change(&self, task: &str, change: impl FnOnce(&mut StoredTask)) {
        let mut tasks = self.lock();
        let stored = tasks.entry(task.to_string()).or_default();
        let before = stored.state.events.last().map(|event| event.time);
        change(stored);
        for TaskEvent { kind, display_message, time, .. } in stored.state.events.iter() {
            if Some(*time) > before {
                tracing::info!(alloc = self.alloc_id, task, kind, says = display_message, "task event");
            }
        }
        self.store.put_task(&self.alloc_id, task, stored);
        drop(tasks);
        self.changed.notify_one();
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

    /// Returns after a change; at once when there was one since the last call. For one watcher.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
