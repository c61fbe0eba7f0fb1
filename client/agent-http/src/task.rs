//! Requests of tasks: a token that the servers know has to come with each.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::NodeAgent;
use crate::rights::TOKEN;

/// Longest token that is asked about.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

pub(crate) async fn check(State(agent): State<Arc<NodeAgent>>, request: Request, next: Next) -> Response {
    let Some(token) = token(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized").into_response();
    };
    if token.len() > TOKEN_BYTES_MAX {
        return (StatusCode::FORBIDDEN, "Forbidden").into_response();
    }
    match agent.servers.holder_of(token).await {
        Ok(Some(_)) => next.run(request).await,
        Ok(None) => (StatusCode::FORBIDDEN, "Forbidden").into_response(),
        Err(why) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("No path to a server: {why}")).into_response()
        }
    }
}

/// As everywhere in Nomad's API: a header of its own, or that of HTTP.
fn token(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get(&TOKEN).and_then(|value| value.to_str().ok()).filter(|token| !token.is_empty());
    own.or_else(|| {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_in_either_header() {
        let of = |name: &'static str, value: &'static str| {
            let headers: HeaderMap = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            token(&headers).map(str::to_string)
        };
        assert_eq!(of("x-nomad-token", "a").as_deref(), Some("a"));
        assert_eq!(of("authorization", "Bearer a").as_deref(), Some("a"));
        for (name, value) in [("x-nomad-token", ""), ("authorization", "Basic a"), ("authorization", "a")] {
            assert_eq!(of(name, value), None, "{name}: {value}");
        }
    }
}
