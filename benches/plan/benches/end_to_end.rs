//! `cargo bench -p plan-bench --bench end_to_end`: from registering a job to its committed allocation.
//!
//! In process, durable: the real log on disk with fdatasync, the sequencer, the broker and two workers. 1,000
//! ready nodes; 64 submitters, each registering one job of one allocation after the other and waiting until
//! the allocation is committed. Prints jobs per second and the time of one job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Uuid;
use control::Control;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use model::{Actor, Command, JobKey, NodeStatus, Request};
use plan_bench::{is_trial, job, node, node_id, register};
use raft::RaftJournal;

const NODES: usize = 1_000;
const SUBMITTERS: usize = 64;

fn main() {
    let quick = is_trial();
    let jobs_each = if quick { 2 } else { 200 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let starting = control::prepare(settings());
    let log = raft::Settings {
        dir: dir.path().to_path_buf(),
        node: 1,
        address: "127.0.0.1:0".to_string(),
        segment_bytes: 64 << 20,
        retention: raft::RETENTION,
        archive: None,
        keep: None,
        tail: raft::TAIL,
        found: raft::Found::Alone,
        timings: raft::Timings::default(),
        seed: 1,
    };
    let opening = RaftJournal::open(log, Arc::new(raft::NoPeers), starting.inbox.clone(), runtime.handle());
    let log = runtime.block_on(opening).unwrap();
    let control = starting.start(log.clone(), Arc::new(control::leader_client::NoPeers), runtime.handle());
    runtime.block_on(fill(&control, if quick { 10 } else { NODES }));
    let start = Instant::now();
    let mut times = runtime.block_on(run(&control, jobs_each));
    let spent = start.elapsed();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "end_to_end: {} jobs by {SUBMITTERS} submitters in {spent:.2?}: {:.0} jobs/s, p50 {:.2?}, p99 {:.2?}",
        times.len(),
        times.len() as f64 / spent.as_secs_f64(),
        at(0.50),
        at(0.99),
    );
    control.shutdown();
    runtime.block_on(log.shutdown());
}

/// Submitters at once, each one job after the other.
async fn run(control: &Control, jobs_each: usize) -> Vec<Duration> {
    let mut submitters = tokio::task::JoinSet::new();
    for submitter in 0..SUBMITTERS {
        let control = control.clone();
        submitters.spawn(async move {
            let mut times = Vec::with_capacity(jobs_each);
            for number in 0..jobs_each {
                let name = format!("job-{submitter}-{number}");
                let start = Instant::now();
                place(&control, &name).await;
                times.push(start.elapsed());
            }
            times
        });
    }
    submitters.join_all().await.into_iter().flatten().collect()
}

async fn place(control: &Control, name: &str) {
    let mut news = control.watch();
    ask(control, register(job(name, 1))).await;
    let key = JobKey::new("default", name);
    loop {
        news.borrow_and_update();
        let state = control.state();
        if state.jobs.lookup(&key).is_some_and(|job| !job.allocs.is_empty()) {
            return;
        }
        news.changed().await.expect("the server lives as long as the bench");
    }
}

async fn fill(control: &Control, nodes: usize) {
    for number in 0..nodes {
        ask(control, Command::RegisterNode { document: Box::new(node(number)) }).await;
        ask(control, Command::UpdateNodeStatus { node: node_id(number), claimed: NodeStatus::Ready }).await;
    }
}

async fn ask(control: &Control, command: Command) {
    let request = Request::unnamed(Actor::ANONYMOUS, command);
    control.submit(request).await.expect("a bench asks for what is possible");
}

fn settings() -> control::Settings {
    control::Settings {
        server: Uuid::NIL,
        garbage: Default::default(),
        scheduler: Default::default(),
        heartbeats: HeartbeatSettings {
            min_ttl: base::Duration::from_secs(3_600),
            grace: base::Duration::from_secs(10),
            failover_ttl: base::Duration::from_secs(3_600),
        },
        broker: BrokerSettings::default(),
        job_count_max: 50_000,
        first_index: base::Index::ZERO,
        notes: None,
        workers: 2,
        rpc_hold: base::Duration::from_secs(5),
    }
}
