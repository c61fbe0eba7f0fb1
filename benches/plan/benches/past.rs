//! `cargo bench -p plan-bench --bench past -- [events]`: what it takes to read any moment of a long log.
//!
//! The log: 1,000 nodes, and 1,000 jobs of ten allocations at any time. The oldest job ends, is stopped and collected, and a new one
//! is registered, placed and reported running, one report a batch, until there are so many events (10 million). Its history is indexed,
//! with images. Then, of moments all over the log at random, as a list of jobs reads them:
//!
//! * **cold**: nothing of the past is held in memory (what the system caches of files stays);
//! * **warm**: what was read before is held, within 512 MiB;
//! * beside a writer of 200 batches a second, each awaited on disk: how long these take without readers and with one that reads
//!   moments without a pause.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::{Index, Rng, Term};
use history::{History, States};
use journal::store::{Store, StoreError};
use journal::{EncodedBatch, Freshness, IndexCallback, Journal, KeepError, ProposeError, ReadError};
use model::{AllocId, Image};
use parking_lot::Mutex;
use plan_bench::written::WrittenLog;
use plan_bench::{is_trial, percentiles, resident};
use state::State;

const NODES: usize = 1_000;
const JOBS: usize = 1_000;
const PER_JOB: usize = 10;
const MEMORY: usize = 512 << 20;
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Between two batches of the writer.
const PACE: Duration = Duration::from_millis(5);

/// How much of everything.
struct Size {
    events: usize,
    nodes: usize,
    jobs: usize,
    reads: usize,
    /// How long the writer writes, each time.
    written_for: Duration,
}

fn main() {
    let events = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(10_000_000);
    let whole = Size { events, nodes: NODES, jobs: JOBS, reads: 200, written_for: Duration::from_secs(20) };
    let little =
        Size { events: 3_000, nodes: 20, jobs: 10, reads: 5, written_for: Duration::from_millis(50) };
    run(&if is_trial() { little } else { whole });
}

fn run(size: &Size) {
    let dir = tempfile::tempdir().expect("a directory on the disk under test");
    let (log, index) = (dir.path().join("log"), dir.path().join("history"));
    std::fs::create_dir(&log).expect("the directory is writable");
    let began = Instant::now();
    let mut load = Load::new(&log, size);
    while load.log.events < size.events {
        load.step();
    }
    load.log.flush();
    let last = load.log.state.index;
    println!("a log of {} events in {} batches, made in {:.0?}", load.log.events, last.0, began.elapsed());
    let published = Arc::new(Mutex::new(Arc::new(load.log.state.clone())));
    let published = Published { newest: published, origin: Arc::default() };
    let journal = Arc::new(ReadLog { store: load.log.store.clone(), committed: AtomicU64::new(last.0) });
    let open = || {
        let history = History::open(Some(index.clone()), journal.clone(), published.clone(), MEMORY);
        let history = history.expect("nobody else uses the directory");
        history.transitions(AllocId::default(), last, PATIENCE).expect("the log can be indexed");
        history
    };
    let began = Instant::now();
    let history = open();
    let images = history.images().expect("history can be read").len();
    println!("indexed in {:.0?}: {images} images", began.elapsed());
    history.shutdown();
    drop(history);

    // One begins after the oldest is gone, or a moment before.
    let most = size.jobs + 1;
    let mut rng = Rng::new(1);
    let mut any = || Index(1 + rng.below(last.0));
    let cold = (0..size.reads.div_ceil(4)).map(|_| {
        let history = open();
        let took = read(&history, any(), most);
        history.shutdown();
        took
    });
    print("cold", cold.collect());
    let history = open();
    let before = resident();
    print("warm", (0..size.reads).map(|_| read(&history, any(), most)).collect());
    let (held, estimate) = history.held();
    let grown = resident().saturating_sub(before) >> 20;
    println!(
        "memory: {held} moments held, {} MiB by estimate, the process grew by {grown} MiB",
        estimate >> 20
    );

    print("a write alone", load.paced(size.written_for, &journal, &published));
    let stop = AtomicBool::new(false);
    let (beside, reads) = std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut rng = Rng::new(2);
            let mut times = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                times.push(read(&history, Index(1 + rng.below(last.0)), most));
            }
            times
        });
        let beside = load.paced(size.written_for, &journal, &published);
        stop.store(true, Ordering::Relaxed);
        (beside, reader.join().expect("the reader reads until it is stopped"))
    });
    print("a write beside a reader of the past", beside);
    print("the reads beside it", reads);
    history.shutdown();
}

