//! What happens in the cluster that is recorded, and how a recording is compared with it.

use std::collections::BTreeMap;

use base::{Rng, Uuid};
use model::document::{
    AllocatedResources, AllocatedTaskResources, Allocation, Deployment, DeploymentState, Evaluation, Job,
    Namespace, Node, PortMapping, Task, TaskEvent, TaskGroup, TaskState,
};
use serde_json::{Value, json};
use state::State;

use crate::nomad::{Nomad, Tables, alloc_event, event};

/// When indexes happened: one second each.
fn time(index: u64) -> i64 {
    1_700_000_000_000_000_000 + index as i64 * 1_000_000_000
}

fn one<'a, T>(all: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    (!all.is_empty()).then(|| &all[rng.below(all.len() as u64) as usize])
}

/// Something happens.
pub fn change(nomad: &Nomad, rng: &mut Rng) {
    nomad.change(|tables, index| match rng.below(16) {
        0 => node_joins(tables, index, rng),
        1 => node_changes(tables, index, rng),
        2 | 3 => job_registers(tables, index, rng),
        4 => job_stops(tables, index, rng),
        5 if rng.below(3) == 0 => job_is_purged(tables, index, rng),
        6..9 => alloc_is_placed(tables, index, rng),
        9..12 => alloc_reports(tables, index, rng),
        12 => is_collected(tables, index, rng),
        13 => deployment_moves(tables, index, rng),
        14 => eval_moves(tables, index, rng),
        15 => namespace_changes(tables, index, rng),
        _ => Vec::new(),
    });
}

/// A job with so many allocations on one node.
pub fn many(nomad: &Nomad, count: u64) {
    let mut rng = Rng::new(count);
    nomad.change(|tables, index| node_joins(tables, index, &mut rng));
    nomad.change(|tables, index| job_registers(tables, index, &mut rng));
    nomad.change(|tables, index| {
        let placed = (0..count).map(|_| place(tables, index, &mut rng).expect("there is a job and a node"));
        let placed: Vec<Allocation> = placed.collect();
        placed.iter().map(|alloc| alloc_event(index, alloc)).collect()
    });
}

/// All of them, at one index.
pub fn all_fail(nomad: &Nomad) {
    nomad.change(|tables, index| {
        let allocs = tables.allocs.values_mut();
        let events = allocs.map(|alloc| {
            report(alloc, "failed", index);
            alloc_event(index, alloc)
        });
        let events = events.collect();
        tables.changed[4] = index;
        events
    });
}

fn node_joins(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let node = Node {
        id: rng.uuid().to_string(),
        name: format!("node-{index}"),
        datacenter: "dc1".to_string(),
        status: "ready".to_string(),
        scheduling_eligibility: "eligible".to_string(),
        status_updated_at: time(index) / 1_000_000_000,
        attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
        create_index: index,
        modify_index: index,
        ..Node::default()
    };
    tables.changed[1] = index;
    let events = vec![event("Node", index, &node.id, "", &node)];
    tables.nodes.insert(node.id.clone(), node);
    events
}

fn node_changes(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let ids: Vec<String> = tables.nodes.keys().cloned().collect();
    let Some(id) = one(&ids, rng) else { return Vec::new() };
    tables.changed[1] = index;
    let is_used = tables.allocs.values().any(|alloc| alloc.node_id == *id);
    if !is_used && rng.below(3) == 0 {
        let node = tables.nodes.remove(id).unwrap();
        return vec![event("Node", index, id, "", &node)];
    }
    let node = tables.nodes.get_mut(id).unwrap();
    match rng.below(3) {
        0 => node.status = one(&["ready", "down", "disconnected"], rng).unwrap().to_string(),
        1 => {
            let words = ["eligible", "ineligible"];
            node.scheduling_eligibility = one(&words, rng).unwrap().to_string();
        }
        _ => drop(node.meta.insert("changed".to_string(), index.to_string())),
    }
    (node.modify_index, node.status_updated_at) = (index, time(index) / 1_000_000_000);
    vec![event("Node", index, id, "", node)]
}

