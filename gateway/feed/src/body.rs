//! An event as Nomad's stream shows it, with the row as it was after the batch.

use api::{ServiceRegistration, VariableMetadata};
use base::Index;
use bytes::Bytes;
use model::document::{Allocation, Deployment, Evaluation, Job, Node, NodePool};
use model::{JobKey, VariableKey};
use serde::Serialize;
use serde_json::{Map, Value, json};
use state::State;

use super::access::{self, AccessDocument};
use super::entries::{Entry, Object, Row, metadata};
use super::gap::GapDocument;
use super::pool;
use super::service::registration;
use super::storage::{self, StorageDocument};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    topic: &'a str,
    r#type: &'a str,
    key: &'a str,
    namespace: &'a str,
    filter_keys: Option<&'a [String]>,
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
    /// There was no such object before.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Value>,
}

/// One document under its name.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Node>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation: Option<Evaluation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation: Option<Box<Allocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment: Option<Deployment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<VariableMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<ServiceRegistration>,
    #[serde(flatten)]
    access: Option<AccessDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation_gap: Option<GapDocument>,
    #[serde(flatten)]
    storage: Option<StorageDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_pool: Option<Box<NodePool>>,
}

/// The event's JSON, on one line. `state` is the one after the batch at `index`.
pub(crate) fn render(state: &State, index: Index, entry: &Entry) -> Bytes {
    json(index, entry, Shown { payload: Some(payload(state, entry)), ..Shown::default() }).into()
}

/// The same with what a batch changed of the payload, as a merge patch.
pub(crate) fn render_diff(before: &State, after: &State, index: Index, entry: &Entry) -> Vec<u8> {
    let value = |payload: &Payload| serde_json::to_value(payload).expect("documents have a JSON form");
    let (old, new) = (payload_before(before, entry), value(&payload(after, entry)));
    let patch = merge_patch(old.as_ref().map(value).as_ref().unwrap_or(&json!({})), &new);
    let shown = Shown { diff: Some(patch), new: old.is_none().then_some(true), ..Shown::default() };
    json(index, entry, shown)
}

/// The same without the payload.
pub(crate) fn render_key(index: Index, entry: &Entry) -> Vec<u8> {
    json(index, entry, Shown::default())
}

/// What of an event is not the same in each of its forms.
#[derive(Default)]
struct Shown {
    payload: Option<Payload>,
    new: Option<bool>,
    diff: Option<Value>,
}

fn json(index: Index, entry: &Entry, shown: Shown) -> Vec<u8> {
    let Shown { payload, new, diff } = shown;
    let event = Event {
        topic: entry.topic,
        r#type: entry.kind,
        key: &entry.key,
        namespace: &entry.namespace,
        filter_keys: (!entry.filter_keys.is_empty()).then_some(&entry.filter_keys),
        index: index.0,
        payload,
        new,
        diff,
    };
    serde_json::to_vec(&event).expect("documents have a JSON form")
}

/// The payload of the same object as it was before the batch; `None` if it was not there.
fn payload_before(before: &State, entry: &Entry) -> Option<Payload> {
    let (key, nothing) = (entry.key.as_str(), Payload::default());
    Some(match &entry.object {
        Object::Row(row) => return is_row_of(before, entry, *row).then(|| payload(before, entry)),
        Object::Variable(_) => {
            let key = VariableKey::new(&entry.namespace, key);
            Payload { metadata: Some(metadata(&key, before.variables.get(&key)?)), ..nothing }
        }
        Object::Service(service) => {
            let alloc = service.alloc_id.parse().ok()?;
            let row = before.services.of_alloc(alloc).iter().find(|row| row.service.id == key)?;
            Payload { service: Some(registration(row)), ..nothing }
        }
        // Each is one of its own.
        Object::Gap(_) => return None,
        Object::Storage(_) => {
            let document = storage::current(before, entry.topic, &entry.namespace, key)?;
            Payload { storage: Some(document), ..nothing }
        }
        Object::Access(_) => Payload { access: Some(access::current(before, entry.topic, key)?), ..nothing },
        Object::Pool(_) => {
            Payload { node_pool: Some(Box::new(pool::document(&before.pools, key)?)), ..nothing }
        }
    })
}

/// Whether the object that an entry names was this row then: a name that is used again has another one.
fn is_row_of(before: &State, entry: &Entry, row: Row) -> bool {
    let key = entry.key.as_str();
    match row {
        Row::Node(row) => key.parse().is_ok_and(|id| before.nodes.find(id) == Some(row)),
        Row::Job(row) => before.jobs.find(&JobKey::new(&entry.namespace, key)) == Some(row),
        Row::Eval(row) => key.parse().is_ok_and(|id| before.evals.find(id) == Some(row)),
        Row::Alloc(row) => key.parse().is_ok_and(|id| before.allocs.find(id) == Some(row)),
        Row::Deployment(row) => key.parse().is_ok_and(|id| before.deployments.find(id) == Some(row)),
    }
}

/// What turns one document into the other, by RFC 7396. A member that is null is one that is not there.
fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let is_set = |document: &Map<String, Value>, name: &str| document.get(name).is_some_and(|v| !v.is_null());
    let gone = from.keys().filter(|name| is_set(from, name) && !is_set(to, name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to.iter().filter(|(name, value)| !value.is_null() && from.get(*name) != Some(*value))
    {
        patch.insert(name.clone(), merge_patch(from.get(name).unwrap_or(&Value::Null), value));
    }
    Value::Object(patch)
}

fn payload(state: &State, entry: &Entry) -> Payload {
    let nothing = Payload::default();
    match &entry.object {
        Object::Row(row) => payload_of_row(state, *row),
        Object::Variable(variable) => {
            let key = VariableKey::new(&entry.namespace, &entry.key);
            let deleted = state.variables.get(&key).is_none().then_some(true);
            Payload { metadata: Some(VariableMetadata::clone(variable)), deleted, ..nothing }
        }
        Object::Service(service) => Payload { service: Some(ServiceRegistration::clone(service)), ..nothing },
        Object::Access(document) => Payload { access: Some(document.clone()), ..nothing },
        Object::Gap(gap) => Payload { observation_gap: Some(GapDocument::clone(gap)), ..nothing },
        Object::Storage(was) => {
            let now = || storage::current(state, entry.topic, &entry.namespace, &entry.key);
            Payload { storage: was.as_deref().cloned().or_else(now), ..nothing }
        }
        Object::Pool(pool) => Payload { node_pool: Some(pool.clone()), ..nothing },
    }
}

fn payload_of_row(state: &State, row: Row) -> Payload {
    let nothing = Payload::default();
    match row {
        Row::Node(row) => Payload { node: Some(state::node::document(&state.nodes, row)), ..nothing },
        Row::Job(row) => {
            let job = state.jobs.get(row);
            let document = state::job::document(job, job.current());
            Payload { job: Some(document), deleted: job.purged.then_some(true), ..nothing }
        }
        Row::Eval(row) => {
            Payload { evaluation: Some(state::eval::document(state, state.evals.get(row))), ..nothing }
        }
        Row::Alloc(row) => {
            // The job is not repeated with each of its allocations.
            let document = state::alloc::without_job(state, state.allocs.get(row));
            Payload { allocation: Some(Box::new(document)), ..nothing }
        }
        Row::Deployment(row) => {
            let document = state::deployment::document(state, state.deployments.get(row));
            Payload { deployment: Some(document), ..nothing }
        }
    }
}
