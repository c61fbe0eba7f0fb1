//! Why: decisions made again on the state they were made on, and what is waited for now.

use std::sync::Arc;
use std::time::Duration;

use api::{AllocWhy, DeploymentWhy, EvalWhy, JobWhy, NodeWhy, WhyNot};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use model::NodeId;
use serde::Serialize;
use state::State;

use super::jobs;
use crate::access::{ReadJob, ReadNodes, Somewhere};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::events::{find_alloc, may_see, transition, unknown_alloc};
use crate::request::{Read, Reading};
use crate::view::decisions::Past;
use crate::view::why;

/// How long an answer waits until the history is indexed; without it only the transitions are left out.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/job/{id}/explain", get(job))
        .route("/v1/node/{id}/explain/{*job}", get(why_not))
        .route("/v1/evaluation/{id}/explain", get(evaluation))
        .route("/v1/allocation/{id}/explain", get(allocation))
        .route("/v1/deployment/{id}/explain", get(deployment))
        .route("/v1/node/{id}/explain", get(node))
}

async fn job(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = jobs::key(&read.params, &id);
    answered(server, read, move |past, state, _| {
        let row = state.jobs.find(&key).ok_or_else(|| Failure::not_found(jobs::NOT_FOUND))?;
        Ok(why::job(past, state, row))
    })
    .await
}

async fn why_not(
    With(server): With<AppState>,
    Path((node, job)): Path<(String, String)>,
    read: Read<ReadJob>,
) -> Answer {
    let key = jobs::key(&read.params, &job);
    answered(server, read, move |_, state, read| {
        let job = state.jobs.find(&key).ok_or_else(|| Failure::not_found(jobs::NOT_FOUND))?;
        read.access.require::<ReadNodes>("")?;
        let node = node.parse().ok().and_then(|id: NodeId| state.nodes.find(id));
        Ok(why::why_not(state, job, node.ok_or_else(|| Failure::not_found("node not found"))?))
    })
    .await
}

async fn evaluation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    answered(server, read, move |past, state, read| {
        let eval = read.eval(state, &id).ok_or_else(|| Failure::not_found("eval not found"))?;
        Ok(why::evaluation(past, state, eval))
    })
    .await
}

async fn deployment(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    answered(server, read, move |_, state, read| {
        let found = read.deployment(state, &id);
        Ok(why::deployment(state, found.ok_or_else(|| Failure::not_found("deployment not found"))?))
    })
    .await
}

async fn node(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadNodes>) -> Answer {
    answered(server, read, move |_, state, _| {
        let row = id.parse().ok().and_then(|id: NodeId| state.nodes.find(id));
        Ok(why::node(state, row.ok_or_else(|| Failure::not_found("node not found"))?))
    })
    .await
}

async fn allocation(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    answered(server, read, move |past, state, read| {
        let until = past.until(state.index);
        let id = find_alloc(state, past.history, until, &id)?;
        let life = past.history.life(id, until, PATIENCE).map(|life| life.until(until));
        let placed = life.as_ref().ok().and_then(|life| life.placement.as_ref());
        if !may_see(state, &read.access, id, placed) {
            return Err(unknown_alloc());
        }
        let mut why = match state.allocs.lookup(id) {
            Some(alloc) => why::allocation(past, state, alloc),
            None => {
                let placement = life.as_ref().ok().and_then(|life| life.placement.as_ref());
                why::forgotten(past, state, id, placement.ok_or_else(unknown_alloc)?)
            }
        };
        match life {
            Ok(life) => {
                let last = life.transitions.last().map(transition).filter(|_| why.collected);
                if let Some(last) = last {
                    (why.desired_status, why.client_status) = (last.new_desired, last.new_client);
                }
                why.transitions = life.transitions.iter().map(transition).collect::<Vec<_>>().into();
            }
            Err(error) => why.decision.note.push_str(&format!("transitions are not known: {error}")),
        }
        Ok(why)
    })
    .await
}

/// Deciding again is work for a processor: as many at once as lists are rendered; others wait for their turn.
async fn answered<T: Why + Send + 'static>(
    server: AppState,
    read: impl Into<Reading>,
    explain: impl FnOnce(Past<'_>, &Arc<State>, &Reading) -> Result<T, Failure> + Send + 'static,
) -> Answer {
    let read = read.into();
    let (state, known_leader) = server.moment(&read).await?;
    let fork = read.options.fork.as_ref().map(|id| server.kept_forks.find(&read.access, id)).transpose()?;
    let fork_of = fork.map(|fork| fork.base().index);
    let turn = server.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let index: Index = state.index;
    let explained = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut why = explain(Past { history: &server.history, fork_of }, &state, &read)?;
        why.is_approximate(approximate(&state));
        Ok::<T, Failure>(why)
    });
    let response = answer::json(&explained.await??);
    Ok(answer::with_meta(response, &answer::Meta { index, known_leader, next_token: None }))
}

/// What says of itself that it is only approximate.
trait Why: Serialize {
    fn is_approximate(&mut self, why: String);
}

macro_rules! why {
    ($($answer:ty),*) => {
        $(impl Why for $answer {
            fn is_approximate(&mut self, why: String) {
                self.approximate = why;
            }
        })*
    };
}

why!(JobWhy, EvalWhy, AllocWhy, DeploymentWhy, NodeWhy, WhyNot);

/// Of a recording everything is: it has what another cluster did, and not how its scheduler came to it. Empty for a cluster's own
/// log.
fn approximate(state: &State) -> String {
    let Some(recording) = &state.recording else { return String::new() };
    format!(
        "recomputed from the state that was observed of {}: how its scheduler came to it is not in its API",
        recording.source
    )
}
