//! Logging in: who proves to be somebody gets a token for that.
//!
//! Any server answers. What an attempt at a provider is about travels with its caller, in the `state` parameter, sealed with
//! the root key: so another server can go on with it, also after the leader has changed, and no number of attempts fills
//! anything. An attempt gives one token: the log knows the command by the attempt's id, and refuses a second one.

use std::sync::Arc;

use acl::login::{BindKind, Rule, Selectable, bind, token_name};
use api::{
    ACLLoginRequest, ACLOIDCAuthURLRequest, ACLOIDCAuthURLResponse, ACLOIDCCompleteAuthRequest, Consistency,
};
use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use base::{Index, Uuid};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use login::oidc::{self, Returned, Secrets};
use login::{Attempt, LoginError};
use model::document::{ACLAuthMethod, ACLAuthMethodConfig, ACLBindingRule, ACLToken, ACLTokenRoleLink};
use model::{Command, IssueLoginToken, RequestId, SealedData};
use serde_json::Value;
use state::State;
use state::node::secret_hash;

use super::super::write;
use super::methods::{CLIENT_SECRET, PRIVATE_KEY, purpose};
use super::new_id;
use super::tokens::{sealed, whole};
use crate::access::of_caller;
use crate::answer::{self, Answer, written};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Json, Newcomer, Write};
use crate::sealing::once_keyed;

/// What attempts are sealed for.
const ATTEMPT: &[u8] = b"attempt to log in at a provider";
/// Longest nonce, state and code that are looked at.
const TEXT_MAX: usize = 8 * 1024;

const NO_BINDING: &str = "no role or policy bindings matched";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/login", write(login))
        .route("/v1/acl/oidc/auth-url", write(auth_url))
        .route("/v1/acl/oidc/complete-auth", write(complete_auth))
}

/// With a JWT that somebody else has signed.
async fn login(
    With(server): With<AppState>,
    Newcomer(write): Newcomer,
    Json(request): Json<ACLLoginRequest>,
) -> Answer {
    server.proving(write.caller.address, of_caller, with_jwt(&server, write, &request)).await
}

async fn with_jwt(server: &AppState, write: Write, request: &ACLLoginRequest) -> Answer {
    let name = &request.auth_method_name;
    present(&[("AuthMethodName", name), ("LoginToken", &request.login_token)])?;
    let (state, method) = method(server, name, ACLAuthMethod::JWT).await?;
    let claims = login::check_jwt(&server.providers, &method.config, &request.login_token, now()).await;
    let claims = claims.map_err(refused)?;
    issue(server, write, &state, &method.method, &claims, new_id()).await
}

async fn auth_url(
    With(server): With<AppState>,
    Newcomer(_): Newcomer,
    Json(request): Json<ACLOIDCAuthURLRequest>,
) -> Answer {
    let (name, redirect) = (&request.auth_method_name, &request.redirect_uri);
    present(&[("AuthMethodName", name), ("RedirectURI", redirect), ("ClientNonce", &request.client_nonce)])?;
    let (_, Method { config, .. }) = method(&server, name, ACLAuthMethod::OIDC).await?;
    if !config.allowed_redirect_uris.contains(redirect) {
        return Err(Failure::invalid(format!("unauthorized redirect_uri: {redirect}")));
    }
    let nonce = &request.client_nonce;
    let attempt = Attempt::new(new_id(), name, redirect, nonce, config.oidc_enable_pkce, now());
    let attempt = attempt.map_err(failed)?;
    let seal = |state: &State| server.signer.seal(&state.keyring, ATTEMPT, &attempt.to_bytes());
    let SealedData { key, bytes } = once_keyed(&server, "secrets", seal).await?;
    let sealed = URL_SAFE_NO_PAD.encode([&key.0[..], &bytes].concat());
    let auth_url = oidc::auth_url(&server.providers, &config, &attempt, &sealed).await.map_err(failed)?;
    Ok(answer::json(&ACLOIDCAuthURLResponse { auth_url }))
}

/// With what the provider has sent somebody back with.
async fn complete_auth(
    With(server): With<AppState>,
    Newcomer(write): Newcomer,
    Json(request): Json<ACLOIDCCompleteAuthRequest>,
) -> Answer {
    // A code that the provider does not know is answered as a failure of the provider.
    let counts = |failure: &Failure| failure.status != StatusCode::TOO_MANY_REQUESTS;
    server.proving(write.caller.address, counts, with_code(&server, write, &request)).await
}

