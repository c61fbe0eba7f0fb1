//! There is one namespace, and two node pools that are always there.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use std::collections::BTreeSet;

use api::{Namespace, NodePool};
use state::State;

use crate::answer::Answer;
use crate::error::Failure;
use crate::page::Page;
use crate::request::Read;
use crate::server::Server;

pub const DEFAULT: &str = "default";
const ALL: &str = "all";

pub fn router() -> Router<Server> {
    Router::new()
        .route("/v1/namespaces", get(list))
        .route("/v1/namespace/{name}", get(read))
        .route("/v1/node/pools", get(pools))
        .route("/v1/node/pool/{name}", get(pool))
}

/// # Errors
/// 400 for any namespace but the one there is.
pub fn check(namespace: &str) -> Result<(), Failure> {
    if namespace == DEFAULT {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "namespace {namespace:?} does not exist: this release has only {DEFAULT:?}"
    )))
}

async fn list(With(server): With<Server>, read: Read) -> Answer {
    let view = |_: &State, read: &Read| {
        let one = Some(namespace()).filter(|one| one.name.starts_with(&read.options.prefix));
        Ok(Page::whole(one.into_iter()))
    };
    server.list(read, first, view).await
}

async fn read(With(server): With<Server>, Path(name): Path<String>, read: Read) -> Answer {
    let found = (name == DEFAULT).then(namespace).ok_or_else(|| Failure::not_found("Namespace not found"));
    server.read(&read, first, |_| found).await
}

async fn pools(With(server): With<Server>, read: Read) -> Answer {
    let view = |state: &State, read: &Read| {
        let names = pool_names(state).into_iter().filter(|name| name.starts_with(&read.options.prefix));
        Ok(Page::whole(names.map(node_pool)))
    };
    server.list(read, |state| state.tables.nodes, view).await
}

async fn pool(With(server): With<Server>, Path(name): Path<String>, read: Read) -> Answer {
    let missing = || Failure::not_found("node pool not found");
    let view = |state: &State| pool_names(state).take(&name).map(node_pool).ok_or_else(missing);
    server.read(&read, |state| state.tables.nodes, view).await
}

/// Both came with the cluster.
fn first(_: &State) -> Index {
    Index(1)
}

fn namespace() -> Namespace {
    Namespace {
        name: DEFAULT.to_string(),
        description: "Default shared namespace".to_string(),
        create_index: 1,
        modify_index: 1,
        ..Namespace::default()
    }
}

/// A node brings its pool with it.
pub fn pool_names(state: &State) -> BTreeSet<String> {
    let of_nodes = state.nodes.rows().map(|row| state.nodes.cold(row).document.node_pool.clone());
    of_nodes.chain([ALL.to_string(), DEFAULT.to_string()]).collect()
}

fn node_pool(name: String) -> NodePool {
    let description = match name.as_str() {
        ALL => "Node pool with all nodes in the cluster.",
        DEFAULT => "Default node pool.",
        _ => "",
    };
    NodePool {
        name,
        description: description.to_string(),
        create_index: 1,
        modify_index: 1,
        ..NodePool::default()
    }
}
