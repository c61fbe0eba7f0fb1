use acl::Policy;
use api::{ACLPolicyListStub, AclPolicyRead};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use federation::List;
use model::Command;
use model::document::ACLPolicy;
use state::State;

use super::super::write;
use super::changed;
use crate::access::{Each, denied, own_policies};
use crate::answer::{Answer, done};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Json, Read, Reading, Write, as_json};

/// Everybody may know what everybody may do.
const ANONYMOUS: &str = "anonymous";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/policies", get(list))
        .route("/v1/acl/policy", write(upsert))
        .route("/v1/acl/policy/self", get(own))
        .route("/v1/acl/policy/{name}", get(read).merge(write(upsert_named)).delete(remove))
}

/// All of them for who manages, else the caller's own.
async fn list(With(server): With<AppState>, read: Read<Each>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let names = state.acl.policies.names().into_iter();
        let shown =
            names.filter(|name| name.starts_with(&read.options.prefix) && is_shown(state, read, name));
        let shown =
            shown.filter_map(|name| state::acl::policy(&state.acl, name)).map(ACLPolicyListStub::from);
        let shown = read.filtered("ACLPolicyListStub", shown, as_json)?;
        Ok(Page::whole(shown.into_iter()))
    };
    // Which policies are the caller's own may change with its token.
    let manages = read.access.acl.is_management();
    let index = move |state: &State| if manages { List::Policies.changed(state) } else { changed(state) };
    server.list(read, index, view).await
}

async fn own(With(server): With<AppState>, read: Read<Each>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let names = own_policies(state, &read.access).into_iter();
        Ok(Page::whole(names.filter_map(|name| state::acl::policy(&state.acl, &name))))
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(name): Path<String>, read: Read<Each>) -> Answer {
    let index = |state: &State| match state.acl.policies.get(&name) {
        Some(set) => set.modified,
        None => changed(state),
    };
    let view = |state: &State| {
        if !is_shown(state, &read, &name) {
            return Err(denied());
        }
        let policy = state::acl::policy(&state.acl, &name);
        let policy = policy.ok_or_else(|| Failure::not_found("ACL policy not found"))?;
        let rules_json = Policy::parse(&policy.rules).ok().map(|rules| as_json(&rules));
        Ok(AclPolicyRead { policy, rules_json })
    };
    server.read(&read, index, view).await
}

async fn upsert_named(
    server: With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<ACLPolicy>,
) -> Answer {
    if wanted.name != name {
        return Err(Failure::invalid("ACL policy name does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

/// What cannot be understood is refused now: later it would be a rule that does not hold.
async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<ACLPolicy>) -> Answer {
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    Policy::parse(&wanted.rules).map_err(|why| Failure::invalid(format!("failed to parse rules: {why}")))?;
    let receipt = server.submit(&write, Command::UpsertAclPolicy(Box::new(wanted))).await?;
    Ok(done(receipt.index))
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    let deleted = server.submit(&write, Command::DeleteAclPolicy { name }).await;
    deleted.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

fn is_shown(state: &State, read: &Reading, name: &str) -> bool {
    let access = &read.access;
    access.acl.is_management()
        || name == ANONYMOUS
        || own_policies(state, access).iter().any(|own| own == name)
}