async fn with_code(server: &AppState, write: Write, request: &ACLOIDCCompleteAuthRequest) -> Answer {
    let name = &request.auth_method_name;
    present(&[
        ("AuthMethodName", name),
        ("ClientNonce", &request.client_nonce),
        ("State", &request.state),
        ("Code", &request.code),
        ("RedirectURI", &request.redirect_uri),
    ])?;
    let (state, method) = method(server, name, ACLAuthMethod::OIDC).await?;
    let unknown = || Failure::invalid("the state is not of a login that this cluster began");
    let attempt = unsealed(server, &state, &request.state).ok_or_else(unknown)?;
    attempt.check(name, &request.redirect_uri, &request.client_nonce, now()).map_err(failed)?;
    let id = RequestId(attempt.accessor);
    let is_done = state.remembered(id).is_some() || state.acl.token(attempt.accessor).is_some();
    if is_done {
        return Err(completed());
    }
    let sign = |message: &[u8]| {
        let (key, _) = state.keyring.active().ok_or_else(|| "there is no key yet".to_string())?;
        let signed = server.signer.sign_message(&state.keyring, key, message);
        signed.map_err(|error| error.to_string())
    };
    let secrets = secrets(server, &state, &method.method.name, &sign)?;
    let returned = Returned { code: &request.code, issuer: &request.iss };
    let claims = oidc::complete(&server.providers, &method.config, &secrets, &attempt, &returned, now());
    let claims = claims.await.map_err(failed)?;
    let write = Write { request: id, ..write };
    let issued = issue(server, write, &state, &method.method, &claims, attempt.accessor).await;
    issued.map_err(|failure| if failure.status == StatusCode::CONFLICT { completed() } else { failure })
}

fn completed() -> Failure {
    Failure::invalid("this login was completed already: begin again")
}

/// # Errors
/// 400 with the first field that is missing, or too long to be what it should be.
fn present(fields: &[(&str, &str)]) -> Result<(), Failure> {
    for (name, value) in fields {
        if value.is_empty() {
            return Err(Failure::invalid(format!("missing {name}")));
        }
        if value.len() > TEXT_MAX && *name != "LoginToken" {
            return Err(Failure::invalid(format!("invalid {name}: expected at most {TEXT_MAX} bytes")));
        }
    }
    Ok(())
}

struct Method {
    method: ACLAuthMethod,
    config: ACLAuthMethodConfig,
}

/// The auth method, as it is in the state that goes with it.
///
/// # Errors
/// 400 if there is none, or it is of another type.
async fn method(server: &AppState, name: &str, kind: &str) -> Result<(Arc<State>, Method), Failure> {
    server.fresh(Consistency::Leased, Index::ZERO).await?;
    let state = server.control.state();
    let found = state.acl.methods.get(name).map(|set| set.document.method.clone());
    let method = found.ok_or_else(|| Failure::invalid(format!("ACL auth-method {name:?} not found")))?;
    if method.kind != kind {
        return Err(Failure::invalid(format!(
            "auth method {name} is of type {}: expected {kind}",
            method.kind
        )));
    }
    let config = method.config.clone().unwrap_or_default();
    Ok((state, Method { method, config }))
}

/// A caller who presents nothing that is worth anything, as Nomad answers it.
fn refused(error: LoginError) -> Failure {
    match error {
        LoginError::Unproven(why) => Failure::new(StatusCode::UNAUTHORIZED, why),
        other => failed(other),
    }
}

/// What a provider says is for it to get right.
fn failed(error: LoginError) -> Failure {
    match error {
        LoginError::Invalid(why) => Failure::invalid(why),
        LoginError::Unproven(why) | LoginError::Provider(why) => Failure::internal(why),
    }
}

fn unsealed(server: &AppState, state: &State, text: &str) -> Option<Attempt> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (key, sealed) = bytes.split_first_chunk::<16>()?;
    let sealed = SealedData { key: Uuid(*key), bytes: sealed.to_vec() };
    Attempt::from_bytes(&server.signer.unseal(&state.keyring, ATTEMPT, &sealed).ok()?)
}