fn job_registers(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let id = format!("job-{}", rng.below(8));
    let before = tables.jobs.get(&id).and_then(|versions| versions.last());
    let task = Task { name: "server".to_string(), driver: "docker".to_string(), ..Task::default() };
    let group = TaskGroup {
        name: Some("web".to_string()),
        count: Some(rng.below(9) as i64),
        tasks: vec![task].into(),
        ..TaskGroup::default()
    };
    let job = Job {
        id: Some(id.clone()),
        name: Some(id.clone()),
        namespace: Some("default".to_string()),
        kind: Some("service".to_string()),
        priority: Some(1 + rng.below(99) as i64),
        task_groups: vec![group].into(),
        stop: Some(false),
        version: Some(before.map_or(0, |before| before.version.unwrap() + 1)),
        create_index: Some(before.map_or(index, |before| before.create_index.unwrap())),
        modify_index: Some(index),
        job_modify_index: Some(index),
        submit_time: Some(time(index)),
        status: Some("pending".to_string()),
        ..Job::default()
    };
    add_version(tables, index, job)
}

fn job_stops(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let ids: Vec<String> = tables.jobs.keys().cloned().collect();
    let Some(id) = one(&ids, rng) else { return Vec::new() };
    let before = tables.jobs[id].last().unwrap().clone();
    let version = before.version.map(|version| version + 1);
    add_version(tables, index, Job { stop: Some(true), version, modify_index: Some(index), ..before })
}

fn add_version(tables: &mut Tables, index: u64, job: Job) -> Vec<Value> {
    tables.changed[2] = index;
    let id = job.id.clone().unwrap();
    let events = vec![event("Job", index, &id, "default", &job)];
    let versions = tables.jobs.entry(id).or_default();
    versions.push(job);
    let surplus = versions.len().saturating_sub(6);
    versions.drain(..surplus);
    events
}

/// As in Nomad its allocations are stopped, and stay for a while.
fn job_is_purged(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let ids: Vec<String> = tables.jobs.keys().cloned().collect();
    let Some(id) = one(&ids, rng) else { return Vec::new() };
    let job = tables.jobs.remove(id).unwrap().pop().unwrap();
    tables.changed = [tables.changed[0], tables.changed[1], index, index, index, index];
    tables.evals.retain(|_, eval| eval.job_id != *id);
    tables.deployments.retain(|_, deployment| deployment.job_id != *id);
    let mut events = vec![event("Job", index, id, "default", &job)];
    for alloc in tables.allocs.values_mut().filter(|alloc| alloc.job_id == *id) {
        alloc.desired_status = "stop".to_string();
        alloc.desired_description = "alloc not needed due to job update".to_string();
        (alloc.modify_index, alloc.modify_time) = (index, time(index));
        events.push(alloc_event(index, alloc));
    }
    events
}

fn alloc_is_placed(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let Some(alloc) = place(tables, index, rng) else { return Vec::new() };
    let eval = Evaluation {
        id: alloc.eval_id.clone(),
        namespace: "default".to_string(),
        job_id: alloc.job_id.clone(),
        kind: "service".to_string(),
        priority: 50,
        triggered_by: "job-register".to_string(),
        status: "complete".to_string(),
        queued_allocations: [("web".to_string(), 0)].into_iter().collect(),
        create_index: index,
        modify_index: index,
        modify_time: time(index),
        ..Evaluation::default()
    };
    let mut events = vec![event("Evaluation", index, &eval.id, "default", &eval), alloc_event(index, &alloc)];
    tables.changed[3] = index;
    tables.evals.insert(eval.id.clone(), eval);
    if let Some(deployment) = tables.deployments.get_mut(&alloc.deployment_id) {
        let group = deployment.task_groups.get_mut("web").unwrap();
        group.placed_allocs += 1;
        deployment.modify_index = index;
        tables.changed[5] = index;
        events.push(event("Deployment", index, &deployment.id, "default", deployment));
    }
    events
}

