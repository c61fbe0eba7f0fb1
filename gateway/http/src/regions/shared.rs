//! Writes of what all regions have in common: they are decided in the authoritative region, and come back from there.

use axum::extract::Request;
use axum::http::Method;
use base::Uuid;
use serde::Deserialize;

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::whole_body;

/// Whether a request writes a policy, a role, a global token, a namespace or a node pool.
///
/// # Errors
/// Its body does not come.
pub(super) async fn is_decided_for_all(
    server: &AppState,
    request: Request,
) -> Result<(bool, Request), Failure> {
    if !matches!(*request.method(), Method::PUT | Method::POST | Method::DELETE) {
        return Ok((false, request));
    }
    let path = request.uri().path();
    let Some(rest) = path.strip_prefix("/v1/acl/token") else {
        return Ok((is_of_all(path), request));
    };
    let named = rest.strip_prefix('/').unwrap_or_default().to_string();
    let is_of_one = rest.is_empty() || named.parse::<Uuid>().is_ok();
    if !is_of_one {
        return Ok((false, request));
    }
    if request.method() == Method::DELETE {
        return Ok((is_global(server, &named, false), request));
    }
    let (request, body) = whole_body(request, server).await?;
    // What cannot be read is refused where the rest of it is read.
    let token: Token = serde_json::from_slice(&body).unwrap_or_default();
    let accessor = if named.is_empty() { &token.accessor_id } else { &named };
    let is_new = accessor.is_empty() || !token.secret_id.is_empty();
    Ok((token.global || is_global(server, accessor, is_new), request))
}

fn is_of_all(path: &str) -> bool {
    let below =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path == "/v1/acl/bootstrap"
        || path == "/v1/node/pools"
        || ["/v1/acl/policy", "/v1/acl/role", "/v1/namespace", "/v1/node/pool"].into_iter().any(below)
}

/// A token that is not known here can only be one that is known there, unless it is a new one.
fn is_global(server: &AppState, accessor: &str, is_new: bool) -> bool {
    let state = server.control.state();
    let known = accessor.parse().ok().and_then(|accessor| state.acl.token(accessor));
    known.map_or(!is_new, |token| token.document.global)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Token {
    #[serde(rename = "AccessorID", alias = "accessorID", alias = "accessorid")]
    accessor_id: String,
    #[serde(rename = "SecretID", alias = "secretID", alias = "secretid")]
    secret_id: String,
    #[serde(alias = "global")]
    global: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_regions_have_in_common_is_known_by_its_path() {
        for path in [
            "/v1/acl/bootstrap",
            "/v1/acl/policy/a",
            "/v1/acl/role",
            "/v1/acl/role/a",
            "/v1/namespace/a",
            "/v1/node/pools",
            "/v1/node/pool/a",
        ] {
            assert!(is_of_all(path), "{path}");
        }
        for path in
            ["/v1/acl/auth-method/a", "/v1/acl/binding-rule", "/v1/node/a/drain", "/v1/nodes", "/v1/jobs"]
        {
            assert!(!is_of_all(path), "{path}");
        }
    }
}
