use std::path::Path as FilePath;

use api::{ACLTokenListStub, AclBootstrapRequest};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::{Duration, Index, Uuid};
use model::command::CreateAclToken;
use model::document::ACLToken;
use model::{Command, TokenSecret, token_secrets};
use serde::Serialize;
use state::State;
use state::node::secret_hash;

use super::super::write;
use super::forgetting;
use super::new_id;
use crate::access::{Each, Management, Who, denied};
use crate::answer::{self, Answer, done, written};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::page::{Creation, page};
use crate::request::{Json, OptionalJson, Read, Reading, Write, as_json};
use crate::sealing::once_keyed;

/// The name of the first token.
const FIRST: &str = "Bootstrap Token";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/bootstrap", write(bootstrap))
        .route("/v1/acl/tokens", get(list))
        .route("/v1/acl/token", write(upsert))
        .route("/v1/acl/token/{accessor}", get(read).merge(write(update)).delete(remove))
}

/// Also while access control is off.
pub(super) fn own_router() -> Router<AppState> {
    Router::new().route("/v1/acl/token/self", get(own))
}

async fn list(With(server): With<AppState>, read: Read<Management>) -> Answer {
    let only_global = read.params.boolean("global")?;
    let view = move |state: &State, read: &Reading| {
        let known = state.acl.tokens().filter(|(accessor, token)| {
            accessor.to_string().starts_with(&read.options.prefix) && (!only_global || token.document.global)
        });
        let stubs = known.filter_map(|(accessor, token)| {
            let stub = ACLTokenListStub::from(state::acl::token(&state.acl, accessor)?);
            Some((Creation(token.created, accessor), stub))
        });
        let shown = read.filtered("ACLTokenListStub", stubs, |(_, stub)| as_json(stub))?;
        page(shown.into_iter(), &read.options)
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(accessor): Path<String>, read: Read<Each>) -> Answer {
    let accessor: Option<Uuid> = accessor.parse().ok();
    let may_see =
        read.access.acl.is_management() || (accessor.is_some() && read.access.accessor() == accessor);
    if !may_see {
        return Err(denied());
    }
    if let Some(accessor) = accessor.filter(|_| read.params.get("forgotten").is_some()) {
        return forgetting::shown(&server, &read, &token_secrets(accessor)).await;
    }
    let view = |state: &State| {
        let found = accessor.and_then(|accessor| whole(&server, state, accessor));
        found.ok_or_else(|| Failure::not_found("ACL token not found"))
    };
    server.read(&read, changed, view).await
}

async fn own(With(server): With<AppState>, read: Read<Each>) -> Answer {
    let named = |accessor: &str, name: &str| ACLToken {
        accessor_id: accessor.to_string(),
        name: name.to_string(),
        kind: ACLToken::CLIENT.to_string(),
        ..ACLToken::default()
    };
    match read.access.who {
        Who::Everybody => Ok(answer::json(&Shown::from(named("acls-disabled", "ACLs disabled token")))),
        Who::Token { accessor, .. } => {
            let view = |state: &State| whole(&server, state, accessor).ok_or_else(denied);
            server.read(&read, changed, view).await
        }
        Who::Anonymous => {
            let anonymous = named("anonymous", "Anonymous Token");
            let anonymous = ACLToken { policies: vec!["anonymous".to_string()].into(), ..anonymous };
            server.read(&read, changed, |_| Ok(Shown::from(anonymous))).await
        }
        // They are known by other things than tokens.
        Who::Node(_) | Who::Workload(_) => Err(Failure::not_found("ACL token not found")),
    }
}

/// The first token, or another one after all of them were lost.
async fn bootstrap(
    With(server): With<AppState>,
    write: Write,
    OptionalJson(request): OptionalJson<AclBootstrapRequest>,
) -> Answer {
    let secret = match request.bootstrap_secret.as_str() {
        "" => new_id().to_string(),
        given if is_secret(given) => given.to_string(),
        _ => return Err(Failure::invalid("invalid acl token")),
    };
    let reset = server.agent.access.reset_file.as_deref().map(reset_index).transpose()?.flatten();
    let accessor = new_id();
    let token = ACLToken {
        accessor_id: accessor.to_string(),
        name: FIRST.to_string(),
        kind: ACLToken::MANAGEMENT.to_string(),
        global: true,
        ..ACLToken::default()
    };
    let token = Box::new(sealed(&server, accessor, token, &secret).await?);
    submit(&server, &write, accessor, Command::BootstrapAcl { token, reset }).await
}

/// Without an accessor a new one.
async fn upsert(With(server): With<AppState>, write: Write, Json(wanted): Json<ACLToken>) -> Answer {
    // Before anything is said about a token that may or may not be there.
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    let accessor: Option<Uuid> = wanted.accessor_id.parse().ok();
    let is_known = accessor.is_some_and(|accessor| server.control.state().acl.token(accessor).is_some());
    let is_brought = !wanted.secret_id.is_empty();
    if !wanted.accessor_id.is_empty() && (is_known || !is_brought) {
        let accessor =
            accessor.ok_or_else(|| Failure::invalid(format!("cannot find token {}", wanted.accessor_id)))?;
        let command = Command::UpdateAclToken(Box::new(ACLToken { secret_id: String::new(), ..wanted }));
        return submit(&server, &write, accessor, command).await;
    }
    check_lifetime(&server, &wanted)?;
    let secret = match is_brought {
        false => new_id().to_string(),
        true if wanted.is_management() || accessor.is_none() => {
            return Err(Failure::invalid("only a client token with an accessor can bring its own secret"));
        }
        true if is_secret(&wanted.secret_id) => wanted.secret_id.clone(),
        true => return Err(Failure::invalid("invalid SecretID: expected a UUID")),
    };
    let accessor = accessor.unwrap_or_else(new_id);
    let token = ACLToken { accessor_id: accessor.to_string(), ..wanted };
    let token = Box::new(sealed(&server, accessor, token, &secret).await?);
    submit(&server, &write, accessor, Command::CreateAclToken(token)).await
}

async fn update(
    server: With<AppState>,
    Path(accessor): Path<String>,
    write: Write,
    Json(wanted): Json<ACLToken>,
) -> Answer {
    if wanted.accessor_id != accessor {
        return Err(Failure::invalid("ACL token accessor ID does not match request path"));
    }
    upsert(server, write, Json(wanted)).await
}

async fn remove(With(server): With<AppState>, Path(accessor): Path<String>, write: Write) -> Answer {
    let unknown = |_| Failure::invalid(format!("Cannot delete nonexistent tokens: {accessor}"));
    let accessor: Uuid = accessor.parse().map_err(unknown)?;
    if write.params.get("forget").is_some() {
        let command = Command::ForgetAclToken { accessor };
        return forgetting::submit(&server, &write, command, &token_secrets(accessor)).await;
    }
    let accessors = vec![accessor];
    let receipt = server.submit(&write, Command::DeleteAclTokens { accessors }).await?;
    Ok(done(receipt.index))
}

async fn submit(server: &AppState, write: &Write, accessor: Uuid, command: Command) -> Answer {
    let receipt = server.submit(write, command).await?;
    let state = server.after(&receipt).await?;
    let token = whole(server, &state, accessor);
    written(receipt.index, &token.ok_or_else(|| Failure::not_found("the token was deleted meanwhile"))?)
}

/// A token as Nomad's servers show it: they say so where it does not expire, and tools rely on that. The log leaves it out.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub token: ACLToken,
    #[serde(rename = "ExpirationTime", skip_serializing_if = "Option::is_none")]
    never: Option<()>,
}