fn place(tables: &mut Tables, index: u64, rng: &mut Rng) -> Option<Allocation> {
    let wanted = tables.jobs.values().filter_map(|versions| versions.last());
    let wanted: Vec<Job> = wanted.filter(|job| job.stop != Some(true)).cloned().collect();
    let (job, nodes) = (one(&wanted, rng)?, tables.nodes.values().cloned().collect::<Vec<_>>());
    let (node, number) = (one(&nodes, rng)?, rng.below(9));
    let id = job.id.clone().unwrap();
    let of_job = |deployment: &&Deployment| deployment.job_id == id && deployment.status == "running";
    let deployment = tables.deployments.values().find(of_job).map(|deployment| deployment.id.clone());
    let port =
        PortMapping { label: "http".to_string(), value: 20_000, to: 80, host_ip: "10.0.0.1".to_string() };
    let mut resources = AllocatedResources::default();
    resources.tasks.insert("server".to_string(), AllocatedTaskResources::default());
    resources.shared.ports = vec![port].into();
    let alloc = Allocation {
        id: rng.uuid().to_string(),
        namespace: "default".to_string(),
        eval_id: rng.uuid().to_string(),
        name: format!("{id}.web[{number}]"),
        node_id: node.id.clone(),
        job_id: id,
        job: Some(job.clone()),
        task_group: "web".to_string(),
        allocated_resources: Some(resources),
        desired_status: "run".to_string(),
        client_status: "pending".to_string(),
        deployment_id: deployment.unwrap_or_default(),
        create_index: index,
        modify_index: index,
        create_time: time(index),
        modify_time: time(index),
        ..Allocation::default()
    };
    tables.changed[4] = index;
    tables.allocs.insert(alloc.id.clone(), alloc.clone());
    Some(alloc)
}

fn alloc_reports(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let live = tables.allocs.values().filter(|alloc| matches!(&*alloc.client_status, "pending" | "running"));
    let live: Vec<String> = live.map(|alloc| alloc.id.clone()).collect();
    let Some(id) = one(&live, rng) else { return Vec::new() };
    let alloc = tables.allocs.get_mut(id).unwrap();
    let client = one(&["running", "running", "complete", "failed", "lost", "unknown"], rng).unwrap();
    report(alloc, client, index);
    tables.changed[4] = index;
    vec![alloc_event(index, alloc)]
}

fn report(alloc: &mut Allocation, client: &str, index: u64) {
    alloc.client_status = client.to_string();
    alloc.client_description = format!("Tasks are {client}");
    if client == "unknown" {
        alloc.client_description = "alloc is unknown since its node is disconnected".to_string();
    }
    let event = TaskEvent { kind: "Started".to_string(), time: time(index), ..TaskEvent::default() };
    let state = if client == "running" { "running" } else { "dead" };
    let state = TaskState {
        state: state.to_string(),
        failed: client == "failed",
        events: vec![event].into(),
        ..TaskState::default()
    };
    alloc.task_states.insert("server".to_string(), state);
    (alloc.modify_index, alloc.modify_time) = (index, time(index));
}

/// Nomad's collector says nothing of allocations and evaluations in its stream.
fn is_collected(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let ended = |alloc: &&Allocation| matches!(&*alloc.client_status, "complete" | "failed" | "lost");
    let ids: Vec<String> = tables.allocs.values().filter(ended).map(|alloc| alloc.id.clone()).collect();
    if let Some(id) = one(&ids, rng) {
        let alloc = tables.allocs.remove(id).unwrap();
        tables.evals.remove(&alloc.eval_id);
        (tables.changed[3], tables.changed[4]) = (index, index);
    }
    Vec::new()
}

