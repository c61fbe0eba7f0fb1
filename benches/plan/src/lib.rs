//! Fleets, jobs and logs for benches: built through the same commands and folds as the real ones.

pub mod evaluations;

use std::sync::Arc;

use base::{Index, Time, Uuid};
use journal::{EncodedBatch, Sink};
use model::command::RegisterJob;
use model::document::{Job, Node, input};
use model::event::{AllocReported, Event};
use model::{
    Actor, AllocId, Batch, ClientStatus, Command, CommandRecord, Doc, EvalId, JobKey, LoggedEvent, NodeId,
    NodeStatus, Report, RequestId,
};
use parking_lot::{Condvar, Mutex};
use rules::{Context, Decision, decide};
use state::State;

/// True under `cargo bench -- --test`, which only sees that benches run: so little of everything is enough.
pub fn is_trial() -> bool {
    std::env::args().any(|word| word == "--test")
}

/// Decides a command and folds what it leads to, as one batch.
///
/// # Panics
/// If the command is refused: a bench asks only for what is possible.
pub fn submit(state: &mut State, command: &Command) -> (Decision, Batch) {
    let index = state.index.next();
    let time = Time::from_secs(1_000_000).plus(base::Duration(index.0 as i64)).max(state.time);
    let mut ctx = Context::new(index, time, index.0);
    let decision =
        decide(state, &mut ctx, &Actor::ANONYMOUS, command).expect("a bench asks for what is possible");
    let batch = batch(state, time, command.kind(), decision.events.clone());
    if !batch.events.is_empty() {
        state.apply(&batch).expect("the batch was decided on this state");
    }
    (decision, batch)
}

/// One command's events as the next batch.
pub fn batch(state: &State, time: Time, kind: u16, events: Vec<Event>) -> Batch {
    let record = CommandRecord { request: RequestId::default(), kind, actor: Actor::ANONYMOUS };
    let events = events.into_iter().map(|event| LoggedEvent { command: 0, event }).collect();
    Batch { commands: vec![record], events, ..state.next_batch(time, Uuid::NIL) }
}

pub fn node_id(number: usize) -> NodeId {
    // Spread like the random ids of real nodes, so that no shard of a map holds them all.
    let mixed = base::Rng::new(number as u64).uuid();
    NodeId(mixed)
}

/// A node of 25 racks, with 4 GHz of each of 8 cores, 32 GiB of memory and 400 GB of disk.
pub fn node(number: usize) -> Node {
    let document = serde_json::json!({
        "ID": node_id(number).to_string(),
        "SecretID": "secret",
        "Name": format!("node-{number}"),
        "Datacenter": "dc1",
        "Attributes": {"kernel.name": "linux", "cpu.arch": "amd64", "driver.raw_exec": "1", "driver.mock_driver": "1"},
        "Meta": {"rack": format!("r{}", number % 25)},
        "Drivers": {"mock_driver": {"Detected": true, "Healthy": true}},
        "NodeResources": {
            "Cpu": {"CpuShares": 32_000, "TotalCpuCores": 8},
            "Memory": {"MemoryMB": 32_768},
            "Disk": {"DiskMB": 400_000},
            "MinDynamicPort": 20_000, "MaxDynamicPort": 32_000,
            "Networks": [{"Device": "eth0", "IP": "10.0.0.1", "CIDR": "10.0.0.1/32", "Mode": "host", "MBits": 1_000}],
        },
    });
    input::from_value(document).expect("the document is well formed")
}

/// A job of one group with one task of 100 MHz and 64 MiB.
pub fn job(name: &str, count: usize) -> Job {
    let document = serde_json::json!({
        "ID": name, "Name": name, "Namespace": "default", "Type": "service", "Priority": 50, "NodePool": "default",
        "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "group", "Count": count,
            "EphemeralDisk": {"SizeMB": 300},
            "Tasks": [{"Name": "task", "Driver": "mock_driver", "Resources": {"CPU": 100, "MemoryMB": 64}}],
        }],
    });
    input::from_value(document).expect("the document is well formed")
}

pub fn register(job: Job) -> Command {
    Command::RegisterJob(Box::new(RegisterJob::new(job)))
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

/// The report of a node that the allocation has ended.
pub fn ended(alloc: &state::alloc::Alloc) -> Event {
    let (from, to) = (alloc.client, ClientStatus::Complete);
    let (description, report) = (String::new(), Doc::of(&Report::default()));
    AllocReported { alloc: alloc.id, node: alloc.node_id, from, to, description, report, health: None }.into()
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
