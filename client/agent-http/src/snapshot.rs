use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use node::LocalNode;
use node::files::snapshot;

/// What a node answers itself, also where a server answers everything else: what an allocation of it leaves to the one that
/// replaces it on another node.
pub fn router(node: LocalNode) -> Router {
    Router::new().route("/v1/client/allocation/{id}/snapshot", get(send)).with_state(node)
}

async fn send(State(node): State<LocalNode>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let token = headers.get("x-nomad-token").and_then(|token| token.to_str().ok()).unwrap_or_default();
    let mut pieces = match snapshot::snapshot(&node, &id, token) {
        Ok(pieces) => pieces,
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return (status, error.to_string()).into_response();
        }
    };
    let stream = futures_util::stream::poll_fn(move |context| pieces.poll_recv(context));
    ([(header::CONTENT_TYPE, "application/x-tar")], Body::from_stream(stream)).into_response()
}