fn deployment_moves(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    tables.changed[5] = index;
    let ids: Vec<String> = tables.deployments.keys().cloned().collect();
    if let Some(id) = one(&ids, rng).filter(|_| rng.below(2) == 0) {
        let deployment = tables.deployments.get_mut(id).unwrap();
        if deployment.status == "running" {
            deployment.status = one(&["running", "successful", "failed"], rng).unwrap().to_string();
            deployment.status_description = format!("Deployment is {}", deployment.status);
            let group = deployment.task_groups.get_mut("web").unwrap();
            (group.healthy_allocs, group.promoted) = (rng.below(5) as i64, true);
            (deployment.modify_index, deployment.modify_time) = (index, time(index));
        }
        return vec![event("Deployment", index, id, "default", deployment)];
    }
    let jobs: Vec<Job> = tables.jobs.values().filter_map(|versions| versions.last()).cloned().collect();
    let Some(job) = one(&jobs, rng) else { return Vec::new() };
    let group = DeploymentState { desired_total: 3, desired_canaries: 1, ..DeploymentState::default() };
    let deployment = Deployment {
        id: rng.uuid().to_string(),
        namespace: "default".to_string(),
        job_id: job.id.clone().unwrap(),
        job_version: job.version.unwrap(),
        task_groups: [("web".to_string(), group)].into_iter().collect(),
        status: "running".to_string(),
        status_description: "Deployment is running".to_string(),
        create_index: index,
        modify_index: index,
        modify_time: time(index),
        ..Deployment::default()
    };
    let events = vec![event("Deployment", index, &deployment.id, "default", &deployment)];
    tables.deployments.insert(deployment.id.clone(), deployment);
    events
}

fn eval_moves(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    tables.changed[3] = index;
    let open = tables.evals.values_mut().find(|eval| matches!(&*eval.status, "pending" | "blocked"));
    if let Some(eval) = open {
        eval.status = one(&["complete", "canceled", "failed", "blocked"], rng).unwrap().to_string();
        eval.status_description = format!("now {}", eval.status);
        (eval.modify_index, eval.modify_time) = (index, time(index));
        return vec![event("Evaluation", index, &eval.id, "default", eval)];
    }
    let ids: Vec<String> = tables.jobs.keys().cloned().collect();
    let Some(job) = one(&ids, rng) else { return Vec::new() };
    let eval = Evaluation {
        id: rng.uuid().to_string(),
        namespace: "default".to_string(),
        job_id: job.clone(),
        kind: "service".to_string(),
        priority: 50,
        triggered_by: "node-update".to_string(),
        status: "pending".to_string(),
        create_index: index,
        modify_index: index,
        modify_time: time(index),
        ..Evaluation::default()
    };
    let events = vec![event("Evaluation", index, &eval.id, "default", &eval)];
    tables.evals.insert(eval.id.clone(), eval);
    events
}

/// Nomad's stream has no such topic.
fn namespace_changes(tables: &mut Tables, index: u64, rng: &mut Rng) -> Vec<Value> {
    let name = format!("team-{}", rng.below(4));
    tables.changed[0] = index;
    if tables.namespaces.remove(&name).is_none() {
        let description = format!("since {index}");
        let namespace =
            Namespace { name: name.clone(), description, modify_index: index, ..Namespace::default() };
        tables.namespaces.insert(name, namespace);
    }
    Vec::new()
}

/// Where a recording differs from the cluster: the first few lines; empty when it does not.
pub fn difference(tables: &Tables, state: &State) -> String {
    let (truth, recorded) = (truth(tables), recorded(state));
    let keys = truth.keys().chain(recorded.keys().filter(|key| !truth.contains_key(*key)));
    let differing = keys.filter(|key| truth.get(*key) != recorded.get(*key));
    let line = |key: &String| format!("\n{key}: {:?}, recorded {:?}", truth.get(key), recorded.get(key));
    differing.take(3).map(line).collect()
}

