//! A log on disk, as a cluster with much to do leaves it: jobs that are registered, placed, reported by their nodes and stopped.

use std::path::Path;
use std::sync::Arc;

use base::Duration;
use journal::store::{Directory, Driving, Entry, Payload, RETENTION, SEGMENT_BYTES, Settings, Store};
use model::command::LeftoverAges;
use model::document::{Allocation, TaskEvent, TaskState};
use model::{AllocId, Command, EvalId, JobKey, NodeStatus};
use state::State;

use crate::{job, node, node_id, register, submit};

/// Entries that are written at once.
const GROUP: usize = 1_000;

pub struct WrittenLog {
    pub state: State,
    pub store: Arc<Store>,
    waiting: Vec<Entry>,
    next: u64,
    pub events: usize,
}

impl WrittenLog {
    /// A new log in `dir`, of so many ready nodes.
    pub fn new(dir: &Path, nodes: usize) -> WrittenLog {
        let settings = Settings {
            segment_bytes: SEGMENT_BYTES,
            retention: RETENTION,
            archive: None,
            keep: None,
            driving: Driving::Threads,
        };
        let files = Arc::new(Directory::open(dir).expect("the directory of a bench can be used"));
        let store =
            Store::open(files, settings, Arc::new(|why| panic!("{why}"))).expect("the directory is empty");
        let (store, waiting) = (Arc::new(store), Vec::new());
        let mut log = WrittenLog { state: State::default(), store, waiting, next: 0, events: 0 };
        log.entry(Payload::Blank);
        for number in 0..nodes {
            log.submit(&Command::RegisterNode { document: Box::new(node(number)) });
            let claimed = NodeStatus::Ready;
            log.submit(&Command::UpdateNodeStatus { node: node_id(number), claimed });
        }
        log
    }

    /// A job of `count` allocations is registered and placed, and its nodes report that they run it, one report a batch.
    pub fn begin(&mut self, name: &str, count: usize) {
        let eval = self.submit(&register(job(name, count)));
        self.settle(eval.expect("a job that is registered is evaluated"));
        self.allocs(name).into_iter().for_each(|alloc| self.report(alloc, "running", "running"));
    }

    /// A job of one allocation is registered, and nothing more happens to it.
    pub fn register(&mut self, name: &str) {
        self.submit(&register(job(name, 1)));
    }

    /// Its nodes report that it is complete, and it is stopped.
    pub fn end(&mut self, name: &str) {
        let allocs = self.allocs(name);
        let (key, eval_priority) = (JobKey::new("default", name), None);
        let (purge, no_shutdown_delay) = (false, false);
        let stopped = self.submit(&Command::DeregisterJob { key, purge, eval_priority, no_shutdown_delay });
        stopped.into_iter().for_each(|eval| self.settle(eval));
        // Of a job that is wanted they would ask for others.
        allocs.into_iter().for_each(|alloc| self.report(alloc, "complete", "dead"));
    }

    /// What is over is forgotten.
    pub fn collect(&mut self) {
        self.submit(&Command::CollectLeftovers { named: None, ages: LeftoverAges::NONE });
        self.submit(&Command::CollectGarbage { jobs_after: Duration::ZERO, nodes_after: Duration(i64::MAX) });
    }

    fn allocs(&self, name: &str) -> Vec<AllocId> {
        let row = self.state.jobs.lookup(&JobKey::new("default", name)).expect("the job was registered");
        row.allocs.iter().map(|row| self.state.allocs.get(*row).id).collect()
    }

    fn settle(&mut self, id: EvalId) {
        let eval = self.state.evals.lookup(id).expect("the evaluation was just created");
        let settlement =
            placement::schedule(&self.state, eval, self.state.index.0, self.state.time).settlement;
        self.submit(&Command::SettleEval(Box::new(settlement)));
    }

    fn report(&mut self, id: AllocId, status: &str, task: &str) {
        let Some(alloc) = self.state.allocs.lookup(id) else { return };
        let node = self.state.nodes.cold(alloc.node).id;
        let event = |kind: &str, text: &str| TaskEvent {
            kind: kind.to_string(),
            display_message: text.to_string(),
            time: self.state.time.0,
            ..TaskEvent::default()
        };
        let events = vec![
            event("Received", "Task received by client"),
            event("Task Setup", "Building Task Directory"),
            event("Started", "Task started by client"),
        ];
        let state = TaskState { state: task.to_string(), events: events.into(), ..TaskState::default() };
        let update = Allocation {
            id: id.to_string(),
            node_id: node.to_string(),
            client_status: status.to_string(),
            task_states: [("task".to_string(), state)].into_iter().collect(),
            ..Allocation::default()
        };
        self.submit(&Command::UpdateAllocs { node, updates: vec![update] });
    }

    /// Returns the evaluation that it led to, if it did.
    fn submit(&mut self, command: &Command) -> Option<EvalId> {
        let (decision, batch) = submit(&mut self.state, command);
        if !batch.events.is_empty() {
            self.events += batch.events.len();
            self.entry(Payload::Batch(journal::encode(&batch)));
        }
        decision.reply().evals.first().copied()
    }

    fn entry(&mut self, payload: Payload) {
        self.waiting.push(Entry { index: self.next, term: 1, payload });
        self.next += 1;
        if self.waiting.len() == GROUP {
            self.flush();
        }
    }

    /// Returns when all is on disk.
    pub fn flush(&mut self) {
        let (done, written) = std::sync::mpsc::channel();
        let entries = std::mem::take(&mut self.waiting);
        self.store
            .append(entries, Box::new(move || done.send(()).expect("the writer waits")))
            .expect("the disk of a bench takes it");
        written.recv().expect("the disk of a bench takes it");
    }
}
