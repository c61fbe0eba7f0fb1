//! `cargo bench -p plan-bench --bench archive`: how small a segment of the log becomes, and in what time.
//!
//! A log of 8,000 jobs of ten allocations on 1,000 nodes: each job is registered, placed, reported running and dead by its
//! nodes, one report a batch, and stopped. Its first whole segment of 64 MiB is compressed in blocks of 1 MiB, as the archive
//! does it, with several levels of zstd. Prints how many times smaller it becomes, and MB of the segment in a second for both
//! ways, on one processor.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use journal::store::{Directory, Driving, Entry, Payload, RETENTION, SEGMENT_BYTES, Settings, Store};
use model::document::{Allocation, TaskEvent, TaskState};
use model::{AllocId, Command, EvalId, JobKey, NodeStatus};
use plan_bench::{is_trial, job, node, node_id, register, submit};
use state::State;
use zstd::bulk::{Compressor, Decompressor};

const NODES: usize = 1_000;
const PER_JOB: usize = 10;
const LEVELS: [i32; 8] = [1, 3, 5, 7, 9, 12, 15, 19];
const BLOCK: usize = 1 << 20;
/// Entries that are written at once.
const GROUP: usize = 1_000;

fn main() {
    let quick = is_trial();
    let dir = tempfile::tempdir().unwrap();
    let (batches, events) = written(dir.path(), if quick { 20 } else { 8_000 });
    println!("archive: a log of {batches} batches with {events} events");
    let segment = std::fs::read(dir.path().join("00000000000000000001.seg")).unwrap();
    let used = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    println!("archive: {used} bytes of the first segment");
    let levels = if quick { &LEVELS[..1] } else { &LEVELS };
    for level in levels {
        measure(&segment[..used.min(SEGMENT_BYTES as usize)], *level);
    }
}

fn measure(bytes: &[u8], level: i32) {
    let (mut compressor, mut decompressor) = (Compressor::new(level).unwrap(), Decompressor::new().unwrap());
    let start = Instant::now();
    let blocks: Vec<Vec<u8>> = bytes.chunks(BLOCK).map(|block| compressor.compress(block).unwrap()).collect();
    let packing = start.elapsed();
    let start = Instant::now();
    let unpacked: usize =
        blocks.iter().map(|block| decompressor.decompress(block, BLOCK).unwrap().len()).sum();
    let unpacking = start.elapsed();
    assert_eq!(unpacked, bytes.len());
    let packed: usize = blocks.iter().map(Vec::len).sum();
    let speed = |spent: std::time::Duration| bytes.len() as f64 / 1e6 / spent.as_secs_f64();
    println!(
        "level {level:>2}: {:.2} times smaller, {:.0} MB/s to compress, {:.0} MB/s to decompress",
        bytes.len() as f64 / packed as f64,
        speed(packing),
        speed(unpacking),
    );
}

/// Makes a log, and returns how many batches and events are in it.
fn written(dir: &Path, jobs: usize) -> (u64, usize) {
    let settings = Settings {
        segment_bytes: SEGMENT_BYTES,
        retention: RETENTION,
        archive: None,
        driving: Driving::Threads,
    };
    let files = Arc::new(Directory::open(dir).unwrap());
    let store = Store::open(files, settings, Arc::new(|why| panic!("{why}"))).unwrap();
    let mut log = Log { state: State::default(), store, waiting: Vec::new(), next: 0, events: 0 };
    log.entry(Payload::Blank);
    for number in 0..NODES {
        log.submit(&Command::RegisterNode { document: Box::new(node(number)) });
        let claimed = NodeStatus::Ready;
        log.submit(&Command::UpdateNodeStatus { node: node_id(number), claimed });
    }
    (0..jobs).for_each(|number| log.life(&format!("job-{number}")));
    log.flush();
    (log.state.index.0, log.events)
}

struct Log {
    state: State,
    store: Store,
    waiting: Vec<Entry>,
    next: u64,
    events: usize,
}

impl Log {
    /// From registered to stopped.
    fn life(&mut self, name: &str) {
        let eval = self.submit(&register(job(name, PER_JOB)));
        let key = JobKey::new("default", name);
        self.settle(eval.expect("a job that is registered is evaluated"));
        let row = self.state.jobs.lookup(&key).expect("the job was just registered");
        let allocs: Vec<AllocId> = row.allocs.iter().map(|row| self.state.allocs.get(*row).id).collect();
        for (status, task) in [("running", "running"), ("complete", "dead")] {
            allocs.iter().for_each(|alloc| self.report(*alloc, status, task));
        }
        let (purge, eval_priority, no_shutdown_delay) = (false, None, false);
        let stopped = self.submit(&Command::DeregisterJob { key, purge, eval_priority, no_shutdown_delay });
        stopped.into_iter().for_each(|eval| self.settle(eval));
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
        self.events += batch.events.len();
        self.entry(Payload::Batch(journal::encode(&batch)));
        decision.reply().evals.first().copied()
    }

    fn entry(&mut self, payload: Payload) {
        self.waiting.push(Entry { index: self.next, term: 1, payload });
        self.next += 1;
        if self.waiting.len() == GROUP {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (done, written) = std::sync::mpsc::channel();
        let entries = std::mem::take(&mut self.waiting);
        self.store.append(entries, Box::new(move || done.send(()).unwrap())).unwrap();
        written.recv().unwrap();
    }
}
