//! How a server's loops are started, asked and stopped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use base::{Duration, Index, Uuid};
use journal::{Journal, KeepError};
use model::{JobType, SchedulerRules};
use parking_lot::Mutex;
use state::State;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::changes::{Subject, Waiter};
use super::inbox::Inbox;
use super::shared::{Leadership, Shared};
use super::threads;
use super::workers::{WorkerInfo, WorkerPool, WorkerThread};
use crate::leader::broker::{BrokerSettings, BrokerStats};
use crate::leader::garbage::GarbageSettings;
use crate::leader::heartbeats::HeartbeatSettings;
use crate::leader_client::LeaderClient;
use crate::worker::TYPES;

#[derive(Clone, Debug)]
pub struct Settings {
    /// This server, as batches name it.
    pub server: Uuid,
    pub heartbeats: HeartbeatSettings,
    pub broker: BrokerSettings,
    pub garbage: GarbageSettings,
    /// How the scheduler of a new cluster works.
    pub scheduler: SchedulerRules,
    /// Commands get no earlier index: after a repair that lost some, what clients remember must not point into new content.
    pub first_index: Index,
    /// Most allocations that a job may ask for.
    pub job_count_max: i64,
    /// Scheduler threads.
    pub workers: usize,
    /// Where they note what they are at, so that an evaluation that ends the process is not tried again and again.
    pub notes: Option<PathBuf>,
    /// How long a call waits for a leader before it fails.
    pub rpc_hold: Duration,
}

/// What exists before the log does: the log needs the inbox to report to.
pub struct Starting {
    pub inbox: Inbox,
    settings: Settings,
}

/// First half of a start: open the log with [`Starting::inbox`] as its sink, then pass it to [`Starting::start`].
pub fn prepare(settings: Settings) -> Starting {
    Starting { inbox: Inbox::default(), settings }
}

impl Starting {
    /// `leader_client` calls other servers, on `runtime`.
    pub fn start(
        self,
        journal: Arc<dyn Journal>,
        leader_client: Arc<dyn LeaderClient>,
        runtime: &Handle,
    ) -> Control {
        let Starting { inbox, settings } = self;
        let shared = Arc::new(Shared::new(inbox, settings, journal, leader_client, runtime.clone()));
        let pool = WorkerPool { workers: shared.settings.workers, types: TYPES.to_vec() };
        let threads = threads::start(&shared);
        let workers = Mutex::new(Workers { pool: pool.clone(), running: Vec::new(), threads });
        let control = Control { shared, workers: Arc::new(workers) };
        control.begin_workers(pool);
        control
    }
}

/// Everything that the server's listeners may do: submit, read, wait.
#[derive(Clone)]
pub struct Control {
    pub(super) shared: Arc<Shared>,
    workers: Arc<Mutex<Workers>>,
}

struct Workers {
    pool: WorkerPool,
    running: Vec<Arc<WorkerThread>>,
    /// Of these, and all others of the server.
    threads: Vec<JoinHandle<()>>,
}

impl Control {
    /// The newest committed state. A pointer copy.
    pub fn state(&self) -> Arc<State> {
        self.shared.published()
    }

    /// The state of that index, if it is one of the last that were published.
    pub fn state_at(&self, index: Index) -> Option<Arc<State>> {
        self.shared.recent.lock().find(index)
    }

    /// Notified of each newly published index; may skip some when many come at once.
    pub fn watch(&self) -> watch::Receiver<Index> {
        self.shared.published_index.subscribe()
    }

    /// Notified of each batch that concerns the subject, from now on.
    pub fn changes_of(&self, subject: Subject) -> Waiter {
        self.shared.changes.wait_for(subject)
    }

    pub fn leads(&self) -> bool {
        self.leadership_now() == Leadership::Mine
    }

    pub fn leadership_now(&self) -> Leadership {
        self.shared.leadership_now()
    }

    /// Notified when leadership comes, goes or moves.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    /// The reason, once the server cannot go on.
    pub fn halted(&self) -> watch::Receiver<Option<String>> {
        self.shared.halted.subscribe()
    }

    /// The reason, while this server's state is not what the cluster decided on: it serves nobody and waits for
    /// another state from the log.
    pub fn diverged(&self) -> watch::Receiver<Option<String>> {
        self.shared.diverged.subscribe()
    }

    /// The state that this server began with: what follows it can be folded from the log.
    pub fn origin(&self) -> Arc<State> {
        self.shared.origin.load_full()
    }

    /// Keeps an image of the newest state beside the log. Blocks until it is safe.
    ///
    /// # Errors
    /// The log does not take it; the image kept before stays.
    pub fn keep_image(&self) -> Result<Index, KeepError> {
        self.shared.keep_image()
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.shared.journal
    }

    pub fn broker_stats(&self) -> BrokerStats {
        self.shared.leader().machine.broker_stats()
    }

    /// How long the evaluation waits for a scheduler that waits the longest.
    pub fn longest_wait(&self) -> Duration {
        self.shared.longest_wait()
    }

    /// Evaluations that are ready, and those that workers have, by type.
    pub fn broker_stats_by_type(&self) -> BTreeMap<JobType, (usize, usize)> {
        self.shared.leader().machine.broker_stats_by_type()
    }

    /// How long batches, plans and evaluations take.
    pub fn timings(&self) -> Vec<metrics::Sampled> {
        self.shared.timings.report()
    }

    /// Nodes whose heartbeats are waited for.
    pub fn heartbeats_tracked(&self) -> usize {
        self.shared.leader().machine.heartbeats_tracked()
    }

    /// Commands that wait to be decided.
    pub fn commands_waiting(&self) -> usize {
        self.shared.inbox.waiting()
    }

    pub fn workers(&self) -> Vec<WorkerInfo> {
        self.workers.lock().running.iter().map(|worker| worker.info()).collect()
    }

    pub fn worker_pool(&self) -> WorkerPool {
        self.workers.lock().pool.clone()
    }

    /// Replaces the workers, unless they are like that already. Each one there is ends once it is done with what it
    /// has.
    pub fn set_worker_pool(&self, pool: WorkerPool) {
        if self.worker_pool() != pool {
            self.begin_workers(pool);
        }
    }

    fn begin_workers(&self, pool: WorkerPool) {
        let mut workers = self.workers.lock();
        workers.running.iter().for_each(|worker| worker.dismiss());
        workers.threads.retain(|thread| !thread.is_finished());
        workers.running =
            (0..pool.workers).map(|_| Arc::new(WorkerThread::new(pool.types.clone()))).collect();
        let threads = workers.running.iter().map(|worker| threads::start_worker(&self.shared, worker));
        let threads: Vec<_> = threads.collect();
        workers.threads.extend(threads);
        workers.pool = pool;
    }

    /// Stops all threads and waits for them. Commands on their way are answered `NotLeading` or `Unknown`.
    pub fn shutdown(&self) {
        self.shared.close();
        let threads = std::mem::take(&mut self.workers.lock().threads);
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked before the shutdown");
            }
        }
    }
}
