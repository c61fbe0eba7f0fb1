//! What who logs in gets.

use acl::login::{check_selector, check_template};
use api::ACLBindingRuleListStub;
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::{Index, Uuid};
use model::Command;
use model::document::ACLBindingRule;
use state::State;

use super::super::write;
use super::new_id;
use crate::access::{Management, denied};
use crate::answer::{Answer, done, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Json, Read, Reading, Write, as_json};

const UNKNOWN: &str = "ACL binding rule not found";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/binding-rules", get(list))
        .route("/v1/acl/binding-rule", write(upsert))
        .route("/v1/acl/binding-rule/{id}", get(read).merge(write(update)).delete(remove))
}

async fn list(With(server): With<AppState>, read: Read<Management>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let ids = state.acl.rules.names().into_iter().filter(|id| id.starts_with(&read.options.prefix));
        let stubs = ids.filter_map(|id| state::acl::binding_rule(&state.acl, id));
        let shown =
            read.filtered("ACLBindingRuleListStub", stubs.map(ACLBindingRuleListStub::from), as_json)?;
        Ok(Page::whole(shown.into_iter()))
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(id): Path<String>, read: Read<Management>) -> Answer {
    let view =
        |state: &State| state::acl::binding_rule(&state.acl, &id).ok_or_else(|| Failure::not_found(UNKNOWN));
    server.read(&read, changed, view).await
}

/// Without an id a new one. What cannot be understood is refused now: later it would be a rule that holds for nobody.
async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<ACLBindingRule>) -> Answer {
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    check_selector(&wanted.selector)
        .map_err(|why| Failure::invalid(format!("invalid binding rule selector: {why}")))?;
    check_template(&wanted.bind_name, &[])
        .map_err(|why| Failure::invalid(format!("invalid bind name: {why}")))?;
    let (id, command) = if wanted.id.is_empty() {
        let wanted = ACLBindingRule { id: new_id().to_string(), ..wanted };
        (wanted.id.clone(), Command::CreateBindingRule(Box::new(wanted)))
    } else {
        (wanted.id.clone(), Command::UpdateBindingRule(Box::new(wanted)))
    };
    let receipt = server.submit(&write, command).await?;
    let state = server.after(&receipt).await?;
    let rule = state::acl::binding_rule(&state.acl, &id);
    written(receipt.index, &rule.ok_or_else(|| Failure::not_found("the binding rule was deleted meanwhile"))?)
}

async fn update(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(wanted): Json<ACLBindingRule>,
) -> Answer {
    if wanted.id != id {
        return Err(Failure::invalid("ACL binding rule ID does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

async fn remove(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    let rule: Uuid = id.parse().map_err(|_| Failure::internal(UNKNOWN))?;
    let deleted = server.submit(&write, Command::DeleteBindingRule { rule }).await;
    deleted.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

/// What a rule gives depends on its auth method: who waits for rules, as other regions do, waits for both.
fn changed(state: &State) -> Index {
    federation::logins_changed(state)
}
