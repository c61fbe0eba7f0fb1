//! What this server has no history of, another one may have: each keeps as much as its own settings say, and one that joined later
//! begins with the state of that moment.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use base::Index;

use crate::app_state::AppState;

/// Where to ask for it.
const AT: HeaderName = HeaderName::from_static("x-sojourn-history-at");
/// Longest text of such an answer.
const TEXT_MAX: usize = 16 << 10;

/// What was asked for lies before this index, the oldest one that this server has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone(pub Index);

/// Another server, and the oldest index of which it has the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHistory {
    /// `HOST:PORT` of its HTTP API.
    pub http: String,
    pub oldest: Index,
}

/// Adds to an answer 410 which of the other servers goes back the farthest, if one goes back farther than this one.
pub(crate) async fn point(State(server): State<AppState>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let Some(Gone(oldest)) = response.extensions().get::<Gone>().copied() else { return response };
    let others = server.cluster.histories().await.into_iter().filter(|other| other.oldest < oldest);
    let Some(OtherHistory { http, oldest }) = others.min_by_key(|other| (other.oldest, other.http.clone()))
    else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, TEXT_MAX).await.unwrap_or_default();
    let text = format!("{}; {http} has it from index {oldest} on", String::from_utf8_lossy(&text));
    parts.headers.remove(header::CONTENT_LENGTH);
    if let Ok(at) = HeaderValue::from_str(&http) {
        parts.headers.insert(AT, at);
    }
    Response::from_parts(parts, Body::from(text))
}
