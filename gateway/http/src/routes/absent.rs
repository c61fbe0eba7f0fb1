//! Parts of Nomad's API that this release does not have. Each says so; nothing answers as if it had worked.

use axum::Router;
use axum::routing::any;

use crate::app_state::AppState;
use crate::error::Failure;

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
    let routes = Router::new().route("/v1/agent/pprof/{*rest}", any(pprof));
    ENTERPRISE.iter().fold(routes, |routes, path| routes.route(path, any(async || Failure::enterprise())))
}

/// Profiles of Go's runtime, which this program does not have.
async fn pprof() -> Failure {
    Failure::unsupported(
        "this agent is no Go program: use a profiler of the operating system, like perf; /v1/agent/pprof is",
    )
}
