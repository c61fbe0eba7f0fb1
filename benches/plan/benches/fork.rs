//! `cargo bench -p plan-bench --bench fork -- [nodes] [allocations]`: what it takes to open a fork, and what it holds on to.
//!
//! The workload: ready nodes, and jobs of 100 allocations that run on them. A fork
//! is opened without a change, with one node drained, and with a job of 100 allocations; each is then kept. Memory is that of the
//! process, before and after.

use std::sync::Arc;
use std::time::Instant;

use control::whatif::{Change, KeptFork, Question, Until};
use load::world::{job, node_id};
use model::command::RegisterJob;
use plan_bench::{fleet, is_trial, reports, resident, with_placed_job};
use state::State;

/// Allocations of one job.
const PER_JOB: usize = 100;

/// Forks that are kept of each kind.
const KEPT: usize = 4;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let (nodes, allocations) = match numbers[..] {
        [nodes, allocations] => (nodes, allocations),
        _ if is_trial() => (100, 1_000),
        _ => (10_000, 1_000_000),
    };
    let empty = resident();
    let began = Instant::now();
    let mut state = fleet(nodes);
    for number in 0..allocations / PER_JOB {
        let allocs = with_placed_job(&mut state, &format!("job-{number}"), PER_JOB);
        for batch in reports(&state, &allocs, allocs.len(), PER_JOB) {
            state.apply(&batch).expect("the batch was decided on this state");
        }
    }
    let placed = state.allocs.len();
    let whole = resident().saturating_sub(empty);
    println!("{nodes} nodes, {placed} allocations: {} MiB, made in {:.1?}", whole >> 20, began.elapsed());
    let state = Arc::new(state);
    let new_job = RegisterJob::new(job("new", PER_JOB));
    measure(&state, whole, "nothing changed", Vec::new);
    measure(&state, whole, "a node drained", || vec![Change::Drain(node_id(nodes / 2))]);
    measure(&state, whole, "a job of 100", || vec![Change::Job(Box::new(new_job.clone()))]);
}

fn measure(state: &Arc<State>, whole: usize, what: &str, changes: impl Fn() -> Vec<Change>) {
    let before = resident();
    let (mut kept, mut times) = (Vec::new(), Vec::new());
    for _ in 0..KEPT {
        let question =
            Question { changes: changes(), until: Until::Quiet, now: state.time, job_count_max: i64::MAX };
        let began = Instant::now();
        kept.push(KeptFork::open(state, &question, &|| true).expect("the changes are possible"));
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let more = resident().saturating_sub(before) / KEPT;
    let (median, result) = (times[KEPT / 2], kept[0].result());
    let percent = more as f64 * 100.0 / whole.max(1) as f64;
    println!(
        "{what}: {median:.1?} ({} steps), {} KiB more for each that is kept: {percent:.2} %",
        result.steps,
        more >> 10
    );
}
