//! Parts of Nomad's API that this release does not have. They say so; nothing answers as if it had worked.

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::json;

use crate::answer;
use crate::app_state::AppState;
use crate::error::Failure;

/// Known to Nomad's API, not built.
const UNSUPPORTED: &[&str] = &[
    "/v1/job/{id}/action",
    "/v1/vars",
    "/v1/var/{*rest}",
    "/v1/volumes",
    "/v1/volumes/{*rest}",
    "/v1/volume/{*rest}",
    "/v1/plugins",
    "/v1/plugin/{*rest}",
    "/v1/client/identity",
    "/v1/client/identity/renew",
    "/v1/agent/monitor/export",
    "/v1/agent/schedulers/config",
    "/v1/agent/keyring/{op}",
    "/v1/agent/host",
    "/v1/agent/reload",
    "/v1/agent/pprof/{*rest}",
    "/v1/operator/keyring/{*rest}",
    "/v1/operator/upgrade-check/vault-workload-identity",
    "/.well-known/jwks.json",
    "/.well-known/openid-configuration",
];

/// Only ever in the other edition.
const ENTERPRISE: &[&str] = &[
    "/v1/quotas",
    "/v1/quota-usages",
    "/v1/quota",
    "/v1/quota/{name}",
    "/v1/quota/usage/{name}",
    "/v1/sentinel/policies",
    "/v1/sentinel/policy/{name}",
    "/v1/recommendations",
    "/v1/recommendation",
    "/v1/recommendation/{id}",
    "/v1/recommendations/apply",
    "/v1/operator/utilization",
];

pub(super) fn router() -> Router<AppState> {
    let routes = Router::new()
        .route("/v1/acl/{*rest}", any(async || Failure::invalid("ACL support disabled")))
        .route("/v1/acl/token/self", get(own_token));
    let routes = UNSUPPORTED.iter().fold(routes, |routes, path| routes.route(path, any(unsupported)));
    ENTERPRISE.iter().fold(routes, |routes, path| routes.route(path, any(async || enterprise())))
}

async fn unsupported(method: Method, uri: Uri) -> Failure {
    Failure::unsupported(format_args!("{method} {} is", uri.path()))
}

fn enterprise() -> Failure {
    Failure::new(StatusCode::NOT_IMPLEMENTED, "Nomad Enterprise only endpoint")
}

/// The token of every caller while access control is off.
async fn own_token() -> Response {
    let token = json!({
        "AccessorID": "acls-disabled",
        "SecretID": "",
        "Name": "ACLs disabled token",
        "Type": "client",
        "Policies": null,
        "Roles": null,
        "Global": false,
        "CreateTime": "0001-01-01T00:00:00Z",
        "CreateIndex": 0,
        "ModifyIndex": 0,
    });
    answer::json(&token).into_response()
}
