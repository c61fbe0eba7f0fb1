//! Pools of nodes.

use acl::PoolCapability;
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use model::Command;
use model::document::NodePool;
use state::State;
use state::node::NodeRow;
use state::pool::{ALL, DEFAULT};

use super::write;
use crate::access::{Each, ListJobs, ReadNodes, denied};
use crate::answer::{Answer, done};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::page;
use crate::request::{Json, Read, Reading, Write, as_json};
use crate::view;
use crate::view::node::{Extras, stub};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/node/pools", get(list).merge(write(upsert)))
        .route("/v1/node/pool/{name}", get(read).merge(write(upsert_named)).delete(remove))
        .route("/v1/node/pool/{name}/nodes", get(nodes))
        .route("/v1/node/pool/{name}/jobs", get(jobs))
}

async fn list(With(server): With<AppState>, read: Read<Each>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let names = state.pools.names().into_iter();
        let names = names.filter(|name| name.starts_with(&read.options.prefix) && check(read, name).is_ok());
        let all = names.filter_map(|name| state::pool::document(&state.pools, name));
        let shown = read.filtered("NodePool", all, as_json)?;
        page(shown.into_iter().map(|pool| (pool.name.clone(), pool)), &read.options)
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(name): Path<String>, read: Read<Each>) -> Answer {
    check(&read, &name)?;
    let index = |state: &State| match state.pools.get(&name) {
        Some(pool) => pool.modified,
        None => changed(state),
    };
    let missing = || Failure::not_found("node pool not found");
    server.read(&read, index, |state| state::pool::document(&state.pools, &name).ok_or_else(missing)).await
}

async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<NodePool>) -> Answer {
    let receipt = server.submit(&write, Command::UpsertNodePool(Box::new(wanted))).await?;
    Ok(done(receipt.index))
}

async fn upsert_named(
    server: With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<NodePool>,
) -> Answer {
    if wanted.name != name {
        return Err(Failure::invalid("Node pool name does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    let deleted = server.submit(&write, Command::DeleteNodePool { name }).await;
    deleted.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

async fn nodes(With(server): With<AppState>, Path(name): Path<String>, read: Read<ReadNodes>) -> Answer {
    no_prefix(&read)?;
    check(&read, &name)?;
    let extras = Extras { resources: read.params.boolean("resources")?, os: read.params.boolean("os")? };
    let view = move |state: &State, read: &Reading| {
        let of = |row: NodeRow| state.nodes.cold(row);
        let rows = state.nodes.rows().filter(|row| name == ALL || of(*row).document.node_pool == name);
        let rows = read.filtered("Node", rows, |row| as_json(&state::node::document(&state.nodes, *row)))?;
        let rows = rows.into_iter().map(|row| (of(row).id.0, row));
        Ok(page(rows, &read.options)?.map(|row| stub(&state.nodes, row, extras)))
    };
    server.list(read, |state: &State| state.tables.nodes, view).await
}

async fn jobs(With(server): With<AppState>, Path(name): Path<String>, read: Read<ListJobs>) -> Answer {
    no_prefix(&read)?;
    check(&read, &name)?;
    let with_meta = read.params.boolean("meta")?;
    let view = move |state: &State, read: &Reading| {
        let in_it = |job: &state::job::JobState| {
            let wanted = &job.current().job;
            let pool = wanted.node_pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or(DEFAULT);
            pool == name && read.shows(&job.key.namespace)
        };
        let jobs = state.jobs.iter().map(|(_, job)| job).filter(|job| in_it(job));
        let jobs = read.filtered("Job", jobs, |job| super::jobs::as_json(job))?;
        let shown = page(jobs.into_iter().map(|job| (job.key.clone(), job)), &read.options)?;
        Ok(shown.map(|job| view::job::stub(state, job, with_meta)))
    };
    server.list(read, super::jobs::index, view).await
}

/// # Errors
/// 403: the caller may not read this pool.
fn check(read: &Reading, pool: &str) -> Result<(), Failure> {
    if read.access.acl.allows_pool(pool, PoolCapability::Read) { Ok(()) } else { Err(denied()) }
}

fn no_prefix(read: &Reading) -> Result<(), Failure> {
    if read.options.prefix.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid("prefix queries are not supported here"))
}

/// Two of them came with the cluster.
fn changed(state: &State) -> Index {
    federation::List::Pools.changed(state)
}
