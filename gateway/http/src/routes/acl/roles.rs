use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Uuid;
use model::Command;
use model::document::ACLRole;
use state::State;

use super::super::write;
use super::{changed, new_id};
use crate::access::{Access, Each, denied};
use crate::answer::{Answer, done, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Json, Read, Reading, Write, as_json};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/roles", get(list))
        .route("/v1/acl/role", write(upsert))
        .route("/v1/acl/role/name/{name}", get(read_named))
        .route("/v1/acl/role/{id}", get(read).merge(write(update)).delete(remove))
}

/// All of them for who manages, else the caller's own.
async fn list(With(server): With<AppState>, read: Read<Each>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let roles = all(state).filter(|role| role.id.starts_with(&read.options.prefix));
        let shown = roles.filter(|role| is_shown(state, &read.access, role));
        Ok(Page::whole(read.filtered("ACLRoleListStub", shown, as_json)?.into_iter()))
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(id): Path<String>, read: Read<Each>) -> Answer {
    one(&server, &read, |role| role.id == id).await
}

async fn read_named(With(server): With<AppState>, Path(name): Path<String>, read: Read<Each>) -> Answer {
    one(&server, &read, |role| role.name == name).await
}

async fn one(server: &AppState, read: &Reading, is_meant: impl Fn(&ACLRole) -> bool) -> Answer {
    let view = |state: &State| {
        let role = all(state).find(|role| is_meant(role));
        match role {
            Some(role) if is_shown(state, &read.access, &role) => Ok(role),
            None if read.access.acl.is_management() => Err(Failure::not_found("ACL role not found")),
            _ => Err(denied()),
        }
    };
    server.read(read, changed, view).await
}

/// Without an id a new one.
async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<ACLRole>) -> Answer {
    let (id, command) = if wanted.id.is_empty() {
        let wanted = ACLRole { id: new_id().to_string(), ..wanted };
        (wanted.id.clone(), Command::CreateAclRole(Box::new(wanted)))
    } else {
        (wanted.id.clone(), Command::UpdateAclRole(Box::new(wanted)))
    };
    let receipt = server.submit(&write, command).await?;
    let state = server.after(&receipt).await?;
    let role = all(&state).find(|role| role.id == id);
    written(receipt.index, &role.ok_or_else(|| Failure::not_found("the role was deleted meanwhile"))?)
}

async fn update(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(wanted): Json<ACLRole>,
) -> Answer {
    if wanted.id != id {
        return Err(Failure::invalid("ACL role ID does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

async fn remove(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let role: Uuid = id.parse().map_err(|_| Failure::internal("ACL role not found"))?;
    let deleted = server.submit(&write, Command::DeleteAclRole { role }).await;
    deleted.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

fn all(state: &State) -> impl Iterator<Item = ACLRole> {
    let ids = state.acl.roles.names().into_iter().filter_map(|id| id.parse().ok());
    ids.filter_map(|id| state::acl::role(&state.acl, id))
}

fn is_shown(state: &State, access: &Access, role: &ACLRole) -> bool {
    let token = || access.accessor().and_then(|accessor| state.acl.token(accessor));
    access.acl.is_management()
        || token().is_some_and(|token| token.document.roles.iter().any(|link| link.id == role.id))
}
