//! States that are made by the same commands and folds as the real ones: nodes, jobs, and what becomes of them.

use base::{Time, Uuid};
use model::command::RegisterJob;
use model::document::{Job, Node, input};
use model::event::{AllocReported, Event};
use model::{
    Actor, Batch, ClientStatus, Command, CommandRecord, Doc, LoggedEvent, NodeId, NodeStatus, Report,
    RequestId,
};
use rules::{Context, Decision, decide};
use serde_json::{Value, json};
use state::State;

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

/// The report of a node that the allocation has ended.
pub fn ended(alloc: &state::alloc::Alloc) -> Event {
    let (from, to) = (alloc.client, ClientStatus::Complete);
    let (description, report) = (String::new(), Doc::of(&Report::default()));
    AllocReported { alloc: alloc.id, node: alloc.node_id, from, to, description, report, health: None }.into()
}

/// Ready nodes in racks, and nothing on them.
pub fn racks(nodes: usize, racks: usize) -> State {
    let mut state = State::default();
    for number in 0..nodes {
        let mut document = node(number);
        document.meta.insert("rack".to_string(), format!("r{}", number % racks));
        submit(&mut state, &Command::RegisterNode { document: Box::new(document) });
        submit(&mut state, &Command::UpdateNodeStatus { node: node_id(number), claimed: NodeStatus::Ready });
    }
    state
}

/// A service of one group, changed by `with`.
pub fn service(name: &str, count: usize, with: Value) -> Job {
    let mut group = json!({
        "Name": "group", "Count": count,
        "EphemeralDisk": {"SizeMB": 300},
        "Tasks": [{"Name": "task", "Driver": "mock_driver", "Resources": {"CPU": 100, "MemoryMB": 64}}],
    });
    let changes = with.as_object().expect("changes are an object").clone();
    group.as_object_mut().expect("a group is an object").extend(changes);
    let job = json!({
        "ID": name, "Name": name, "Namespace": "default", "Type": "service", "Priority": 50, "NodePool": "default",
        "Datacenters": ["*"], "TaskGroups": [group],
    });
    input::from_value(job).expect("the document is well formed")
}

/// Even over racks.
pub fn spread() -> Value {
    json!({"Spreads": [{"Attribute": "${meta.rack}", "Weight": 100}]})
}
