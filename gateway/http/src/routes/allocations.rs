use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{any, get};
use model::document::Map;
use model::{AllocId, Command};
use state::State;
use state::alloc::Alloc;

use api::AllocStopResponse;

use super::write;
use crate::access::{ReadJob, Somewhere};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::{Creation, Page, id_prefix, page};
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
    let view = move |state: &State, read: &Reading| {
        Ok(allocations(state, read)?.map(|alloc| {
            let mut stub = state::alloc::stub(state, alloc);
            stub.allocated_resources =
                with_resources.then(|| state::alloc::allocated_resources(state, alloc));
            if without_tasks {
                stub.task_states = Map::default();
            }
            stub
        }))
    };
    server.list(read, |state| state.tables.allocs, view).await
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
    server.read(&read, index, view).await
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

fn allocations<'a>(state: &'a State, read: &Reading) -> Result<Page<&'a Alloc>, Failure> {
    let options = &read.options;
    let prefix = id_prefix(&options.prefix)?;
    let shown = |alloc: &&Alloc| read.shows(&state.jobs.get(alloc.job).key.namespace);
    let json = |alloc: &&Alloc| as_json(&state::alloc::document(state, alloc));
    if prefix.is_empty() {
        let rows = state.allocs.iter().map(|(_, alloc)| alloc).filter(shown);
        let rows = read.filtered("Allocation", rows, json)?.into_iter();
        return page(rows.map(|alloc| (Creation(alloc.created, alloc.id.0), alloc)), options);
    }
    let rows = state.allocs.with_prefix(&prefix).map(|row| state.allocs.get(row)).filter(shown);
    let rows = read.filtered("Allocation", rows, json)?.into_iter();
    page(rows.map(|alloc| (alloc.id.0, alloc)), options)
}
