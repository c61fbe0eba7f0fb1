//! How answers are written: JSON bytes, the headers of reads and writes, indentation and compression.

use std::panic::AssertUnwindSafe;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Query, Request};
use axum::http::Uri;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::Index;
use futures_util::FutureExt;
use serde::Serialize;
use tracing::Instrument;

use crate::error::Failure;
use crate::rendering::InParts;
use crate::rewriting::Rewriter;

pub(crate) type Answer = Result<Response, Failure>;

pub(crate) const INDEX: HeaderName = HeaderName::from_static("x-nomad-index");
const KNOWN_LEADER: HeaderName = HeaderName::from_static("x-nomad-knownleader");
const LAST_CONTACT: HeaderName = HeaderName::from_static("x-nomad-lastcontact");
const NEXT_TOKEN: HeaderName = HeaderName::from_static("x-nomad-nexttoken");

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Shorter answers are not compressed: it costs more than it saves, and no client can see the difference.
const GZIP_MIN: usize = 1024;

/// Larger answers are indented and compressed off the threads that serve all requests (measured in tens of
/// megabytes a second: this is about a millisecond).
const INLINE_MAX: usize = 64 * 1024;

/// What a read says about itself besides its result.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub index: Index,
    pub known_leader: bool,
    /// Where the next page begins.
    pub next_token: Option<String>,
}

/// The value as JSON, without a newline at the end.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Response {
    let bytes = serde_json::to_vec(value).expect("types of the HTTP API have a JSON form");
    ([(header::CONTENT_TYPE, JSON)], bytes).into_response()
}

/// The answer to a write: what it led to, and the index it is in.
pub(crate) fn written<T: Serialize>(index: Index, value: &T) -> Answer {
    let mut response = json(value);
    response.headers_mut().insert(INDEX, HeaderValue::from(index.0));
    Ok(response)
}

/// The answer to a write that has nothing to say but the index it is in.
pub(crate) fn done(index: Index) -> Response {
    [(INDEX, HeaderValue::from(index.0))].into_response()
}

/// A panic ends its own request, and nothing else.
pub(crate) async fn contain_panics(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let why = base::panic_text(&*panic);
            tracing::error!(%method, path, why, "a request panicked");
            Failure::internal("the server failed while it answered: its log says how").into_response()
        }
    }
}

/// Puts the headers of a read on its answer, failures included.
pub(crate) fn with_meta(mut response: Response, meta: &Meta) -> Response {
    let headers = response.headers_mut();
    headers.insert(INDEX, HeaderValue::from(meta.index.0));
    headers.insert(LAST_CONTACT, HeaderValue::from(0));
    let known = if meta.known_leader { "true" } else { "false" };
    headers.insert(KNOWN_LEADER, HeaderValue::from_static(known));
    let next = meta.next_token.as_deref().and_then(|token| HeaderValue::from_str(token).ok());
    if let Some(next) = next {
        headers.insert(NEXT_TOKEN, next);
    }
    response
}

/// Around every route: indentation when asked for, compression when accepted. Streams pass as they are, except for lists
/// that come in parts.
pub(crate) async fn finish(request: Request, next: Next) -> Response {
    let pretty = wants_pretty(request.uri());
    let gzip = accepts_gzip(request.headers());
    let span = tracing::debug_span!("http.request", method = %request.method(), path = request.uri().path());
    let mut response = next.run(request).instrument(span.clone()).await;
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
    // Caches must keep answers to pages of other origins apart.
    let is_open = response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    let vary = if is_open { "Accept-Encoding, Origin" } else { "Accept-Encoding" };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static(vary));
    let in_parts = response.extensions().get::<InParts>().is_some();
    let length = response.body().size_hint().exact().unwrap_or(0);
    if length == 0 && !in_parts {
        return response;
    }
    let is_long = in_parts || length >= GZIP_MIN as u64;
    let pretty = pretty && response.headers().get(header::CONTENT_TYPE) == Some(&JSON);
    let gzip = gzip && is_long && !response.headers().contains_key(header::CONTENT_ENCODING);
    if !pretty && !gzip {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    if gzip {
        parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let rewriter = Rewriter::new(pretty, gzip);
    if in_parts {
        return Response::from_parts(parts, rewriter.stream(body));
    }
    let rewritten = match to_bytes(body, usize::MAX).await {
        Ok(bytes) if bytes.len() > INLINE_MAX => {
            let rewritten = tokio::task::spawn_blocking(move || rewriter.whole(&bytes)).await;
            rewritten.map_err(Failure::from)
        }
        Ok(bytes) => Ok(rewriter.whole(&bytes)),
        Err(error) => Err(Failure::internal(error.to_string())),
    };
    match rewritten {
        Ok(bytes) => Response::from_parts(parts, Body::from(bytes)),
        Err(failure) => failure.into_response(),
    }
}

fn wants_pretty(uri: &Uri) -> bool {
    // Most requests have no such parameter and are not taken apart a second time.
    uri.query().is_some_and(|query| query.contains("pretty"))
        && Query::<Vec<(String, String)>>::try_from_uri(uri)
            .is_ok_and(|Query(pairs)| api::Params::new(pairs).pretty())
}

pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().strip_prefix("q=").and_then(|q| q.parse().ok()) == Some(0.0_f32);
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn compression_is_used_when_it_is_accepted() {
        let accepts = |value: &'static str| {
            accepts_gzip(&[(header::ACCEPT_ENCODING, HeaderValue::from_static(value))].into_iter().collect())
        };
        assert!(accepts("gzip") && accepts("deflate, GZIP;q=0.5"));
        assert!(!accepts("") && !accepts("identity") && !accepts("gzip;q=0, br") && !accepts("gzip; q=0.0"));
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_the_next_request_works() {
        async fn fails() -> &'static str {
            panic!("a bug")
        }
        let routes = Router::new().route("/", get(fails)).route("/next", get(async || "fine"));
        let routes = routes.layer(from_fn(contain_panics));
        let response = routes.clone().oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), 1024).await.unwrap();
        assert_eq!(body, "the server failed while it answered: its log says how");
        let next = routes.oneshot(Request::get("/next").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(next.status(), StatusCode::OK);
    }
}
