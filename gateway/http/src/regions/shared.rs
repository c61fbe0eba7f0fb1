//! Writes of what all regions have in common: they are decided in the authoritative region, and come back from there. Whoever
//! logs in for a token of all regions is answered there too.

use axum::extract::Request;
use axum::http::Method;
use base::Uuid;
use model::document::{ACLAuthMethod, input};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use state::acl::Acl;

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::whole_body;

/// What has to be known of a request to tell whose it is.
enum Subject {
    /// Of this region.
    Own,
    /// Of all.
    Shared,
    /// It depends on a token, an auth method or a binding rule. What follows the path of its kind names it.
    Token(String),
    AuthMethod(String),
    BindingRule(String),
    Login,
}

/// Whether a request writes a policy, a role, a global token, a namespace, a node pool, an auth method whose tokens are global or
/// a binding rule of such a method, or is about logging in with one.
///
/// # Errors
/// Its body does not come.
pub(super) async fn is_decided_for_all(
    server: &AppState,
    request: Request,
) -> Result<(bool, Request), Failure> {
    let subject = match *request.method() {
        Method::PUT | Method::POST | Method::DELETE => subject(request.uri().path()),
        _ => Subject::Own,
    };
    match subject {
        Subject::Own => return Ok((false, request)),
        Subject::Shared => return Ok((true, request)),
        Subject::Token(_) | Subject::AuthMethod(_) | Subject::BindingRule(_) | Subject::Login => {}
    }
    let is_delete = request.method() == Method::DELETE;
    // What a deletion is about stands in its path.
    let (request, body) = match is_delete {
        true => (request, Default::default()),
        false => whole_body(request, server).await?,
    };
    let state = server.control.state();
    let is_shared = match subject {
        Subject::Own => false,
        Subject::Shared => true,
        Subject::Token(named) => is_token_shared(&state.acl, &named, &read(&body), is_delete),
        Subject::AuthMethod(named) => is_method_shared(&state.acl, &named, &read(&body)),
        Subject::BindingRule(named) => is_rule_shared(&state.acl, &named, &read(&body)),
        Subject::Login => is_global(&state.acl, &read::<Login>(&body).auth_method_name) == Some(true),
    };
    Ok((is_shared, request))
}

fn subject(path: &str) -> Subject {
    let below = |root: &str| {
        let rest = path.strip_prefix(root)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_string())
    };
    if let Some(named) = below("/v1/acl/token") {
        let is_of_one = named.is_empty() || named.parse::<Uuid>().is_ok();
        return if is_of_one { Subject::Token(named) } else { Subject::Own };
    }
    if let Some(named) = below("/v1/acl/auth-method") {
        return Subject::AuthMethod(named);
    }
    if let Some(named) = below("/v1/acl/binding-rule") {
        return Subject::BindingRule(named);
    }
    if ["/v1/acl/login", "/v1/acl/oidc/auth-url", "/v1/acl/oidc/complete-auth"].contains(&path) {
        return Subject::Login;
    }
    let is_shared = path == "/v1/acl/bootstrap"
        || path == "/v1/node/pools"
        || ["/v1/acl/policy", "/v1/acl/role", "/v1/namespace", "/v1/node/pool"]
            .into_iter()
            .any(|root| below(root).is_some());
    if is_shared { Subject::Shared } else { Subject::Own }
}

/// What cannot be read is refused where the rest of it is read.
fn read<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    input::from_slice(body).unwrap_or_default()
}

fn is_token_shared(acl: &Acl, named: &str, token: &Token, is_delete: bool) -> bool {
    let accessor = if named.is_empty() { token.accessor_id.as_str() } else { named };
    let is_new = !is_delete && (accessor.is_empty() || !token.secret_id.is_empty());
    // One that is not known here can only be one that is known there, unless it is a new one.
    let known = accessor.parse().ok().and_then(|accessor| acl.token(accessor));
    token.global || known.map_or(!is_new, |token| token.document.global)
}

/// One that is not known here is not asked for there: it could be another one of the same name, for tokens of that region.
fn is_method_shared(acl: &Acl, named: &str, method: &AuthMethod) -> bool {
    let name = if named.is_empty() { method.name.as_str() } else { named };
    method.token_locality == ACLAuthMethod::GLOBAL || is_global(acl, name) == Some(true)
}

/// What belongs to something that is not known here may belong to what is known there: it was made a moment ago.
fn is_rule_shared(acl: &Acl, named: &str, rule: &BindingRule) -> bool {
    let id = if named.is_empty() { rule.id.as_str() } else { named };
    let known = acl.rules.get(id).map(|set| set.document.auth_method.as_str());
    is_global(acl, known.unwrap_or(&rule.auth_method)).unwrap_or(true)
}

/// Whether the tokens of an auth method are good everywhere, if it is known here.
fn is_global(acl: &Acl, method: &str) -> Option<bool> {
    acl.methods.get(method).map(|set| set.document.method.token_locality == ACLAuthMethod::GLOBAL)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Token {
    #[serde(rename = "AccessorID")]
    accessor_id: String,
    #[serde(rename = "SecretID")]
    secret_id: String,
    global: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AuthMethod {
    name: String,
    token_locality: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct BindingRule {
    #[serde(rename = "ID")]
    id: String,
    auth_method: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Login {
    auth_method_name: String,
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
            assert!(matches!(subject(path), Subject::Shared), "{path}");
        }
        for path in
            ["/v1/acl/auth-methods", "/v1/acl/token/onetime", "/v1/node/a/drain", "/v1/nodes", "/v1/jobs"]
        {
            assert!(matches!(subject(path), Subject::Own), "{path}");
        }
        assert!(matches!(subject("/v1/acl/auth-method/a"), Subject::AuthMethod(name) if name == "a"));
        assert!(matches!(subject("/v1/acl/binding-rule"), Subject::BindingRule(id) if id.is_empty()));
        assert!(matches!(subject("/v1/acl/oidc/complete-auth"), Subject::Login));
    }

    #[test]
    fn names_in_bodies_are_found_however_they_are_written() {
        assert_eq!(
            read::<Login>(br#"{"authmethodname": "corp", "LoginToken": "x"}"#).auth_method_name,
            "corp"
        );
        assert!(read::<Token>(br#"{"global": true}"#).global);
        assert_eq!(read::<Token>(b"[]").accessor_id, "");
    }
}
