//! A cluster that is recorded: what it has is the truth, and what its event stream says is only partly so.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::Rng;
use model::document::{Allocation, Deployment, Evaluation, Job, Namespace, Node};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Indexes that its stream remembers, as many as Nomad does.
const RING: usize = 100;

#[derive(Clone, Default)]
pub struct Tables {
    pub index: u64,
    /// Of the last change of each table: namespaces, nodes, jobs, evaluations, allocations, deployments.
    pub changed: [u64; 6],
    pub namespaces: BTreeMap<String, Namespace>,
    pub nodes: BTreeMap<String, Node>,
    /// All versions, oldest first.
    pub jobs: BTreeMap<String, Vec<Job>>,
    pub evals: BTreeMap<String, Evaluation>,
    pub allocs: BTreeMap<String, Allocation>,
    pub deployments: BTreeMap<String, Deployment>,
}

struct Content {
    tables: Tables,
    ring: VecDeque<(u64, Value)>,
    subscribers: Vec<mpsc::UnboundedSender<String>>,
    /// One that waits to be sent after its successor.
    held: Option<String>,
    /// How many of ten events are dropped, sent twice, or sent late.
    faults: u64,
    rng: Rng,
    reads: u64,
}

/// The cluster, and its HTTP API.
#[derive(Clone)]
pub struct Nomad {
    content: Arc<Mutex<Content>>,
    pub address: String,
}

type Params = Query<BTreeMap<String, String>>;

