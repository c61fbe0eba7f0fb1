//! Parts of Nomad's API that this release does not have. What would change something says so; nothing answers as if it had
//! worked. What is read is empty: no object of these kinds can exist, and Nomad's web interface gives up on a 501.

use axum::Router;
use axum::extract::State as With;
use axum::http::{Method, Uri};
use axum::routing::{any, get};
use base::Index;
use serde_json::Value;
use state::State;

use crate::access::Each;
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::Read;

/// Lists of objects of which there are none.
const EMPTY: &[&str] = &["/v1/vars"];

/// Objects of which there are none, and what Nomad says then.
const MISSING: &[(&str, &str)] = &[("/v1/var/{*path}", "variable not found")];

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
    let routes = Router::new().route("/v1/agent/pprof/{*rest}", any(pprof)).route(
        "/.well-known/openid-configuration",
        get(async || Failure::not_found("OIDC Discovery endpoint disabled")),
    );
    let routes = EMPTY.iter().fold(routes, |routes, path| routes.route(path, get(empty)));
    let routes = MISSING.iter().fold(routes, |routes, (path, text)| {
        let missing = async |server, read| missing(server, read, text).await;
        routes.route(path, get(missing).fallback(unsupported))
    });
    ENTERPRISE.iter().fold(routes, |routes, path| routes.route(path, any(async || Failure::enterprise())))
}

async fn unsupported(method: Method, uri: Uri) -> Failure {
    Failure::unsupported(format_args!("{method} {} is", uri.path()))
}

/// Profiles of Go's runtime, which this program does not have.
async fn pprof() -> Failure {
    Failure::unsupported(
        "this agent is no Go program: use a profiler of the operating system, like perf; /v1/agent/pprof is",
    )
}

async fn empty(With(server): With<AppState>, read: Read<Each>) -> Answer {
    server.list(read, unchanged, |_, _| Ok(Page::<Value>::whole(std::iter::empty()))).await
}

async fn missing(With(server): With<AppState>, read: Read<Each>, text: &'static str) -> Answer {
    server.read(&read, unchanged, |_| Err::<Value, _>(Failure::not_found(text))).await
}

/// Nothing ever came or went.
fn unchanged(_: &State) -> Index {
    Index(1)
}
