//! What was: the life of an allocation, and the stories of other objects.

use std::time::Duration;

use api::{AllocationHistory, AllocationTransition, HistoryLine, ObjectHistory, Params, Requester};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::StatusCode;
use axum::routing::get;
use base::Index;
use history::{History, HistoryError, Life, Line, Object, Placement, Transition};
use model::{AllocId, Caller, DeploymentId, EvalId, JobKey};
use state::State;

use crate::access::{Access, ReadJob, ReadNodes, Right, Somewhere};
use crate::answer::{self, Answer, Meta};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{self, Call};

/// How long a reader of a history waits until it has what the state shows already.
const PATIENCE: Duration = Duration::from_secs(5);
/// Fewest characters of an id that is looked up: fewer match one allocation in sixteen.
const PREFIX_MIN: usize = 2;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/allocation/{id}/history", get(allocation))
        .route("/v1/job/{id}/history", get(job))
        .route("/v1/node/{id}/history", get(node))
        .route("/v1/evaluation/{id}/history", get(evaluation))
        .route("/v1/deployment/{id}/history", get(deployment))
}

async fn allocation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    check_now(&call.params)?;
    let state = server.control.state();
    let (index, history) = (state.index, server.history.clone());
    let read = move || {
        let alloc = find_alloc(&state, &history, &id)?;
        let life = history.life(alloc, index, PATIENCE).map_err(|error| failed(&error))?;
        if !may_see(&state, &call.access, alloc, life.placement.as_ref()) {
            return Err(unknown_alloc());
        }
        Ok((alloc, life))
    };
    let (alloc, Life { transitions, cut_short, .. }) = blocking(read).await?;
    if transitions.is_empty() {
        return Err(unknown_alloc());
    }
    let transitions = transitions.iter().map(transition).collect();
    answered(&server, index, &AllocationHistory { id: alloc.to_string(), transitions, cut_short })
}

async fn job(With(server): With<AppState>, Path(id): Path<String>, call: Call<ReadJob>) -> Answer {
    check_now(&call.params)?;
    let key = JobKey::new(call.params.namespace(), &id);
    story(&server, id, Some(Object::Job(key)), "job not found").await
}

async fn node(With(server): With<AppState>, Path(id): Path<String>, call: Call<ReadNodes>) -> Answer {
    check_now(&call.params)?;
    let object = id.parse().ok().map(Object::Node);
    story(&server, id, object, "node not found").await
}

async fn evaluation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    check_now(&call.params)?;
    let eval: Option<EvalId> = id.parse().ok();
    let state = server.control.state();
    let known = eval.and_then(|id| state.evals.lookup(id)).map(|eval| eval.facts.key.namespace.as_str());
    let object = eval.filter(|_| of_namespace(&call.access, known)).map(Object::Eval);
    story(&server, id, object, "eval not found").await
}

async fn deployment(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Somewhere<ReadJob>>,
) -> Answer {
    check_now(&call.params)?;
    let deployment: Option<DeploymentId> = id.parse().ok();
    let state = server.control.state();
    let known = deployment.and_then(|id| state.deployments.lookup(id));
    let known = known.map(|known| state.jobs.get(known.job).key.namespace.as_str());
    let object = deployment.filter(|_| of_namespace(&call.access, known)).map(Object::Deployment);
    story(&server, id, object, "deployment not found").await
}

/// A history is already of the past.
fn check_now(params: &Params) -> Result<(), Failure> {
    if params.get("as_of").is_some() { Err(request::reads_the_past()) } else { Ok(()) }
}

/// The caller may see what stood in this namespace. What was forgotten with its namespace is for who may see everything.
fn of_namespace(access: &Access, namespace: Option<&str>) -> bool {
    match namespace {
        Some(namespace) => ReadJob::holds(&access.acl, namespace),
        None => access.acl.is_management(),
    }
}

