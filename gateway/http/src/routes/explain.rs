//! Why: decisions made again on the state they were made on, and what is waited for now.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use model::{AllocId, EvalId};
use serde::Serialize;
use state::State;

use super::jobs;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::events::transition;
use crate::request::Read;
use crate::view::why;

/// How long an answer waits until the history is indexed; without it only the transitions are left out.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/job/{id}/explain", get(job))
        .route("/v1/evaluation/{id}/explain", get(evaluation))
        .route("/v1/allocation/{id}/explain", get(allocation))
}

async fn job(With(server): With<AppState>, Path(id): Path<String>, read: Read) -> Answer {
    let key = jobs::key(&read.params, &id);
    answered(server, &read, move |server, state| {
        let row = state.jobs.find(&key).ok_or_else(|| Failure::not_found(jobs::NOT_FOUND))?;
        Ok(why::job(&server.events, state, row))
    })
    .await
}

async fn evaluation(With(server): With<AppState>, Path(id): Path<String>, read: Read) -> Answer {
    answered(server, &read, move |server, state| {
        let eval = id.parse().ok().and_then(|id: EvalId| state.evals.lookup(id));
        let eval = eval.ok_or_else(|| Failure::not_found("eval not found"))?;
        Ok(why::evaluation(&server.events, state, eval))
    })
    .await
}

async fn allocation(With(server): With<AppState>, Path(id): Path<String>, read: Read) -> Answer {
    answered(server, &read, move |server, state| {
        let row = id.parse().ok().and_then(|id: AllocId| state.allocs.find(id));
        let alloc = state.allocs.get(row.ok_or_else(|| Failure::not_found("alloc not found"))?);
        let mut why = why::allocation(&server.events, state, alloc);
        match server.history.transitions(alloc.id, state.index, PATIENCE) {
            Ok(transitions) => {
                why.transitions = transitions.iter().map(transition).collect::<Vec<_>>().into()
            }
            Err(error) => why.decision.note.push_str(&format!("transitions are not known: {error}")),
        }
        Ok(why)
    })
    .await
}

/// Deciding again is work for a processor: as many at once as lists are rendered; others wait for their turn.
async fn answered<T: Serialize + Send + 'static>(
    server: AppState,
    read: &Read,
    explain: impl FnOnce(&AppState, &Arc<State>) -> Result<T, Failure> + Send + 'static,
) -> Answer {
    let known_leader = server.fresh(read.options.consistency, read.options.min_index).await?;
    let state = server.control.state();
    let turn = server.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let index: Index = state.index;
    let explained = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        explain(&server, &state)
    });
    let response = answer::json(&explained.await??);
    Ok(answer::with_meta(response, &answer::Meta { index, known_leader, next_token: None }))
}
