//! Policies, roles, tokens, and how one logs in. While access control is off there are none: everything says so.

mod bindings;
mod forgetting;
mod logins;
mod methods;
mod one_time;
mod policies;
mod roles;
mod tokens;

use api::AclAccess;
use axum::Router;
use axum::extract::{Request, State as With};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use base::{Index, Uuid};
use state::State;

use crate::access::{Access, Each, own_policies};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, random};

pub(super) fn router(server: &AppState) -> Router<AppState> {
    let unknown = any(async || Failure::not_found("resource not found"));
    Router::new()
        .merge(policies::router())
        .merge(roles::router())
        .merge(tokens::router())
        .merge(one_time::router())
        .merge(methods::router())
        .merge(bindings::router())
        .merge(logins::router())
        .route("/v1/acl/{*rest}", unknown)
        .route_layer(from_fn_with_state(server.clone(), only_while_on))
        .merge(tokens::own_router())
        .route("/v1/acl/access", get(own_access))
}

async fn only_while_on(With(server): With<AppState>, request: Request, next: Next) -> Response {
    if server.agent.access.enabled {
        return next.run(request).await;
    }
    Failure::invalid("ACL support disabled").into_response()
}

/// What the caller may do, also while access control is off.
async fn own_access(With(server): With<AppState>, call: Call<Each>) -> Answer {
    let Access { acl, .. } = &call.access;
    let word = |writes: bool, reads: bool| match (writes, reads) {
        (true, _) => "write",
        (_, true) => "read",
        _ => "",
    };
    let caller = call.access.caller();
    Ok(answer::json(&AclAccess {
        accessor_id: caller.accessor,
        name: caller.name,
        management: acl.is_management(),
        policies: own_policies(&server.control.state(), &call.access).into(),
        agent: word(acl.writes_agent(), acl.reads_agent()).to_string(),
        node: word(acl.writes_nodes(), acl.reads_nodes()).to_string(),
        operator: word(acl.writes_operator(), acl.reads_operator()).to_string(),
    }))
}

/// Policies and roles, and whose they are.
fn changed(state: &State) -> Index {
    federation::List::Roles.changed(state)
}

pub(super) fn new_id() -> Uuid {
    Uuid::from_random(random())
}