/// The caller may see the allocation, which may have been forgotten but for its placement.
pub(crate) fn may_see(state: &State, access: &Access, id: AllocId, placed: Option<&Placement>) -> bool {
    let job = state.allocs.lookup(id).map(|alloc| &state.jobs.get(alloc.job).key);
    let job = job.or(placed.map(|placed| &placed.event.key));
    of_namespace(access, job.map(|key| key.namespace.as_str()))
}

async fn story(server: &AppState, id: String, object: Option<Object>, unknown: &'static str) -> Answer {
    let object = object.ok_or_else(|| Failure::not_found(unknown))?;
    let (index, history) = (server.control.state().index, server.history.clone());
    let read = move || history.story(&object, index, PATIENCE).map_err(|error| failed(&error));
    let story = blocking(read).await?;
    if story.lines.is_empty() {
        return Err(Failure::not_found(unknown));
    }
    let lines = story.lines.iter().map(line).collect();
    answered(server, index, &ObjectHistory { id, lines, cut_short: story.cut_short })
}

/// The allocation with this id, or the only one whose id begins so: also one that has been forgotten.
///
/// # Errors
/// 404, or 400 where there are several.
pub(crate) fn find_alloc(state: &State, history: &History, text: &str) -> Result<AllocId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let digits = text.chars().filter(|c| *c != '-').count();
    if digits < PREFIX_MIN {
        return Err(unknown_alloc());
    }
    let known = state.allocs.with_prefix(text).map(|row| state.allocs.get(row).id).take(2);
    let forgotten = history.allocs_with_prefix(text, 2, state.index, PATIENCE);
    let mut found: Vec<AllocId> = known.chain(forgotten.map_err(|error| failed(&error))?).collect();
    found.sort_unstable();
    found.dedup();
    match found.as_slice() {
        [] => Err(unknown_alloc()),
        [one] => Ok(*one),
        _ => Err(Failure::invalid(format!("several allocations have ids that begin with {text:?}"))),
    }
}

pub(crate) fn unknown_alloc() -> Failure {
    Failure::not_found("alloc not found")
}

fn failed(error: &HistoryError) -> Failure {
    match error {
        HistoryError::Behind { .. } => Failure::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        error => Failure::internal(error.to_string()),
    }
}

/// History reads the disk: not on the threads that serve everybody.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(read).await;
    done.map_err(|panic| Failure::internal(panic.to_string()))?
}

fn answered<T: serde::Serialize>(server: &AppState, index: Index, view: &T) -> Answer {
    let meta = Meta { index, known_leader: server.known_leader(), next_token: None };
    Ok(answer::with_meta(answer::json(view), &meta))
}

fn line(of: &Line) -> HistoryLine {
    HistoryLine {
        index: of.index.0,
        ordinal: u32::from(of.ordinal),
        time: of.time.into(),
        event: of.event.to_string(),
        actor: of.actor.to_string(),
        requester: of.requester().map(requester),
        description: of.description.clone(),
    }
}

/// As the API shows it.
pub(crate) fn transition(of: &Transition) -> AllocationTransition {
    let desired = |view: &history::View| view.desired.map(|d| d.to_string()).unwrap_or_default();
    let client = |view: &history::View| view.client.map(|c| c.to_string()).unwrap_or_default();
    AllocationTransition {
        index: of.index.0,
        ordinal: u32::from(of.ordinal),
        time: of.time.into(),
        old_desired: desired(&of.old),
        new_desired: desired(&of.new),
        old_client: client(&of.old),
        new_client: client(&of.new),
        actor: of.actor.to_string(),
        requester: of.requester.as_ref().map(requester),
        cause: of.cause.clone(),
        description: of.description.clone(),
    }
}

fn requester(caller: &Caller) -> Requester {
    Requester {
        accessor_id: caller.accessor.clone(),
        name: caller.name.clone(),
        address: caller.address.map(|address| address.to_string()).unwrap_or_default(),
    }
}
