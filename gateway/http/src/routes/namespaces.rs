use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use model::Command;

use api::Namespace;
use state::State;

use super::write;
use crate::access::{Each, denied};
use crate::answer::{Answer, done};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Json, Read, Reading, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/namespaces", get(list))
        .route("/v1/namespace", write(upsert))
        .route("/v1/namespace/{name}", get(read).merge(write(upsert_named)).delete(remove))
}

async fn list(With(server): With<AppState>, read: Read<Each>) -> Answer {
    read.without_filter()?;
    let view = |state: &State, read: &Reading| {
        let names = state.namespaces.names().into_iter();
        let shown = names.filter(|name| name.starts_with(&read.options.prefix) && may_know(read, name));
        Ok(Page::whole(shown.filter_map(|name| state::namespace::document(&state.namespaces, name))))
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(name): Path<String>, read: Read<Each>) -> Answer {
    let index = |state: &State| match state.namespaces.get(&name) {
        Some(set) => set.modified,
        None => changed(state),
    };
    if !may_know(&read, &name) {
        return Err(denied());
    }
    let missing = || Failure::not_found("Namespace not found");
    let view = |state: &State| state::namespace::document(&state.namespaces, &name).ok_or_else(missing);
    server.read(&read, index, view).await
}

async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<Namespace>) -> Answer {
    change(&server, &write, Command::UpsertNamespace(Box::new(wanted))).await
}

async fn upsert_named(
    server: With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<Namespace>,
) -> Answer {
    if wanted.name != name {
        return Err(Failure::invalid("Namespace name does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    change(&server, &write, Command::DeleteNamespace { name }).await
}

async fn change(server: &AppState, write: &Write, command: Command) -> Answer {
    server.submit(write, command).await.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

/// One of them came with the cluster.
/// There is something that the caller may do in it.
fn may_know(read: &Reading, namespace: &str) -> bool {
    read.access.acl.knows_namespace(namespace)
}

fn changed(state: &State) -> Index {
    federation::List::Namespaces.changed(state)
}
