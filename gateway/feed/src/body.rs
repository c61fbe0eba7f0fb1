//! An event as Nomad's stream shows it, with the row as it was after the batch.

use api::{ServiceRegistration, VariableMetadata};
use base::Index;
use bytes::Bytes;
use model::VariableKey;
use model::document::{Allocation, Deployment, Evaluation, Job, Node};
use serde::Serialize;
use state::State;

use super::access::AccessDocument;
use super::entries::{Entry, Row};

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
}

/// One document under its name.
#[derive(Serialize)]
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
}

/// The event's JSON, on one line. `state` is the one after the batch at `index`.
pub(crate) fn render(state: &State, index: Index, entry: &Entry) -> Bytes {
    json(index, entry, Some(payload(state, entry))).into()
}

/// The same without the payload.
pub(crate) fn render_key(index: Index, entry: &Entry) -> Vec<u8> {
    json(index, entry, None)
}

fn json(index: Index, entry: &Entry, payload: Option<Payload>) -> Vec<u8> {
    let event = Event {
        topic: entry.topic,
        r#type: entry.kind,
        key: &entry.key,
        namespace: &entry.namespace,
        filter_keys: (!entry.filter_keys.is_empty()).then_some(&entry.filter_keys),
        index: index.0,
        payload,
    };
    serde_json::to_vec(&event).expect("documents have a JSON form")
}

fn payload(state: &State, entry: &Entry) -> Payload {
    let nothing = Payload {
        node: None,
        job: None,
        deleted: None,
        evaluation: None,
        allocation: None,
        deployment: None,
        metadata: None,
        service: None,
        access: None,
    };
    match entry.row {
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
            let document = Allocation { job: None, ..state::alloc::document(state, state.allocs.get(row)) };
            Payload { allocation: Some(Box::new(document)), ..nothing }
        }
        Row::Deployment(row) => {
            let document = state::deployment::document(state, state.deployments.get(row));
            Payload { deployment: Some(document), ..nothing }
        }
        Row::Variable(_) => {
            let key = VariableKey::new(&entry.namespace, &entry.key);
            let deleted = state.variables.get(&key).is_none().then_some(true);
            Payload { metadata: entry.variable.as_deref().cloned(), deleted, ..nothing }
        }
        Row::Service(_) => Payload { service: entry.service.as_deref().cloned(), ..nothing },
        Row::Access(_) => Payload { access: entry.access.clone(), ..nothing },
    }
}
