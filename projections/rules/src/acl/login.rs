use base::Time;
use model::document::ACLAuthMethod;
use model::event::AclTokenIssuedByLogin;
use model::{Doc, IssueLoginToken, Rejection};
use state::acl::Acl;

use super::{Decision, invalid, token};

/// The token lives as its auth method says, and was made by rules that hold now.
pub(crate) fn issue(acl: &Acl, now: Time, request: &IssueLoginToken) -> Result<Decision, Rejection> {
    let Some(method) = acl.methods.get(&request.method).map(|set| &set.document.method) else {
        return invalid(format!("ACL auth method {} not found", request.method));
    };
    if acl.logins_changed() > request.as_of {
        return invalid("auth methods or binding rules have changed meanwhile: log in again");
    }
    let wanted = &request.token.token;
    if wanted.expiration_ttl != method.max_token_ttl || wanted.expiration_time.is_some() {
        return invalid("invalid token: expected the TTL of its auth method");
    }
    if wanted.global != (method.token_locality == ACLAuthMethod::GLOBAL) {
        return invalid("invalid token: expected the locality of its auth method");
    }
    let is_of_method = |id: &base::Uuid| {
        acl.rules.get(&id.to_string()).is_some_and(|rule| rule.document.auth_method == request.method)
    };
    if request.rules.is_empty() || !request.rules.iter().all(is_of_method) {
        return invalid("no role or policy bindings matched");
    }
    let (accessor, document) = token::new(acl, now, &request.token)?;
    Ok(AclTokenIssuedByLogin {
        accessor,
        document: Doc::of(&document),
        secret: request.token.secret.clone(),
        method: request.method.clone(),
        rules: request.rules.clone(),
    }
    .into())
}
