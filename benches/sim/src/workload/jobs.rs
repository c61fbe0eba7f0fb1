//! Jobs of every type and policy.

use base::Rng;
use model::JobKey;
use model::document::{Job, input};
use serde_json::{Value, json};

use super::nodes::RACKS;
use super::volumes;

/// The mark in a job's `Meta` that makes it a register.
const MARK: &str = "value";

/// What a job is all its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Service,
    Batch,
    System,
    Sysbatch,
    /// Launches a batch job each minute.
    Periodic,
    /// Batch jobs are dispatched from it.
    Parameterized,
}

const KINDS: [Kind; 9] = [
    Kind::Service,
    Kind::Service,
    Kind::Service,
    Kind::Service,
    Kind::Batch,
    Kind::System,
    Kind::Sysbatch,
    Kind::Periodic,
    Kind::Parameterized,
];

impl Kind {
    /// Follows from the job's name, for it must not change.
    pub fn of(number: usize, seed: u64) -> Kind {
        KINDS[Rng::stream(seed ^ number as u64, "job").below(KINDS.len() as u64) as usize]
    }

    fn is_per_node(self) -> bool {
        matches!(self, Kind::System | Kind::Sysbatch)
    }

    fn job_type(self) -> &'static str {
        match self {
            Kind::Service => "service",
            Kind::Batch | Kind::Periodic | Kind::Parameterized => "batch",
            Kind::System => "system",
            Kind::Sysbatch => "sysbatch",
        }
    }
}

pub fn key(number: usize) -> JobKey {
    JobKey::new("default", &format!("job-{number}"))
}

/// The value of the register that the job is.
pub fn value_of(job: &Job) -> Option<String> {
    job.meta.get(MARK).cloned()
}

/// The group that every job has.
pub const FIRST_GROUP: &str = "g0";

/// A job as somebody might write it now.
pub fn draw(number: usize, seed: u64, value: &str, with_volumes: bool, rng: &mut Rng) -> Job {
    let kind = Kind::of(number, seed);
    let mut groups: Vec<Value> = (0..1 + rng.below(2)).map(|at| group(kind, at, rng)).collect();
    for group in groups.iter_mut().filter(|_| with_volumes) {
        if group["Volumes"].is_null() && rng.below(2) == 0 {
            volumes::mount(group, kind.is_per_node(), rng);
        }
    }
    let periodic = json!({
        "Enabled": true, "Spec": "* * * * *", "SpecType": "cron", "ProhibitOverlap": rng.below(2) == 0,
    });
    let constraints = match rng.below(4) {
        0 => {
            json!([{"LTarget": "${meta.rack}", "RTarget": format!("r{}", rng.below(RACKS)), "Operand": "="}])
        }
        _ => Value::Null,
    };
    let document = json!({
        "ID": key(number).id, "Name": key(number).id, "Namespace": "default", "Type": kind.job_type(),
        "Priority": 1 + rng.below(99), "Datacenters": ["*"], "NodePool": "default",
        "Meta": {MARK: value}, "Constraints": constraints, "TaskGroups": groups,
        "Periodic": if kind == Kind::Periodic { periodic } else { Value::Null },
        "ParameterizedJob": if kind == Kind::Parameterized { json!({"Payload": "optional"}) } else { Value::Null },
    });
    input::from_value(document).expect("the job is well formed")
}

fn group(kind: Kind, at: u64, rng: &mut Rng) -> Value {
    let per_node = kind.is_per_node();
    let count = if per_node { 1 } else { rng.below(6) };
    let volumes = match rng.below(5) {
        0 => {
            json!({"data": {"Name": "data", "Type": "host", "Source": super::nodes::VOLUME, "ReadOnly": true}})
        }
        _ => Value::Null,
    };
    let ports = match rng.below(4) {
        0 => json!([{"Mode": "host", "DynamicPorts": [{"Label": "web"}]}]),
        1 => json!([{"Mode": "host", "ReservedPorts": [{"Label": "admin", "Value": 8_000 + rng.below(3)}]}]),
        _ => Value::Null,
    };
    let (cpu, memory) = (20 + rng.below(5) * 60, 16 + rng.below(4) * 50);
    json!({
        "Name": format!("g{at}"), "Count": count, "Networks": ports, "Volumes": volumes,
        "Disconnect": if per_node { Value::Null } else { disconnect(rng) },
        "ReschedulePolicy": if per_node { Value::Null } else { reschedule(rng) },
        "RestartPolicy": {"Attempts": rng.below(3), "Interval": "60s", "Delay": "1s", "Mode": "fail"},
        "Update": if kind == Kind::Service && rng.below(2) == 0 { update(rng) } else { Value::Null },
        "Tasks": [{"Name": "t", "Driver": "none", "Resources": {"CPU": cpu, "MemoryMB": memory}}],
    })
}

/// How a new version is rolled out: with canaries or without, promoted by itself or by an operator.
fn update(rng: &mut Rng) -> Value {
    let canaries = rng.below(3);
    json!({
        "MaxParallel": 1 + rng.below(2), "Canary": canaries, "AutoPromote": canaries > 0 && rng.below(2) == 0,
        "AutoRevert": rng.below(2) == 0, "HealthCheck": "task_states", "MinHealthyTime": "5s",
        "HealthyDeadline": "60s", "ProgressDeadline": format!("{}s", 90 + rng.below(120)),
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
