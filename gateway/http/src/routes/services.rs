//! Services. None is registered by this release, so lists of them are always empty.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{delete, get};
use base::Index;
use serde_json::Value;
use state::State;

use super::jobs;
use crate::access::{DeleteServices, ReadJob, ReadServices, Somewhere};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Call, Read, Reading};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/services", get(none))
        .route("/v1/service/{name}", get(instances))
        .route("/v1/service/{name}/{id}", delete(no_registration))
        .route("/v1/job/{id}/services", get(of_job))
        .route("/v1/allocation/{id}/services", get(of_alloc))
}

async fn none(With(server): With<AppState>, read: Read<ReadServices>) -> Answer {
    server.list(read, unchanged, nothing).await
}

async fn instances(With(server): With<AppState>, Path(_): Path<String>, read: Read<ReadServices>) -> Answer {
    if let Some(choose) = read.params.get("choose") {
        let count = choose.split_once('|').and_then(|(count, key)| Some((count.parse::<u32>().ok()?, key)));
        if count.is_none_or(|(_, key)| key.is_empty()) {
            return Err(Failure::invalid("invalid `choose`: expected a number, a bar and a key, like 2|abc"));
        }
    }
    server.list(read, unchanged, nothing).await
}

/// None is there to be deleted.
async fn no_registration(_: Call<DeleteServices>) -> Failure {
    Failure::internal("service registration not found")
}

async fn of_job(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = jobs::key(&read.params, &id);
    let view = move |state: &State, _: &Reading| match state.jobs.find(&key) {
        Some(_) => Ok(Page::<Value>::whole(std::iter::empty())),
        None => Err(Failure::not_found(jobs::NOT_FOUND)),
    };
    server.list(read, unchanged, view).await
}

async fn of_alloc(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let view = move |state: &State, read: &Reading| {
        read.alloc(state, &id).ok_or_else(|| Failure::not_found("allocation not found"))?;
        Ok(Page::<Value>::whole(std::iter::empty()))
    };
    server.list(read, unchanged, view).await
}

fn nothing(_: &State, _: &Reading) -> Result<Page<Value>, Failure> {
    Ok(Page::whole(std::iter::empty()))
}

/// Nothing ever came or went.
fn unchanged(_: &State) -> Index {
    Index(1)
}
