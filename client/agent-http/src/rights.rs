//! Whether a caller may look at this agent, or change it: the servers say so.

use std::sync::Arc;

use api::AclAccess;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::{NodeAgent, relay};

pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-nomad-token");
/// Longest answer about a caller; they have some hundred bytes.
const ANSWER_MAX: usize = 64 * 1024;

pub(crate) async fn check(State(agent): State<Arc<NodeAgent>>, request: Request, next: Next) -> Response {
    if !agent.access_control {
        return next.run(request).await;
    }
    let wants_to_write = request.method() != Method::GET;
    let mut question = Request::builder().uri("/v1/acl/access");
    for name in [TOKEN, header::AUTHORIZATION] {
        if let Some(value) = request.headers().get(&name) {
            question = question.header(name, value);
        }
    }
    let question = question.body(Body::empty()).expect("a path and headers that were read before");
    let answer = relay::pass_on(State(agent), question).await;
    if !answer.status().is_success() {
        return answer;
    }
    let body = to_bytes(answer.into_body(), ANSWER_MAX).await.unwrap_or_default();
    match serde_json::from_slice::<AclAccess>(&body) {
        Ok(access) if access.agent == "write" || (access.agent == "read" && !wants_to_write) => {
            next.run(request).await
        }
        Ok(_) => (StatusCode::FORBIDDEN, "Permission denied").into_response(),
        Err(error) => {
            let text = format!("the servers do not say who this is: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}