impl From<ACLToken> for Shown {
    fn from(token: ACLToken) -> Shown {
        let never = token.expiration_time.is_none().then_some(());
        Shown { token, never }
    }
}

/// The token with its secret, which stays empty if no key opens it any more.
pub(super) fn whole(server: &AppState, state: &State, accessor: Uuid) -> Option<Shown> {
    let token = state::acl::token(&state.acl, accessor)?;
    let sealed = &state.acl.token(accessor)?.secret.sealed;
    let secret = server.signer.unseal(&state.keyring, &accessor.0, sealed).inspect_err(|error| {
        tracing::warn!(%accessor, %error, "the secret of a token cannot be shown");
    });
    let secret_id = secret.ok().and_then(|secret| String::from_utf8(secret).ok()).unwrap_or_default();
    Some(ACLToken { secret_id, ..token }.into())
}

/// What the log gets of a secret: what recognizes it, and itself sealed.
pub(super) async fn sealed(
    server: &AppState,
    accessor: Uuid,
    token: ACLToken,
    secret: &str,
) -> Result<CreateAclToken, Failure> {
    let of = token_secrets(accessor);
    let seal = |state: &State| server.signer.seal_secret(state, &of, &accessor.0, secret.as_bytes());
    let sealed = once_keyed(server, "secrets", seal).await?;
    let token = ACLToken { secret_id: String::new(), ..token };
    Ok(CreateAclToken { token, secret: TokenSecret { digest: secret_hash(secret), sealed } })
}

/// Clients and the log take them in this form only.
fn is_secret(text: &str) -> bool {
    text.parse::<Uuid>().is_ok_and(|id| id.to_string() == text && id != Uuid::default())
}

/// # Errors
/// 400 for an end that is too soon or too late.
fn check_lifetime(server: &AppState, token: &ACLToken) -> Result<(), Failure> {
    let until = token.expires().map(|at| Duration(at.0.saturating_sub(now().0)));
    let lifetime = match (token.expiration_ttl.0, until) {
        (Duration::ZERO, None) => return Ok(()),
        (Duration::ZERO, Some(until)) => until,
        (ttl, None) => ttl,
        (..) => {
            return Err(Failure::invalid("token expiration TTL and expiration time cannot both be set"));
        }
    };
    let settings = &server.agent.access;
    // A moment in the future is a little nearer when it arrives here.
    if lifetime < Duration(settings.ttl_min.0 - settings.ttl_min.0 / 10) {
        return Err(Failure::invalid(format!(
            "expiration time cannot be less than {} in the future (and was {lifetime})",
            settings.ttl_min
        )));
    }
    if lifetime > settings.ttl_max {
        return Err(Failure::invalid(format!(
            "expiration time cannot be more than {} in the future (and was {lifetime})",
            settings.ttl_max
        )));
    }
    Ok(())
}

/// The index that the file asks to begin after again. Without a file nothing is asked for.
fn reset_index(file: &FilePath) -> Result<Option<Index>, Failure> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::internal(format!("{}: {error}", file.display()))),
    };
    let invalid = |_| Failure::internal(format!("{}: expected the reset index, a number", file.display()));
    text.trim().parse().map(|index| Some(Index(index))).map_err(invalid)
}

fn changed(state: &State) -> Index {
    federation::List::Tokens.changed(state)
}
