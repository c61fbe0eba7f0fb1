//! What is asked of the node that runs an allocation.

use axum::Router;
use axum::extract::{Path, Request, State as With};
use axum::http::{HeaderValue, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use model::document::Map;
use model::{AllocId, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tower::ServiceExt;
use wire::messages::{
    AllocChecksResponse, AllocGetPauseResponse, AllocPauseRequest, AllocRestartRequest, AllocSpecificRequest,
    AllocStatsRequest, AllocStatsResponse, ClientStatsResponse, Empty, GenericResponse, NodeSpecificRequest,
    QueryOptions, method,
};

use api::{AllocResourceUsage, AllocSignalRequest, AllocationRestartRequest, HostStats};

use super::write;
use crate::access::{
    Access, AllocLifecycle, CollectAlloc, PauseAlloc, ReadJob, ReadNodes, Right, Somewhere, WriteNodes,
};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, OptionalJson};

pub(super) fn router() -> Router<AppState> {
    let absent = async |Path((_, verb)): Path<(String, String)>| {
        Failure::unsupported(format_args!("`client/allocation/:id/{verb}` is"))
    };
    Router::new()
        .route("/v1/client/stats", get(node_stats))
        .route("/v1/client/gc", any(collect_all))
        .route("/v1/client/allocation/{id}/stats", get(stats))
        .route("/v1/client/allocation/{id}/restart", write(restart))
        .route("/v1/client/allocation/{id}/signal", write(signal))
        .route("/v1/client/allocation/{id}/gc", any(collect))
        .route("/v1/client/allocation/{id}/snapshot", get(snapshot))
        .route("/v1/client/allocation/{id}/checks", get(checks))
        .route("/v1/allocation/{id}/checks", get(checks))
        .route("/v1/client/allocation/{id}/pause", write(set_pause).get(pause))
        .route("/v1/client/allocation/{id}/{verb}", any(absent))
        .layer(map_response(open_to_all_origins))
}

/// Pages that the web interface loads from elsewhere may ask these.
pub(super) async fn open_to_all_origins(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    response
}

async fn node_stats(With(server): With<AppState>, call: Call<ReadNodes>) -> Answer {
    let node = named_node(&server, call.params.get("node_id").unwrap_or_default())?;
    let request = NodeSpecificRequest {
        node_id: node.to_string(),
        query: query(&server, &call.access),
        ..Default::default()
    };
    let reply: ClientStatsResponse<HostStats> = server.ask(node, method::CLIENT_STATS, &request).await?;
    Ok(answer::json(&reply.host_stats))
}

async fn collect_all(With(server): With<AppState>, call: Call<WriteNodes>) -> Answer {
    let node = named_node(&server, call.params.get("node_id").unwrap_or_default())?;
    let request = NodeSpecificRequest {
        node_id: node.to_string(),
        query: query(&server, &call.access),
        ..Default::default()
    };
    let _: Empty = server.ask(node, method::ALLOCATIONS_GARBAGE_COLLECT_ALL, &request).await?;
    Ok(answer::json(&Empty {}))
}

async fn stats(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    let (alloc, node) = server.running::<ReadJob>(&call.access, &id)?;
    let task = call.params.get("task").unwrap_or_default().to_string();
    let request = AllocStatsRequest {
        alloc_id: alloc.to_string(),
        task: task.clone(),
        query: query(&server, &call.access),
    };
    let reply: AllocStatsResponse<AllocResourceUsage> =
        server.ask(node, method::ALLOCATIONS_STATS, &request).await?;
    Ok(answer::json(&reply.stats.map(|usage| only(usage, &task))))
}

async fn restart(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<AllocLifecycle>>,
    OptionalJson(request): OptionalJson<AllocationRestartRequest>,
) -> Answer {
    let (alloc, node) = server.running::<AllocLifecycle>(&call.access, &id)?;
    let AllocationRestartRequest { task_name, all_tasks } = request;
    let request = AllocRestartRequest {
        alloc_id: alloc.to_string(),
        task_name,
        all_tasks,
        query: query(&server, &call.access),
    };
    let reply: GenericResponse = server.ask(node, method::ALLOCATIONS_RESTART, &request).await?;
    Ok(answer::json(&api::GenericResponse { index: reply.meta.index }))
}

async fn signal(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<AllocLifecycle>>,
    OptionalJson(request): OptionalJson<AllocSignalRequest>,
) -> Answer {
    let (alloc, node) = server.running::<AllocLifecycle>(&call.access, &id)?;
    let AllocSignalRequest { task, signal } = request;
    let request = wire::messages::AllocSignalRequest {
        alloc_id: alloc.to_string(),
        task,
        signal,
        query: query(&server, &call.access),
    };
    let reply: GenericResponse = server.ask(node, method::ALLOCATIONS_SIGNAL, &request).await?;
    Ok(answer::json(&api::GenericResponse { index: reply.meta.index }))
}

async fn collect(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<CollectAlloc>>,
) -> Answer {
    let (alloc, node) = server.running::<CollectAlloc>(&call.access, &id)?;
    let request = AllocSpecificRequest { alloc_id: alloc.to_string(), query: query(&server, &call.access) };
    let _: Empty = server.ask(node, method::ALLOCATIONS_GARBAGE_COLLECT, &request).await?;
    Ok(answer::json(&Empty {}))
}

/// What the node of this agent answers itself, to another node that shows a token of the servers.
async fn snapshot(With(server): With<AppState>, request: Request) -> Response {
    match server.node_routes.get() {
        Some(routes) => {
            // What this router has found in the path is nothing to the other one.
            let (parts, body) = request.into_parts();
            let mut request = Request::new(body);
            (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
                (parts.method, parts.uri, parts.headers);
            routes.clone().oneshot(request).await.into_response()
        }
        None => Failure::invalid("node is not running a Nomad Client").into_response(),
    }
}

async fn checks(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    let (alloc, node) = server.running::<ReadJob>(&call.access, &id)?;
    let request = AllocSpecificRequest { alloc_id: alloc.to_string(), query: query(&server, &call.access) };
    let reply: AllocChecksResponse = server.ask(node, method::ALLOCATIONS_CHECKS, &request).await?;
    // None are an empty map, not null.
    Ok(answer::json(&reply.results.0))
}

async fn pause(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    let (alloc, node) = server.running::<ReadJob>(&call.access, &id)?;
    let task = call.params.get("task").unwrap_or_default().to_string();
    let request = AllocPauseRequest {
        alloc_id: alloc.to_string(),
        task,
        query: query(&server, &call.access),
        ..Default::default()
    };
    let reply: AllocGetPauseResponse =
        server.ask(node, method::ALLOCATIONS_GET_PAUSE_STATE, &request).await?;
    Ok(answer::json(&PauseState { schedule_state: reply.schedule_state }))
}

async fn set_pause(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<PauseAlloc>>,
    OptionalJson(request): OptionalJson<PauseRequest>,
) -> Answer {
    let PauseRequest { task, schedule_state } = request;
    if !matches!(schedule_state.as_str(), "pause" | "run" | "scheduled") {
        return Err(Failure::invalid("Not a valid task schedule state"));
    }
    let (alloc, node) = server.running::<PauseAlloc>(&call.access, &id)?;
    let request = AllocPauseRequest {
        alloc_id: alloc.to_string(),
        task,
        schedule_state,
        query: query(&server, &call.access),
    };
    let reply: GenericResponse = server.ask(node, method::ALLOCATIONS_SET_PAUSE_STATE, &request).await?;
    Ok(answer::json(&api::GenericResponse { index: reply.meta.index }))
}

/// `AllocPauseRequest` of Nomad's API.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct PauseRequest {
    task: String,
    schedule_state: String,
}

/// `AllocGetPauseResponse` of Nomad's API.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PauseState {
    schedule_state: String,
}

