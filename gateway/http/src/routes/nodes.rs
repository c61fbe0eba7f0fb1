use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::StatusCode;
use axum::routing::get;
use base::Index;
use control::{Receipt, Subject};
use model::command::DrainWish;
use model::document::Duration;
use model::{Command, Eligibility, NodeId};
use state::State;
use state::alloc::AllocRow;
use state::node::NodeRow;

use api::{
    DrainSpec, NodeDrainUpdateResponse, NodeEligibilityUpdateResponse, NodePurgeResponse,
    NodeUpdateDrainRequest, NodeUpdateEligibilityRequest,
};

use super::write;
use crate::access::{ReadJob, ReadNodes, Right};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::blocking::Changing;
use crate::error::Failure;
use crate::page::{Page, id_prefix};
use crate::request::{Json, OptionalJson, Read, Reading, Write, as_json};
use crate::view::node::{Extras, stub};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/nodes", get(list))
        .route("/v1/node/{id}", get(read))
        .route("/v1/node/{id}/allocations", get(allocations))
        .route("/v1/node/{id}/eligibility", write(set_eligibility))
        .route("/v1/node/{id}/drain", write(drain))
        .route("/v1/node/{id}/evaluate", write(evaluate))
        .route("/v1/node/{id}/purge", write(purge))
}

async fn list(With(server): With<AppState>, mut read: Read<ReadNodes>) -> Answer {
    let extras = Extras { resources: read.params.boolean("resources")?, os: read.params.boolean("os")? };
    // Nomad has one order for nodes.
    read.options.reverse = false;
    let view = move |state: &State, row: &NodeRow| stub(&state.nodes, *row, extras);
    server.list_each(read, |state: &State| state.tables.nodes, nodes, view).await
}

async fn read(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadNodes>) -> Answer {
    let index = |state: &State| match find(state, &id) {
        Ok(row) => state.nodes.hot(row).modified,
        Err(_) => state.tables.nodes,
    };
    let view = |state: &State| {
        let row = find(state, &id)?;
        let row = Some(row).filter(|row| may_read(state, &read, *row)).ok_or_else(not_found)?;
        Ok(state::node::document(&state.nodes, row))
    };
    let subject = |state: &State| find(state, &id).ok().map(Subject::Node);
    server.read(&read, Changing { subject, index }, view).await
}

async fn allocations(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadNodes>) -> Answer {
    read.without_filter()?;
    let asked = id.clone();
    let index = |state: &State| {
        let allocs = find(state, &asked).into_iter().flat_map(|row| &state.nodes.load(row).allocs);
        allocs.map(|row| state.allocs.get(*row).modified).max().unwrap_or(Index::ZERO)
    };
    let on_it = move |state: &State, read: &Reading| {
        let row = find(state, &id).ok().filter(|row| may_read(state, read, *row));
        let allocs = row.into_iter().flat_map(|row| state.nodes.load(row).allocs.iter().copied());
        Ok(Page::whole(allocs.filter(|row| {
            let alloc = state.allocs.get(*row);
            !alloc.gone && ReadJob::holds(&read.access.acl, &state.jobs.get(alloc.job).key.namespace)
        })))
    };
    let view = |state: &State, row: &AllocRow| state::alloc::document(state, state.allocs.get(*row));
    let subject = |state: &State| find(state, &asked).ok().map(Subject::Node);
    server.list_each(read, Changing { subject, index }, on_it, view).await
}

async fn set_eligibility(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<NodeUpdateEligibilityRequest>,
) -> Answer {
    let node = written_to(if request.node_id.is_empty() { &id } else { &request.node_id })?;
    let Some(to) = Eligibility::from_word(&request.eligibility) else {
        let text = format!("invalid eligibility {:?}: expected eligible or ineligible", request.eligibility);
        return Err(Failure::invalid(text));
    };
    let receipt = submit(&server, &write, Command::SetNodeEligibility { node, to }).await?;
    let NodePurgeResponse { eval_ids, eval_create_index, node_modify_index, index, .. } =
        changed(&server, node, &receipt);
    let response = NodeEligibilityUpdateResponse { node_modify_index, eval_ids, eval_create_index, index };
    written(receipt.index, &response)
}

