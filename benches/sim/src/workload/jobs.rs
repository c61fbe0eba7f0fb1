//! Jobs of every type and policy.

use base::Rng;
use model::JobKey;
use model::document::{Job, input};
use serde_json::{Value, json};

use super::nodes::RACKS;

/// The mark in a job's `Meta` that makes it a register.
const MARK: &str = "value";

const KINDS: [&str; 6] = ["service", "service", "service", "batch", "system", "sysbatch"];

pub fn key(number: usize) -> JobKey {
    JobKey::new("default", &format!("job-{number}"))
}

/// The value of the register that the job is.
pub fn value_of(job: &Job) -> Option<String> {
    job.meta.get(MARK).cloned()
}

/// A job as somebody might write it now. Its type follows from its name, for it must not change.
pub fn draw(number: usize, seed: u64, value: &str, rng: &mut Rng) -> Job {
    let kind = KINDS[Rng::stream(seed ^ number as u64, "job").below(KINDS.len() as u64) as usize];
    let groups: Vec<Value> = (0..1 + rng.below(2)).map(|at| group(kind, at, rng)).collect();
    let constraints = match rng.below(4) {
        0 => {
            json!([{"LTarget": "${meta.rack}", "RTarget": format!("r{}", rng.below(RACKS)), "Operand": "="}])
        }
        _ => Value::Null,
    };
    let document = json!({
        "ID": key(number).id, "Name": key(number).id, "Namespace": "default", "Type": kind,
        "Priority": 1 + rng.below(99), "Datacenters": ["*"], "NodePool": "default",
        "Meta": {MARK: value}, "Constraints": constraints, "TaskGroups": groups,
    });
    input::from_value(document).expect("the job is well formed")
}

fn group(kind: &str, at: u64, rng: &mut Rng) -> Value {
    let per_node = matches!(kind, "system" | "sysbatch");
    let count = if per_node { 1 } else { rng.below(6) };
    let ports = match rng.below(4) {
        0 => json!([{"Mode": "host", "DynamicPorts": [{"Label": "web"}]}]),
        1 => json!([{"Mode": "host", "ReservedPorts": [{"Label": "admin", "Value": 8_000 + rng.below(3)}]}]),
        _ => Value::Null,
    };
    let (cpu, memory) = (20 + rng.below(5) * 60, 16 + rng.below(4) * 50);
    json!({
        "Name": format!("g{at}"), "Count": count, "Networks": ports,
        "Disconnect": if per_node { Value::Null } else { disconnect(rng) },
        "ReschedulePolicy": if per_node { Value::Null } else { reschedule(rng) },
        "RestartPolicy": {"Attempts": rng.below(3), "Interval": "60s", "Delay": "1s", "Mode": "fail"},
        "Update": if kind == "service" && rng.below(3) == 0 {
            json!({"MaxParallel": 1 + rng.below(2), "MinHealthyTime": "5s", "ProgressDeadline": "300s"})
        } else {
            Value::Null
        },
        "Tasks": [{"Name": "t", "Driver": "none", "Resources": {"CPU": cpu, "MemoryMB": memory}}],
    })
}

fn disconnect(rng: &mut Rng) -> Value {
    let strategies = ["best_score", "keep_original", "keep_replacement", "longest_running"];
    match rng.below(2) {
        0 => Value::Null,
        _ => json!({
            "LostAfter": format!("{}s", 20 + rng.below(120)),
            "Replace": rng.below(2) == 0,
            "Reconcile": strategies[rng.below(4) as usize],
        }),
    }
}

fn reschedule(rng: &mut Rng) -> Value {
    match rng.below(3) {
        0 => {
            json!({"Attempts": rng.below(3), "Interval": "600s", "Delay": "5s", "DelayFunction": "constant"})
        }
        1 => json!({"Unlimited": true, "Delay": "5s", "DelayFunction": "exponential", "MaxDelay": "40s"}),
        _ => json!({"Unlimited": true, "Delay": "0s", "DelayFunction": "constant"}),
    }
}