impl Nomad {
    pub async fn start(faults: u64) -> Nomad {
        let content = Content {
            tables: Tables { index: 1, ..Tables::default() },
            ring: VecDeque::new(),
            subscribers: Vec::new(),
            held: None,
            faults,
            rng: Rng::new(7),
            reads: 0,
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let nomad = Nomad { content: Arc::new(Mutex::new(content)), address };
        let router = Router::new()
            .route("/v1/namespaces", get(namespaces))
            .route("/v1/node/pools", get(pools))
            .route("/v1/nodes", get(nodes))
            .route("/v1/node/{id}", get(node))
            .route("/v1/jobs", get(jobs))
            .route("/v1/job/{id}/versions", get(versions))
            .route("/v1/evaluations", get(evals))
            .route("/v1/evaluation/{id}", get(eval))
            .route("/v1/allocations", get(allocs))
            .route("/v1/allocation/{id}", get(alloc))
            .route("/v1/deployments", get(deployments))
            .route("/v1/deployment/{id}", get(deployment))
            .route("/v1/event/stream", get(stream))
            .with_state(nomad.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        nomad
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    pub fn tables(&self) -> Tables {
        self.content().tables.clone()
    }

    /// Reads of single objects so far.
    pub fn reads(&self) -> u64 {
        self.content().reads
    }

    /// Changes something at the next index, and says so.
    pub fn change(&self, change: impl FnOnce(&mut Tables, u64) -> Vec<Value>) {
        let mut content = self.content();
        content.tables.index += 1;
        let index = content.tables.index;
        let events = change(&mut content.tables, index);
        if events.is_empty() {
            return;
        }
        let line = json!({ "Index": index, "Events": events });
        content.ring.push_back((index, line.clone()));
        while content.ring.len() > RING {
            content.ring.pop_front();
        }
        let Content { held, faults, rng, subscribers, .. } = &mut *content;
        let line = format!("{line}\n");
        let mut sent: Vec<String> = Vec::new();
        match rng.below(10) {
            fault if fault >= *faults => sent.push(line),
            0 | 3 | 6 => {}
            1 | 4 | 7 => sent.extend([line.clone(), line]),
            _ if held.is_none() => *held = Some(line),
            _ => sent.push(line),
        }
        if !sent.is_empty() {
            sent.extend(held.take());
        }
        for line in sent {
            subscribers.retain(|subscriber| subscriber.send(line.clone()).is_ok());
        }
    }

    /// Ends every stream.
    pub fn cut(&self) {
        self.content().subscribers.clear();
    }

    /// Somebody puts an older state in place of what is there.
    pub fn restore(&self, tables: Tables) {
        let mut content = self.content();
        content.tables = tables;
        content.ring.clear();
        content.subscribers.clear();
    }
}

pub fn event(topic: &str, index: u64, key: &str, namespace: &str, payload: &impl Serialize) -> Value {
    json!({
        "Topic": topic, "Type": "PlanResult", "Key": key, "Namespace": namespace, "Index": index,
        "Payload": { topic: payload },
    })
}

/// As Nomad shows an allocation in its stream: without its job.
pub fn alloc_event(index: u64, alloc: &Allocation) -> Value {
    event("Allocation", index, &alloc.id, &alloc.namespace, &Allocation { job: None, ..alloc.clone() })
}

fn page(params: &Params, all: Vec<(String, Value)>, changed: u64) -> Response {
    let from = params.get("next_token").cloned().unwrap_or_default();
    let most = params.get("per_page").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let mut rest = all.into_iter().filter(|(key, _)| *key >= from);
    let page: Vec<Value> = rest.by_ref().take(most).map(|(_, value)| value).collect();
    let next = rest.next().map(|(key, _)| key).unwrap_or_default();
    let headers = [("x-nomad-index", changed.max(1).to_string()), ("x-nomad-nexttoken", next)];
    (headers, axum::Json(Value::Array(page))).into_response()
}

fn one(found: Option<impl Serialize>) -> Response {
    match found {
        Some(found) => axum::Json(found).into_response(),
        None => (StatusCode::NOT_FOUND, "not found").into_response(),
    }
}

async fn namespaces(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let default = Namespace {
        name: "default".to_string(),
        description: "Default shared namespace".to_string(),
        ..Namespace::default()
    };
    let all = tables.namespaces.values().chain([&default]).map(|one| (one.name.clone(), json!(one)));
    let all: BTreeMap<String, Value> = all.collect();
    page(&params, all.into_iter().collect(), tables.changed[0])
}

async fn pools(params: Params) -> Response {
    let pools = ["all", "default"].map(|name| (name.to_string(), json!({ "Name": name })));
    page(&params, pools.into(), 1)
}

async fn nodes(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let all = tables.nodes.values().map(|node| {
        let stub = json!({ "ID": node.id, "Name": node.name, "Status": node.status, "ModifyIndex": node.modify_index });
        (node.id.clone(), stub)
    });
    page(&params, all.collect(), tables.changed[1])
}

async fn node(State(nomad): State<Nomad>, Path(id): Path<String>) -> Response {
    nomad.content().reads += 1;
    one(nomad.tables().nodes.get(&id))
}

async fn jobs(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let all = tables.jobs.iter().map(|(id, versions)| {
        let newest = versions.last().unwrap();
        (id.clone(), json!({ "ID": id, "Namespace": "default", "ModifyIndex": newest.modify_index }))
    });
    page(&params, all.collect(), tables.changed[2])
}

async fn versions(State(nomad): State<Nomad>, Path(id): Path<String>) -> Response {
    nomad.content().reads += 1;
    let tables = nomad.tables();
    one(tables.jobs.get(&id).map(|versions| json!({ "Versions": versions.iter().rev().collect::<Vec<_>>() })))
}

async fn evals(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let all = tables.evals.values().map(|one| (one.id.clone(), json!(one)));
    page(&params, all.collect(), tables.changed[3])
}

async fn eval(State(nomad): State<Nomad>, Path(id): Path<String>) -> Response {
    nomad.content().reads += 1;
    one(nomad.tables().evals.get(&id))
}

async fn allocs(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let all = tables.allocs.values().map(|one| {
        let version = one.job.as_ref().and_then(|job| job.version).unwrap_or_default();
        let stub = json!({
            "ID": one.id, "Namespace": one.namespace, "JobID": one.job_id, "JobVersion": version,
            "NodeID": one.node_id, "ClientStatus": one.client_status, "DesiredStatus": one.desired_status,
            "DesiredDescription": one.desired_description, "ClientDescription": one.client_description,
            "ModifyIndex": one.modify_index,
        });
        (one.id.clone(), stub)
    });
    page(&params, all.collect(), tables.changed[4])
}

async fn alloc(State(nomad): State<Nomad>, Path(id): Path<String>) -> Response {
    let mut content = nomad.content();
    content.reads += 1;
    one(content.tables.allocs.get(&id))
}

async fn deployments(State(nomad): State<Nomad>, params: Params) -> Response {
    let tables = nomad.tables();
    let all = tables.deployments.values().map(|one| (one.id.clone(), json!(one)));
    page(&params, all.collect(), tables.changed[5])
}

async fn deployment(State(nomad): State<Nomad>, Path(id): Path<String>) -> Response {
    nomad.content().reads += 1;
    one(nomad.tables().deployments.get(&id))
}

async fn stream(State(nomad): State<Nomad>, params: Params) -> Response {
    let from = params.get("index").and_then(|text| text.parse::<u64>().ok());
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut content = nomad.content();
    // The oldest that is kept and not older than what is asked for; without an index, what is new.
    let kept = content.ring.iter().filter(|(index, _)| from.is_some_and(|from| *index >= from));
    for (_, line) in kept {
        sender.send(format!("{line}\n")).unwrap();
    }
    content.subscribers.push(sender);
    let lines = futures_util::stream::unfold(receiver, |mut receiver| async {
        let line = receiver.recv().await?;
        Some((Ok::<Bytes, Infallible>(Bytes::from(line)), receiver))
    });
    Body::from_stream(lines).into_response()
}