async fn drain(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    OptionalJson(request): OptionalJson<Option<NodeUpdateDrainRequest>>,
) -> Answer {
    let request = request.map_or_else(|| in_parameters(&write), Ok)?;
    let node = written_to(if request.node_id.is_empty() { &id } else { &request.node_id })?;
    let drain = request.drain_spec.map(|DrainSpec { deadline, ignore_system_jobs }| DrainWish {
        deadline: deadline.0,
        ignore_system_jobs,
    });
    let (mark_eligible, meta) = (request.mark_eligible, request.meta.0);
    let receipt = submit(&server, &write, Command::SetNodeDrain { node, drain, mark_eligible, meta }).await?;
    let NodePurgeResponse { eval_ids, eval_create_index, node_modify_index, index, .. } =
        changed(&server, node, &receipt);
    let response = NodeDrainUpdateResponse { node_modify_index, eval_ids, eval_create_index, index };
    written(receipt.index, &response)
}

/// How drains were asked for before there were specifications: `enable=true` has everything go at once.
fn in_parameters(write: &Write) -> Result<NodeUpdateDrainRequest, Failure> {
    if write.params.get("enable").is_none() {
        return Err(Failure::invalid("Request body is empty"));
    }
    let at_once = DrainSpec { deadline: Duration::from_secs(-1), ignore_system_jobs: false };
    let drain_spec = write.params.boolean("enable")?.then_some(at_once);
    Ok(NodeUpdateDrainRequest { drain_spec, ..NodeUpdateDrainRequest::default() })
}

async fn evaluate(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let node = written_to(&id)?;
    let receipt = submit(&server, &write, Command::EvaluateNode { node }).await?;
    written(receipt.index, &changed(&server, node, &receipt))
}

async fn purge(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let node = written_to(&id)?;
    let receipt = submit(&server, &write, Command::DeregisterNode { node }).await?;
    written(receipt.index, &changed(&server, node, &receipt))
}

fn nodes(state: &State, read: &Reading) -> Result<Page<NodeRow>, Failure> {
    let prefix = id_prefix(&read.options.prefix)?;
    let rows = state.nodes.with_prefix(&prefix).filter(|row| may_read(state, read, *row));
    let rows = rows.map(|row| (state.nodes.cold(row).id.0, row));
    read.page("Node", rows, |row| as_json(&state::node::document(&state.nodes, *row)))
}

/// A rule about the pool of a node may take back what one about all nodes gives.
fn may_read(state: &State, read: &Reading, row: NodeRow) -> bool {
    let acl = &read.access.acl;
    acl.is_management() || !acl.hides_pool(&state.nodes.cold(row).document.node_pool)
}

fn find(state: &State, id: &str) -> Result<NodeRow, Failure> {
    state.nodes.find(parse(id)?).ok_or_else(not_found)
}

/// What is not the id of anything is not the id of a node.
fn parse(id: &str) -> Result<NodeId, Failure> {
    id.parse().map_err(|_| not_found())
}

/// As [`parse`]. Nomad finds out within the write that there is no such node, so it answers 500.
fn written_to(id: &str) -> Result<NodeId, Failure> {
    parse(id).map_err(Failure::as_internal)
}

async fn submit(server: &AppState, write: &Write, command: Command) -> Result<Receipt, Failure> {
    let unknown = |failure: Failure| {
        if failure.status == StatusCode::NOT_FOUND { failure.as_internal() } else { failure }
    };
    server.submit(write, command).await.map_err(unknown)
}

fn not_found() -> Failure {
    Failure::not_found("node not found")
}

/// The answer to whatever had jobs look at a node again.
fn changed(server: &AppState, node: NodeId, receipt: &Receipt) -> NodePurgeResponse {
    let state = server.control.state();
    let modified = state.nodes.find(node).map_or(receipt.index, |row| state.nodes.hot(row).modified);
    let evals: Vec<String> = receipt.reply.evals.iter().map(ToString::to_string).collect();
    NodePurgeResponse {
        eval_create_index: if evals.is_empty() { 0 } else { receipt.index.0 },
        eval_ids: evals.into(),
        node_modify_index: modified.0,
        index: receipt.index.0,
        known_leader: true,
        ..NodePurgeResponse::default()
    }
}
