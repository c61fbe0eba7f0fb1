//! There is one namespace.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;

use api::Namespace;
use state::State;

use crate::answer::Answer;
use crate::error::Failure;
use crate::page::Page;
use crate::request::Read;
use crate::server::Server;

pub const DEFAULT: &str = "default";

pub fn router() -> Router<Server> {
    Router::new().route("/v1/namespaces", get(list)).route("/v1/namespace/{name}", get(read))
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

/// It came with the cluster.
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