/// What has ended of a job that was purged is not kept, and neither is what was placed of a version that is forgotten.
fn truth(tables: &Tables) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for node in tables.nodes.values() {
        all.insert(format!("node {}", node.id), of_node(node));
    }
    for (id, versions) in &tables.jobs {
        all.insert(format!("job {id}"), of_job(versions.last().unwrap()));
    }
    for eval in tables.evals.values() {
        all.insert(format!("eval {}", eval.id), of_eval(eval));
    }
    for alloc in tables.allocs.values() {
        let of_now = tables.jobs.get(&alloc.job_id).is_some_and(|versions| {
            versions.iter().any(|job| {
                let embedded = alloc.job.as_ref().unwrap();
                (job.version, job.create_index) == (embedded.version, embedded.create_index)
            })
        });
        if of_now {
            all.insert(format!("alloc {}", alloc.id), of_alloc(alloc));
        }
    }
    for deployment in tables.deployments.values() {
        let versions = tables.jobs.get(&deployment.job_id);
        if versions.is_some_and(|all| all.iter().any(|job| job.version == Some(deployment.job_version))) {
            all.insert(format!("deployment {}", deployment.id), of_deployment(deployment));
        }
    }
    for namespace in tables.namespaces.values() {
        all.insert(format!("namespace {}", namespace.name), json!(namespace.description));
    }
    all
}

/// Of allocations and deployments those of versions that the cluster remembers too.
fn recorded(state: &State) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for row in state.nodes.rows() {
        let node = state::node::document(&state.nodes, row);
        all.insert(format!("node {}", node.id), of_node(&node));
    }
    for (_, job) in state.jobs.iter() {
        all.insert(format!("job {}", job.key.id), of_job(&state::job::document(job, job.current())));
    }
    for (_, eval) in state.evals.iter() {
        let eval = state::eval::document(state, eval);
        all.insert(format!("eval {}", eval.id), of_eval(&eval));
    }
    for (_, alloc) in state.allocs.iter() {
        let owner = state.jobs.get(alloc.job);
        if !owner.purged && owner.version(alloc.version.version).is_some() {
            all.insert(format!("alloc {}", alloc.id), of_alloc(&state::alloc::document(state, alloc)));
        }
    }
    for (_, deployment) in state.deployments.iter() {
        if state.jobs.get(deployment.job).version(deployment.version).is_some() {
            let deployment = state::deployment::document(state, deployment);
            all.insert(format!("deployment {}", deployment.id), of_deployment(&deployment));
        }
    }
    for name in state.namespaces.names().into_iter().filter(|name| *name != "default") {
        let namespace = state::namespace::document(&state.namespaces, name).unwrap();
        all.insert(format!("namespace {name}"), json!(namespace.description));
    }
    all
}

fn of_node(node: &Node) -> Value {
    json!([node.name, node.status, node.scheduling_eligibility, node.datacenter, node.meta, node.attributes])
}

fn of_job(job: &Job) -> Value {
    json!([job.version, job.stop, job.priority, job.kind, job.task_groups])
}

fn of_eval(eval: &Evaluation) -> Value {
    json!([eval.job_id, eval.status, eval.status_description, eval.triggered_by, eval.queued_allocations])
}

fn of_alloc(alloc: &Allocation) -> Value {
    let version = alloc.job.as_ref().and_then(|job| job.version);
    let (desired, client) = (&alloc.desired_status, &alloc.client_status);
    let ports = alloc.allocated_resources.as_ref().map(|resources| &resources.shared.ports);
    json!([
        [alloc.job_id, alloc.node_id, alloc.eval_id, alloc.name, alloc.task_group, version],
        [desired, alloc.desired_description, client, alloc.client_description, alloc.deployment_id],
        [alloc.task_states, ports],
    ])
}

fn of_deployment(deployment: &Deployment) -> Value {
    json!([deployment.job_id, deployment.job_version, deployment.status, deployment.task_groups])
}

#[test]
fn a_difference_is_found() {
    let mut tables = Tables::default();
    assert_eq!(difference(&tables, &State::default()), "");
    let id = Uuid::from(7).to_string();
    tables.nodes.insert(id.clone(), Node { id: id.clone(), ..Node::default() });
    assert!(difference(&tables, &State::default()).contains(&id));
}
