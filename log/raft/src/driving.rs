//! What runs the work that is not a task of openraft: threads, or in a simulation tasks in virtual time.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use journal::store::{self, Fatal, Store};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinError, JoinHandle};
use tokio::time::sleep;

/// How a journal is driven that has no thread of its own. See [`crate::RaftJournal::open_on`].
#[derive(Clone)]
pub struct Driving {
    /// How long the disk takes for what it does next; asked before each step.
    pub delay: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Called when the server cannot go on. It is dead then: drop the journal, and what it has not synced is lost.
    pub fatal: Fatal,
}

/// How long a step waits at least while the disk is full: there may be space again.
const FULL_DELAY: Duration = Duration::from_millis(10);

/// What calls the sink, and what writes.
pub(crate) enum Workers {
    Threads { notifier: thread::JoinHandle<()> },
    Steps { notifier: JoinHandle<()>, disk: JoinHandle<()> },
}

/// Where work runs that waits for the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Blocking {
    /// Another thread.
    Elsewhere,
    Here,
}

/// False once the server is dead, for those who wait for a disk that will never answer.
pub(crate) struct Life(watch::Sender<bool>);

/// Ended when dropped.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Vec<AbortHandle>>);

impl Workers {
    /// Writes what is queued, and returns when all workers have ended.
    pub async fn end(self, store: Arc<Store>) {
        match self {
            Workers::Threads { notifier } => {
                let closed = tokio::task::spawn_blocking(move || {
                    store.close();
                    // A panic in there ended the process already.
                    drop(notifier.join());
                });
                if closed.await.is_err() {
                    tracing::warn!("the runtime ended while the log was closed");
                }
            }
            Workers::Steps { notifier, disk } => {
                store.close();
                disk.abort();
                // It is dead already if it panicked.
                notifier.await.unwrap_or(());
            }
        }
    }

    /// Leaves threads to end by themselves, and ends tasks at once.
    pub fn abandon(self, life: &Life) {
        if let Workers::Steps { notifier, disk } = self {
            notifier.abort();
            disk.abort();
            life.0.send_replace(false);
        }
    }
}

impl Blocking {
    pub async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        match self {
            Blocking::Elsewhere => tokio::task::spawn_blocking(work).await,
            Blocking::Here => Ok(work()),
        }
    }
}

impl Life {
    pub fn new() -> Life {
        Life(watch::Sender::new(true))
    }

    pub fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}

impl Tasks {
    pub fn add(&self, task: JoinHandle<()>) {
        self.0.lock().push(task.abort_handle());
    }

    pub fn end(&self) {
        self.0.lock().drain(..).for_each(|task| task.abort());
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.end();
    }
}

/// How the store is driven by steps, and how it is woken.
pub(crate) fn by_steps() -> (store::Driving, Arc<Notify>) {
    let work = Arc::new(Notify::new());
    let wake = work.clone();
    (store::Driving::Steps { on_work: Arc::new(move || wake.notify_one()) }, work)
}

/// Takes the store's steps, one after the other.
pub(crate) async fn step(
    store: Arc<Store>,
    work: Arc<Notify>,
    delay: Arc<dyn Fn() -> Duration + Send + Sync>,
) {
    loop {
        sleep(delay()).await;
        if store.step() {
            continue;
        }
        match store.is_full() {
            true => sleep(FULL_DELAY).await,
            false => work.notified().await,
        }
    }
}
