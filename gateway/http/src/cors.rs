//! Pages of other origins: what browsers ask first, and the headers that an operator configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, HOST, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, UPGRADE,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::TOKEN;
use crate::error::Failure;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Paths that pages of every origin may use, and with which methods.
const OPEN: [(&str, &str); 7] = [
    ("/v1/client/allocation/", "GET, HEAD"),
    ("/v1/client/fs/", "GET, HEAD"),
    ("/v1/client/identity", "GET, HEAD"),
    ("/v1/client/metadata", "GET, HEAD"),
    ("/v1/client/stats", "GET, HEAD"),
    ("/v1/var/", "GET, HEAD, PUT, DELETE"),
    ("/v1/vars", "GET, HEAD"),
];

/// The configured headers. One that HTTP cannot carry is left out: the configuration was checked before.
pub(crate) fn configured(headers: &BTreeMap<String, String>) -> HeaderMap {
    let parsed = |(name, value): (&String, &String)| {
        let header = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
        if header.is_none() {
            tracing::warn!(name, "a configured header is left out: it is not valid");
        }
        header
    };
    headers.iter().filter_map(parsed).collect()
}

/// Around every route: `OPTIONS` is answered here, because routes that take any method would run for it; and every answer
/// gets the configured headers.
pub(crate) async fn preflight(
    State(headers): State<Arc<HeaderMap>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match *request.method() {
        Method::OPTIONS => allowed(&headers, &request),
        _ if is_foreign(&headers, &request) => {
            let why = "a page of another origin may not change anything here: \
                       http_api_response_headers can allow its origin";
            Failure::forbidden(why).into_response()
        }
        _ => next.run(request).await,
    };
    for (name, value) in headers.iter() {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    response
}

/// A browser sends this for a page that somebody else has written, and it would change something: whoever can reach this agent
/// is led to do it by looking at a page. A page that can set the header of a token has asked before, and was let.
fn is_foreign(configured: &HeaderMap, request: &Request) -> bool {
    let headers = request.headers();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD)
        // These take any method.
        && !request.uri().path().ends_with("/gc");
    let is_socket = headers.contains_key(UPGRADE);
    if (reads || headers.contains_key(TOKEN)) && !is_socket {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or(request.uri().authority().map(|authority| authority.as_str()));
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    let is_allowed =
        configured.get(ACCESS_CONTROL_ALLOW_ORIGIN).is_some_and(|known| known == "*" || known == origin);
    !is_allowed && (own.is_none() || own != host)
}

fn allowed(configured: &HeaderMap, request: &Request) -> Response {
    if configured.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = request.uri().path();
    let Some((_, methods)) = OPEN.iter().find(|(start, _)| path.starts_with(start)) else {
        return Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Invalid method").into_response();
    };
    let any = HeaderValue::from_static("*");
    let wanted = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or(&any);
    let headers = [
        (ACCESS_CONTROL_ALLOW_ORIGIN, any.clone()),
        (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods)),
        (ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()),
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true")),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
