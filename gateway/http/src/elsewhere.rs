//! What this server has no history of, another one may have: each keeps as much as its own settings say, and one that joined later
//! begins with the state of that moment. Reads of it are answered there.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, UPGRADE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use base::Index;
use wire::CallerAddress;

use crate::app_state::AppState;
use crate::request::FORK;

/// Where it was answered, or is to be asked for.
const AT: HeaderName = HeaderName::from_static("x-sojourn-history-at");
/// Stands on a request that another server has passed on: it goes no further.
const PASSED: HeaderName = HeaderName::from_static("x-sojourn-history-passed");
/// Longest text of an answer 410.
const TEXT_MAX: usize = 16 << 10;

/// What was asked for lies before this index, the oldest one that this server has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone(pub Index);

/// Another server, and the oldest index of which it has the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHistory {
    /// `HOST:PORT` of its RPC, which servers use.
    pub rpc: String,
    /// `HOST:PORT` of its HTTP API.
    pub http: String,
    pub oldest: Index,
}

/// Has the server that goes back the farthest answer in place of 410, if one goes back farther than this one. Where it cannot, the
/// answer 410 names it.
pub(crate) async fn point(State(server): State<AppState>, request: Request, next: Next) -> Response {
    let again = repeated(&request);
    let response = next.run(request).await;
    let Some(Gone(oldest)) = response.extensions().get::<Gone>().copied() else { return response };
    let others = server.cluster.histories().await.into_iter().filter(|other| other.oldest < oldest);
    let Some(other) = others.min_by_key(|other| (other.oldest, other.http.clone())) else { return response };
    if let Some(again) = again {
        match server.regions.forward_to(&other.rpc, again).await {
            Ok(answer) if answer.status() != StatusCode::GONE => return named(answer, &other.http),
            // It was before that one's history too.
            Ok(_) => {}
            Err(error) => tracing::debug!(at = other.http, %error, "history is not read elsewhere"),
        }
    }
    pointed(response, &other).await
}

/// The same request for another server: a read that nobody has passed on before. Forks are of one server.
fn repeated(request: &Request) -> Option<Request> {
    let (headers, query) = (request.headers(), request.uri().query().unwrap_or_default());
    if request.method() != Method::GET
        || headers.contains_key(FORK)
        || [PASSED, UPGRADE].iter().any(|name| headers.contains_key(name))
        || query.split('&').any(|pair| pair.starts_with("fork="))
    {
        return None;
    }
    let mut again = Request::new(Body::empty());
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = headers.clone();
    again.headers_mut().remove(CONTENT_LENGTH);
    again.headers_mut().insert(PASSED, HeaderValue::from_static("1"));
    if let Some(caller) = request.extensions().get::<CallerAddress>() {
        again.extensions_mut().insert(*caller);
    }
    Some(again)
}

fn named(mut answer: Response, http: &str) -> Response {
    if let Ok(at) = HeaderValue::from_str(http) {
        answer.headers_mut().insert(AT, at);
    }
    answer
}

/// Which of the other servers goes back the farthest, in an answer 410.
async fn pointed(response: Response, OtherHistory { http, oldest, .. }: &OtherHistory) -> Response {
    if response.headers().contains_key(CONTENT_ENCODING) {
        return named(response, http);
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, TEXT_MAX).await.unwrap_or_default();
    let text = format!("{}; {http} has it from index {oldest} on", String::from_utf8_lossy(&text));
    parts.headers.remove(CONTENT_LENGTH);
    named(Response::from_parts(parts, Body::from(text)), http)
}