impl AppState {
    /// Makes a call to a node.
    ///
    /// # Errors
    /// That it is not connected, its error, or that it answered something else.
    pub(crate) async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        node: NodeId,
        method: &str,
        request: &Q,
    ) -> Result<A, Failure> {
        let body = encode(request)?;
        let reply = self.node_rpc.call(node, method, body).await?;
        msgpack::from_slice(&reply).map_err(|e| Failure::internal(format!("{method} of node {node}: {e}")))
    }

    /// The allocation of this id, and where it was placed, for a caller who has the right in its namespace.
    ///
    /// # Errors
    /// 404 `Unknown allocation`, 403.
    pub(crate) fn running<R: Right>(&self, access: &Access, id: &str) -> Result<(AllocId, NodeId), Failure> {
        let state = self.control.state();
        let unknown = || Failure::not_found(format!("Unknown allocation {id:?}"));
        let alloc = id.parse().ok().and_then(|id: AllocId| state.allocs.lookup(id));
        let alloc = alloc.ok_or_else(unknown)?;
        access.find::<R>(&state.jobs.get(alloc.job).key.namespace, unknown())?;
        Ok((alloc.id, alloc.node_id))
    }
}

pub(super) fn encode<Q: Serialize>(request: &Q) -> Result<Vec<u8>, Failure> {
    msgpack::to_vec(request).map_err(|e| Failure::internal(e.to_string()))
}

/// The options that nodes expect with each call: they may look at the caller's token themselves.
pub(super) fn query(server: &AppState, access: &Access) -> QueryOptions {
    QueryOptions {
        region: server.agent.region.clone(),
        namespace: "default".to_string(),
        auth_token: access.presented.text().to_string(),
        ..QueryOptions::default()
    }
}

/// The node that was named, or the one this agent runs.
pub(super) fn named_node(server: &AppState, id: &str) -> Result<NodeId, Failure> {
    if id.is_empty() {
        let own = server.agent.node;
        return own.ok_or_else(|| Failure::invalid("No local Node and node_id not provided"));
    }
    let known = id.parse().ok().filter(|id: &NodeId| server.control.state().nodes.find(*id).is_some());
    known.ok_or_else(|| Failure::not_found(format!("Unknown node {id:?}")))
}

/// With a task named: that one alone, and its use as the whole.
fn only(usage: AllocResourceUsage, task: &str) -> AllocResourceUsage {
    if task.is_empty() || usage.tasks.keys().all(|name| name == task) {
        return usage;
    }
    let tasks: Map<_, _> = usage.tasks.0.into_iter().filter(|(name, _)| name == task).collect();
    let resource_usage = tasks.values().next().and_then(|task| task.resource_usage.clone());
    let resource_usage = Some(resource_usage.unwrap_or_default());
    AllocResourceUsage { resource_usage, tasks, timestamp: usage.timestamp }
}
