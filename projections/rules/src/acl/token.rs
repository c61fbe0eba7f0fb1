use base::{Index, Time, Uuid};
use model::command::CreateAclToken;
use model::document::{ACLToken, ACLTokenRoleLink, Bytes, Duration, List, Timestamp};
use model::event::{AclTokenCreated, AclTokenUpdated, AclTokensDeleted, Event, OneTimeTokensExpired};
use model::{Doc, Rejection};
use state::acl::Acl;

use super::{Decision, TEXT_MAX, invalid};

/// Tokens at the same time; links of one to policies and to roles.
const TOKENS_MAX: usize = 262_144;
const LINKS_MAX: usize = 1_024;

/// Tokens that one command forgets at most.
pub const EXPIRED_MAX: usize = 4_096;

pub(crate) fn bootstrap(
    acl: &Acl,
    now: Time,
    request: &CreateAclToken,
    reset: Option<Index>,
) -> Result<Decision, Rejection> {
    let first = acl.bootstrapped();
    if first != Index::ZERO && reset != Some(first) {
        return invalid(format!("ACL bootstrap already done (reset index: {first})"));
    }
    if !request.token.is_management() {
        return invalid("the first token is a management token");
    }
    created(acl, now, request, true)
}

pub(crate) fn create(acl: &Acl, now: Time, request: &CreateAclToken) -> Result<Decision, Rejection> {
    created(acl, now, request, false)
}

fn created(acl: &Acl, now: Time, request: &CreateAclToken, bootstrap: bool) -> Result<Decision, Rejection> {
    let (accessor, document) = new(acl, now, request)?;
    let secret = request.secret.clone();
    Ok(AclTokenCreated { accessor, document: Doc::of(&document), secret, bootstrap }.into())
}

/// A token that is not there yet, as it is stored.
pub(super) fn new(acl: &Acl, now: Time, request: &CreateAclToken) -> Result<(Uuid, ACLToken), Rejection> {
    let CreateAclToken { token, secret } = request;
    let accessor = accessor_of(token)?;
    if acl.token(accessor).is_some() || acl.by_secret(&secret.digest).is_some() {
        return invalid("a token with this accessor or this secret exists already");
    }
    if acl.tokens().count() >= TOKENS_MAX {
        return invalid(format!("there are {TOKENS_MAX} tokens already: delete some that are not used"));
    }
    // What was asked for as a span becomes a moment once, here.
    let ttl = token.expiration_ttl.0;
    let expires = token.expires().or((ttl > base::Duration::ZERO).then(|| now.plus(ttl)));
    if expires.is_some_and(|expires| expires <= now) {
        return invalid("expiration time cannot be before create time");
    }
    let document = ACLToken {
        create_time: Timestamp(Some(now)),
        expiration_time: expires.map(|at| Timestamp(Some(at))),
        ..checked(acl, token)?
    };
    Ok((accessor, document))
}

/// What a token is for may change, not what it is.
pub(crate) fn update(acl: &Acl, wanted: &ACLToken) -> Result<Decision, Rejection> {
    let accessor = accessor_of(wanted)?;
    let Some(token) = acl.token(accessor) else { return invalid(format!("cannot find token {accessor}")) };
    let before = &token.document;
    if wanted.kind != before.kind {
        return invalid("cannot change the type of a token");
    }
    if wanted.global != before.global {
        return invalid(format!("cannot toggle global mode of {accessor}"));
    }
    let same_end = wanted.expiration_time.is_none() || wanted.expires() == before.expires();
    let same_ttl =
        wanted.expiration_ttl == Duration::default() || wanted.expiration_ttl == before.expiration_ttl;
    if !same_end || !same_ttl {
        return invalid("cannot update expiration time or TTL of a token");
    }
    let document = ACLToken {
        create_time: before.create_time,
        expiration_time: before.expiration_time,
        expiration_ttl: before.expiration_ttl,
        ..checked(acl, wanted)?
    };
    if document == *before {
        return Ok(Decision::nothing());
    }
    Ok(AclTokenUpdated { accessor, document: Doc::of(&document) }.into())
}

