//! Fleets, jobs and logs for benches: built through the same commands and folds as the real ones.

pub mod evaluations;
pub mod written;

use std::sync::Arc;
use std::time::Duration;

use base::Index;
use journal::{EncodedBatch, Sink};
pub use load::world::{batch, ended, job, node, node_id, register, submit};
use model::event::{AllocReported, Event};
use model::{AllocId, Batch, ClientStatus, Command, Doc, EvalId, JobKey, NodeStatus, Report};
use parking_lot::{Condvar, Mutex};
use state::State;

/// True under `cargo bench -- --test`, which only sees that benches run: so little of everything is enough.
pub fn is_trial() -> bool {
    std::env::args().any(|word| word == "--test")
}

/// Memory of this process, in bytes.
pub fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// How long most of them took, and all but one in a hundred.
pub fn percentiles(took: &mut [Duration]) -> String {
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    format!("p50 {:.1?} p99 {:.1?}", at(0.50), at(0.99))
}

/// A state of ready nodes and nothing else.
pub fn fleet(nodes: usize) -> State {
    let mut state = State::default();
    for number in 0..nodes {
        submit(&mut state, &Command::RegisterNode { document: Box::new(node(number)) });
        submit(&mut state, &Command::UpdateNodeStatus { node: node_id(number), claimed: NodeStatus::Ready });
    }
    state
}

/// Registers a job and returns its evaluation.
pub fn with_job(state: &mut State, name: &str, count: usize) -> EvalId {
    let (decision, _) = submit(state, &register(job(name, count)));
    decision.reply().evals[0]
}

/// Registers a job, schedules it, and returns its allocations.
pub fn with_placed_job(state: &mut State, name: &str, count: usize) -> Vec<AllocId> {
    let id = with_job(state, name, count);
    let eval = state.evals.lookup(id).expect("the evaluation was just created");
    // Another seed for each job: ids follow from it.
    let settlement = placement::schedule(state, eval, state.index.0, state.time).settlement;
    submit(state, &Command::SettleEval(Box::new(settlement)));
    let job = state.jobs.lookup(&JobKey::new("default", name)).expect("the job was just registered");
    job.allocs.iter().map(|row| state.allocs.get(*row).id).collect()
}

/// Reports of allocations that change their status to and fro, `per_batch` to a batch.
pub fn reports(state: &State, allocs: &[AllocId], events: usize, per_batch: usize) -> Vec<Batch> {
    let report = Doc::of(&Report::default());
    let mut batches = Vec::new();
    let (mut state, mut sent) = (state.clone(), 0);
    while sent < events {
        let events = (sent..(sent + per_batch).min(events)).map(|number| {
            let alloc = allocs[number % allocs.len()];
            let (from, to) = match number / allocs.len() % 2 {
                0 => (ClientStatus::Pending, ClientStatus::Running),
                _ => (ClientStatus::Running, ClientStatus::Pending),
            };
            let node = state.allocs.lookup(alloc).expect("the allocation was placed").node_id;
            let description = String::new();
            AllocReported { alloc, node, from, to, description, report: report.clone(), health: None }.into()
        });
        let events: Vec<Event> = events.collect();
        sent += events.len();
        let batch = batch(&state, state.time, 16, events);
        state.apply(&batch).expect("the batch was decided on this state");
        batches.push(batch);
    }
    batches
}

/// Tells how far a log has committed, to whoever waits for it.
#[derive(Clone, Default)]
pub struct Committed(Arc<(Mutex<(Index, bool)>, Condvar)>);

impl Committed {
    pub fn wait_for(&self, index: Index) {
        let mut seen = self.0.0.lock();
        while seen.0 < index || !seen.1 {
            self.0.1.wait(&mut seen);
        }
    }
}

impl Sink for Committed {
    fn committed(&mut self, batch: EncodedBatch) {
        self.0.0.lock().0 = batch.index();
        self.0.1.notify_all();
    }

    fn restored(&mut self, image: model::Image) {
        self.0.0.lock().0 = image.index;
        self.0.1.notify_all();
    }

    fn leading(&mut self, _: base::Term) {
        self.0.0.lock().1 = true;
        self.0.1.notify_all();
    }

    fn following(&mut self, _: Option<u64>) {}

    fn halted(&mut self, why: String) {
        panic!("the log under test stopped: {why}");
    }
}
