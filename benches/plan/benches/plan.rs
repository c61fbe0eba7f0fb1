//! `cargo bench -p plan-bench --bench plan`: the log, the fold, plans and placement, each alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use base::{Index, Term, Time};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use journal::Journal;
use model::Command;
use plan_bench::{Committed, fleet, is_trial, reports, submit, with_job, with_placed_job};
use raft::RaftJournal;
use state::State;

criterion_group!(benches, append, fold, replay, plan_commit, schedule);
criterion_main!(benches);

/// From a proposal to its commit on disk: encoded batch in, one voter, fdatasync on, one proposal at a time.
fn append(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (state, allocs) = placed(100, 1_000);
    let mut group = c.benchmark_group("append");
    for events in [1, 64, 1_000] {
        let dir = tempfile::tempdir().unwrap();
        let committed = Committed::default();
        let settings = raft::Settings {
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
        let log = runtime
            .block_on(RaftJournal::open(
                settings,
                std::sync::Arc::new(raft::NoPeers),
                committed.clone(),
                runtime.handle(),
            ))
            .unwrap();
        committed.wait_for(Index::ZERO);
        let mut template = reports(&state, &allocs, events, events).remove(0);
        let mut last = Index::ZERO;
        group.throughput(Throughput::Elements(events as u64));
        group.bench_function(BenchmarkId::from_parameter(events), |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for _ in 0..rounds {
                    (template.previous, template.index) = (last, last.next());
                    let batch = journal::encode(&template);
                    let start = Instant::now();
                    log.propose(term(&log), batch).unwrap();
                    committed.wait_for(last.next());
                    spent += start.elapsed();
                    last = last.next();
                }
                spent
            });
        });
        runtime.block_on(log.shutdown());
    }
    group.finish();
}

/// Events into rows, in place: reports about 10,000 allocations on 1,000 nodes.
fn fold(c: &mut Criterion) {
    let (state, allocs) = placed(1_000, 10_000);
    let mut group = c.benchmark_group("fold");
    for events in [1, 64, 1_000] {
        let batch = reports(&state, &allocs, events, events).remove(0);
        group.throughput(Throughput::Elements(events as u64));
        group.bench_function(BenchmarkId::from_parameter(events), |b| {
            b.iter_batched(
                || state.clone(),
                |mut state| state.apply(black_box(&batch)).map(|_| state),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Encoded batches of 1,000 events back into a state: one million reports about 100,000 allocations.
fn replay(c: &mut Criterion) {
    let (nodes, count, events) = if is_trial() { (20, 1_000, 10_000) } else { (2_000, 100_000, 1_000_000) };
    let (state, allocs) = placed(nodes, count);
    let log: Vec<_> = reports(&state, &allocs, events, 1_000).iter().map(journal::encode).collect();
    let mut group = c.benchmark_group("replay");
    group.sample_size(10).throughput(Throughput::Elements(events as u64));
    group.bench_function("1M", |b| {
        b.iter_batched(
            || state.clone(),
            |mut state| {
                for batch in &log {
                    state.apply(&batch.decode().unwrap()).unwrap();
                }
                state
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// A plan checked and folded: the verdict on placements, the end of the evaluation and its acknowledgement.
fn plan_commit(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan_commit");
    for count in [1, 64, 1_000] {
        let mut state = fleet(1_000);
        let id = with_job(&mut state, "web", count);
        let eval = state.evals.lookup(id).unwrap();
        let settlement = placement::schedule(&state, eval, 1, state.time).settlement;
        let command = Command::SettleEval(Box::new(settlement));
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            b.iter_batched(
                || state.clone(),
                |mut state: State| {
                    let (decision, _) = submit(&mut state, &command);
                    assert!(decision.verdict.is_some_and(|verdict| verdict.full));
                    state
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// From an evaluation to a complete plan: reconcile, feasibility, ranking, ids, names and metrics.
fn schedule(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule");
    let sizes: &[usize] = if is_trial() { &[100] } else { &[100, 1_000, 10_000] };
    for &nodes in sizes {
        let empty = fleet(nodes);
        for count in [1, 100, 1_000] {
            let mut state = empty.clone();
            let id = with_job(&mut state, "web", count);
            let now = Time(state.time.0 + 1);
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(format!("{nodes} nodes/{count}"), |b| {
                b.iter(|| {
                    let eval = state.evals.lookup(id).unwrap();
                    let settlement = placement::schedule(black_box(&state), eval, 7, now).settlement;
                    let placed: usize = settlement.plan.placed.iter().map(|group| group.ids.len()).sum();
                    assert_eq!(placed, count);
                    settlement
                });
            });
        }
    }
    group.finish();
}

fn placed(nodes: usize, allocs: usize) -> (State, Vec<model::AllocId>) {
    let mut state = fleet(nodes);
    let whole = rules::JOB_COUNT_MAX as usize;
    let counts = (0..allocs).step_by(whole).map(|from| whole.min(allocs - from));
    let of_job = |(nth, count)| with_placed_job(&mut state, &format!("web-{nth}"), count);
    let ids: Vec<model::AllocId> = counts.enumerate().flat_map(of_job).collect();
    assert_eq!(ids.len(), allocs, "the fleet holds the job");
    (state, ids)
}

fn term(log: &RaftJournal) -> Term {
    log.status().term
}