pub(crate) fn delete(acl: &Acl, accessors: &[Uuid]) -> Result<Decision, Rejection> {
    let missing: Vec<String> = accessors
        .iter()
        .filter(|accessor| acl.token(**accessor).is_none())
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        return invalid(format!("Cannot delete nonexistent tokens: {}", missing.join(", ")));
    }
    let mut accessors = accessors.to_vec();
    accessors.sort_unstable();
    accessors.dedup();
    if accessors.is_empty() {
        return Ok(Decision::nothing());
    }
    Ok(AclTokensDeleted { accessors, expired: false }.into())
}

/// Forgets tokens and one-time tokens that have expired, at most [`EXPIRED_MAX`] of each.
pub(crate) fn collect_expired(acl: &Acl, now: Time) -> Decision {
    let ended = acl.tokens().filter(|(_, token)| token.document.expires().is_some_and(|at| at <= now));
    let tokens: Vec<Uuid> = ended.map(|(accessor, _)| accessor).take(EXPIRED_MAX).collect();
    let one_time = acl.one_time().iter().filter(|(accessor, token)| {
        // The others go with their tokens.
        token.expires <= now && tokens.binary_search(accessor).is_err()
    });
    let one_time: Vec<Uuid> = one_time.map(|(accessor, _)| *accessor).take(EXPIRED_MAX).collect();
    let mut events: Vec<Event> = Vec::new();
    if !tokens.is_empty() {
        events.push(AclTokensDeleted { accessors: tokens, expired: true }.into());
    }
    if !one_time.is_empty() {
        events.push(OneTimeTokensExpired { accessors: one_time }.into());
    }
    Decision::of(events)
}

/// There is something to collect.
pub fn has_expired(acl: &Acl, now: Time) -> bool {
    acl.tokens().any(|(_, token)| token.document.expires().is_some_and(|at| at <= now))
        || acl.one_time().values().any(|token| token.expires <= now)
}

/// The token as it is stored, but for its times.
fn checked(acl: &Acl, wanted: &ACLToken) -> Result<ACLToken, Rejection> {
    if wanted.name.len() > TEXT_MAX {
        return invalid(format!("invalid token name: expected at most {TEXT_MAX} bytes"));
    }
    if wanted.policies.len() > LINKS_MAX || wanted.roles.len() > LINKS_MAX {
        return invalid(format!("invalid token: expected at most {LINKS_MAX} policies and as many roles"));
    }
    let has_links = !wanted.policies.is_empty() || !wanted.roles.is_empty();
    match wanted.kind.as_str() {
        ACLToken::CLIENT if !has_links => return invalid("client token missing policies or roles"),
        ACLToken::MANAGEMENT if has_links => {
            return invalid("management token cannot be associated with policies or roles");
        }
        ACLToken::CLIENT | ACLToken::MANAGEMENT => {}
        other => return invalid(format!("invalid token type {other:?}: expected client or management")),
    }
    let mut roles = Vec::new();
    for link in &wanted.roles {
        let found = acl.roles.names().into_iter().find(|id| {
            let has_name = |name: &str| acl.roles.get(id).is_some_and(|role| role.document.name == name);
            if link.id.is_empty() { has_name(&link.name) } else { *id == link.id }
        });
        let Some(id) = found else {
            let which = if link.id.is_empty() { &link.name } else { &link.id };
            return invalid(format!("cannot find role {which}"));
        };
        roles.push(ACLTokenRoleLink { id: id.to_string(), name: String::new() });
    }
    roles.sort();
    roles.dedup();
    let mut policies = wanted.policies.0.clone();
    policies.sort();
    policies.dedup();
    Ok(ACLToken {
        secret_id: String::new(),
        policies: List(policies),
        roles: List(roles),
        create_index: 0,
        modify_index: 0,
        hash: Bytes::default(),
        ..wanted.clone()
    })
}

fn accessor_of(wanted: &ACLToken) -> Result<Uuid, Rejection> {
    let invalid =
        || Rejection::AclInvalid(format!("invalid accessor {:?}: expected a UUID", wanted.accessor_id));
    wanted.accessor_id.parse().map_err(|_| invalid())
}