fn secrets<'a>(
    server: &AppState,
    state: &State,
    name: &str,
    sign: login::Sign<'a>,
) -> Result<Secrets<'a>, Failure> {
    let Some(set) = state.acl.methods.get(name) else { return Ok(Secrets::default()) };
    let open = |what: &str, sealed: &Option<SealedData>| -> Result<Option<String>, Failure> {
        let Some(sealed) = sealed else { return Ok(None) };
        let opened = server.signer.unseal(&state.keyring, &purpose(name, what), sealed);
        let opened =
            opened.map_err(|error| Failure::internal(format!("the {what} is not readable: {error}")))?;
        Ok(String::from_utf8(opened).ok())
    };
    let key = state.keyring.active();
    Ok(Secrets {
        client_secret: open(CLIENT_SECRET, &set.document.client_secret)?,
        private_key: open(PRIVATE_KEY, &set.document.private_key)?,
        cluster_key: key.map(|(id, key)| login::ClusterKey { id, algorithm: key.algorithm().name(), sign }),
    })
}

/// The token for somebody with these claims.
///
/// # Errors
/// 400 if the binding rules give them nothing.
async fn issue(
    server: &AppState,
    write: Write,
    state: &State,
    method: &ACLAuthMethod,
    claims: &Value,
    accessor: Uuid,
) -> Answer {
    let config = method.config.clone().unwrap_or_default();
    let found = Selectable::of(claims, config.claim_mappings.iter(), config.list_claim_mappings.iter());
    let found = found.map_err(|why| Failure::invalid(why.to_string()))?;
    if config.verbose_logging {
        tracing::info!(method = method.name, claims = ?found, "somebody logs in");
    }
    let bound = bound(state, &method.name, &found);
    if bound.rules.is_empty() {
        return Err(Failure::invalid(NO_BINDING));
    }
    let name = token_name(&method.token_name_format, &method.kind, &method.name, &found);
    let name = name.ok_or_else(|| {
        Failure::invalid(format!(
            "the token cannot be named: {:?} needs a claim that is missing",
            method.token_name_format
        ))
    })?;
    let roles = bound.roles.into_iter().map(|id| ACLTokenRoleLink { id, name: String::new() });
    let token = ACLToken {
        accessor_id: accessor.to_string(),
        name,
        kind: if bound.management { ACLToken::MANAGEMENT } else { ACLToken::CLIENT }.to_string(),
        policies: bound.policies.into_iter().collect(),
        roles: roles.collect(),
        global: method.token_locality == ACLAuthMethod::GLOBAL,
        expiration_ttl: method.max_token_ttl,
        ..ACLToken::default()
    };
    let secret = new_id().to_string();
    let token = sealed(server, accessor, token, &secret).await?;
    let digest: [u8; 16] = secret_hash(&secret)[..16].try_into().expect("a hash has 32 bytes");
    // A repetition asks for another secret, and so for something else.
    let write = Write { said: RequestId(Uuid::from_random(digest)), ..write };
    let request = IssueLoginToken {
        token,
        method: method.name.clone(),
        rules: bound.rules,
        as_of: state.acl.logins_changed(),
    };
    let receipt = server.submit(&write, Command::IssueLoginToken(Box::new(request))).await?;
    let state = server.after(&receipt).await?;
    let token = whole(server, &state, accessor);
    written(receipt.index, &token.ok_or_else(|| Failure::not_found("the token was deleted meanwhile"))?)
}

/// What the binding rules of a method give; roles by their ids.
fn bound(state: &State, method: &str, claims: &Selectable) -> acl::login::Bindings<Uuid> {
    let acl = &state.acl;
    let rules = acl.rules.names().into_iter().filter_map(|id| acl.rules.get(id)).map(|set| &set.document);
    let rules = rules.filter(|rule| rule.auth_method == method).filter_map(|rule: &ACLBindingRule| {
        let kind = BindKind::from_word(&rule.bind_type)?;
        Some(Rule { id: rule.id.parse().ok()?, selector: &rule.selector, kind, name: &rule.bind_name })
    });
    let role = |name: &str| {
        let mut ids = acl.roles.names().into_iter();
        ids.find(|id| acl.roles.get(id).is_some_and(|role| role.document.name == name))
    };
    let exists = |kind: BindKind, name: &str| match kind {
        BindKind::Role => role(name).is_some(),
        BindKind::Policy => acl.policies.get(name).is_some(),
        BindKind::Management => true,
    };
    let mut bound = bind(claims, rules, exists);
    bound.roles = bound.roles.iter().filter_map(|name| role(name)).map(str::to_string).collect();
    bound
}