/// Reads a moment as a list of jobs does: the clusters' jobs, of which there are no more than that.
fn read(history: &History, index: Index, most: usize) -> Duration {
    let began = Instant::now();
    let state = history.state_at(index).expect("the log reaches back there");
    let jobs = state.jobs.iter().filter(|(_, job)| !job.key.id.is_empty()).count();
    assert!(state.index == index && jobs <= most, "{jobs} jobs at {index}");
    began.elapsed()
}

fn print(what: &str, mut times: Vec<Duration>) {
    let most = percentiles(&mut times);
    println!("{what}: {} times, {most}, at most {:.1?}", times.len(), times[times.len() - 1]);
}

/// What goes on in the cluster.
struct Load {
    log: WrittenLog,
    jobs: usize,
    begun: usize,
}

impl Load {
    fn new(dir: &Path, size: &Size) -> Load {
        let mut log = WrittenLog::new(dir, size.nodes);
        (0..size.jobs).for_each(|number| log.begin(&format!("job-{number}"), PER_JOB));
        Load { log, jobs: size.jobs, begun: size.jobs }
    }

    /// The oldest job makes room for a new one.
    fn step(&mut self) {
        self.log.end(&format!("job-{}", self.begun - self.jobs));
        self.log.collect();
        self.log.begin(&format!("job-{}", self.begun), PER_JOB);
        self.begun += 1;
    }

    /// Registers jobs for so long, at a steady pace; how long each took until it was on disk and published, from when it was due.
    fn paced(&mut self, time: Duration, journal: &ReadLog, published: &Published) -> Vec<Duration> {
        let (began, mut times) = (Instant::now(), Vec::new());
        for due in (0..).map(|number| PACE * number).take_while(|due| *due < time) {
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            self.log.register(&format!("paced-{}-{}", self.begun, times.len()));
            self.log.flush();
            journal.committed.store(self.log.state.index.0, Ordering::Release);
            *published.newest.lock() = Arc::new(self.log.state.clone());
            times.push(began.elapsed() - due);
        }
        self.begun += 1;
        times
    }
}

#[derive(Clone)]
struct Published {
    newest: Arc<Mutex<Arc<State>>>,
    /// Another one each time would mean that the log was repaired: nothing that was held would be right any more.
    origin: Arc<State>,
}

impl States for Published {
    fn published(&self) -> Arc<State> {
        self.newest.lock().clone()
    }

    fn origin(&self) -> Arc<State> {
        self.origin.clone()
    }
}

/// A log that somebody else writes.
struct ReadLog {
    store: Arc<Store>,
    committed: AtomicU64,
}

impl Journal for ReadLog {
    fn propose(&self, _: Term, _: EncodedBatch) -> Result<(), ProposeError> {
        Err(ProposeError::Halted("this log is only read".to_string()))
    }

    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let batches = self.store.batches(from.max(Index(1)), self.committed(), max_bytes);
        batches.map_err(|error| match error {
            StoreError::Compacted { from, oldest } => ReadError::Compacted { from, oldest },
            other => ReadError::Failed { index: from, why: other.to_string() },
        })
    }

    fn committed(&self) -> Index {
        Index(self.committed.load(Ordering::Acquire))
    }

    fn horizon(&self) -> Index {
        self.store.horizon()
    }

    fn keep(&self, _: Image) -> Result<(), KeepError> {
        Ok(())
    }

    fn unkept_bytes(&self) -> u64 {
        0
    }

    fn read_index(&self, _: Freshness, callback: IndexCallback) {
        callback(Ok(self.committed()));
    }
}
