use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{any, get};
use control::Subject;
use model::document::{AllocationListStub, Map};
use model::{AllocId, Command};
use state::State;
use state::alloc::AllocRow;

use api::AllocStopResponse;

use super::write;
use crate::access::{ReadJob, Somewhere};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::blocking::Changing;
use crate::error::Failure;
use crate::page::{Creation, Page, id_prefix};
use crate::request::{Read, Reading, Write, as_json};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/allocations", get(list))
        .route("/v1/allocation/{id}", get(read))
        .route("/v1/allocation/{id}/stop", write(stop))
        .route("/v1/allocation/{id}/{*other}", any(async || Failure::not_found("resource not found")))
}

async fn list(With(server): With<AppState>, read: Read<ReadJob>) -> Answer {
    let with_resources = read.params.boolean("resources")?;
    let without_tasks = read.params.get("task_states").is_some() && !read.params.boolean("task_states")?;
    let view = move |state: &State, row: &AllocRow| {
        let mut stub = stub(state, row);
        let alloc = state.allocs.get(*row);
        stub.allocated_resources = with_resources.then(|| state::alloc::allocated_resources(state, alloc));
        if without_tasks {
            stub.task_states = Map::default();
        }
        stub
    };
    server.list_each(read, |state: &State| state.tables.allocs, allocations, view).await
}

async fn read(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let find = |state: &State| id.parse().ok().and_then(|id: AllocId| state.allocs.find(id));
    let index = |state: &State| match find(state) {
        Some(row) => state.allocs.get(row).modified,
        None => state.tables.allocs,
    };
    let view = |state: &State| {
        let alloc = read.alloc(state, &id).ok_or_else(|| Failure::not_found("alloc not found"))?;
        Ok(state::alloc::document(state, alloc))
    };
    let subject = |state: &State| find(state).map(Subject::Alloc);
    server.read(&read, Changing { subject, index }, view).await
}

async fn stop(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let command = Command::StopAlloc {
        alloc: id.parse().map_err(|_| Failure::not_found("allocation not found"))?,
        no_shutdown_delay: write.params.boolean("no_shutdown_delay")?,
        reschedule: write.params.boolean("reschedule")?,
    };
    let receipt = server.submit(&write, command).await?;
    let eval_id = receipt.reply.evals.first().map(ToString::to_string).unwrap_or_default();
    written(receipt.index, &AllocStopResponse { eval_id, index: receipt.index.0 })
}

/// An allocation as lists show it.
pub(super) fn stub(state: &State, row: &AllocRow) -> AllocationListStub {
    state::alloc::stub(state, state.allocs.get(*row))
}

fn allocations(state: &State, read: &Reading) -> Result<Page<AllocRow>, Failure> {
    let prefix = id_prefix(&read.options.prefix)?;
    let alloc = |row: &AllocRow| state.allocs.get(*row);
    let shown = |row: &AllocRow| read.shows(&state.jobs.get(alloc(row).job).key.namespace);
    let with_job = read.filters_by("Job");
    let json = |row: &AllocRow| match with_job {
        true => as_json(&state::alloc::document(state, alloc(row))),
        false => as_json(&state::alloc::without_job(state, alloc(row))),
    };
    if prefix.is_empty() {
        let rows = state.allocs.iter().map(|(row, _)| row).filter(shown);
        let rows = rows.map(|row| (Creation(alloc(&row).created, alloc(&row).id.0), row));
        return read.page("Allocation", rows, json);
    }
    let rows = state.allocs.with_prefix(&prefix).filter(shown);
    read.page("Allocation", rows.map(|row| (alloc(&row).id.0, row)), json)
}
