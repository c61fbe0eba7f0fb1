//! How one can log in. Secrets come in here and are never shown again.

use api::ACLAuthMethodListStub;
use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::{Duration, Index};
use keyring::KeyError;
use model::document::{ACLAuthMethod, ACLAuthMethodConfig, AuthMethodRecord};
use model::{Command, SealedData, auth_method_secrets};
use state::State;

use super::super::write;
use super::forgetting;
use crate::access::{Management, Newcomers, denied};
use crate::answer::{Answer, done, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Json, Read, Reading, Write, as_json};
use crate::sealing::once_keyed;

const UNKNOWN: &str = "ACL auth-method not found";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/acl/auth-methods", get(list))
        .route("/v1/acl/auth-method", write(create))
        .route("/v1/acl/auth-method/{name}", get(read).merge(write(update)).delete(remove))
}

/// Who wants to log in chooses here, so it is for everybody.
async fn list(With(server): With<AppState>, read: Read<Newcomers>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let names =
            state.acl.methods.names().into_iter().filter(|name| name.starts_with(&read.options.prefix));
        let stubs = names.filter_map(|name| state::acl::auth_method(&state.acl, name));
        let shown =
            read.filtered("ACLAuthMethodListStub", stubs.map(ACLAuthMethodListStub::from), as_json)?;
        Ok(Page::whole(shown.into_iter()))
    };
    server.list(read, changed, view).await
}

async fn read(With(server): With<AppState>, Path(name): Path<String>, read: Read<Management>) -> Answer {
    if read.params.get("forgotten").is_some() {
        return forgetting::shown(&server, &read, &auth_method_secrets(&name)).await;
    }
    let view =
        |state: &State| state::acl::auth_method(&state.acl, &name).ok_or_else(|| Failure::not_found(UNKNOWN));
    server.read(&read, changed, view).await
}

async fn create(With(server): With<AppState>, write: Write, Json(wanted): Json<ACLAuthMethod>) -> Answer {
    let record = record(&server, &write, wanted).await?;
    let name = record.method.name.clone();
    submit(&server, &write, &name, Command::CreateAuthMethod(Box::new(record))).await
}

async fn update(
    With(server): With<AppState>,
    Path(name): Path<String>,
    write: Write,
    Json(wanted): Json<ACLAuthMethod>,
) -> Answer {
    if wanted.name != name {
        return Err(Failure::invalid("ACL auth-method name does not match request path"));
    }
    let record = record(&server, &write, wanted).await?;
    submit(&server, &write, &name, Command::UpdateAuthMethod(Box::new(record))).await
}

async fn remove(With(server): With<AppState>, Path(name): Path<String>, write: Write) -> Answer {
    if write.params.get("forget").is_some() {
        let of = auth_method_secrets(&name);
        return forgetting::submit(&server, &write, Command::ForgetAuthMethod { name }, &of).await;
    }
    let deleted = server.submit(&write, Command::DeleteAuthMethod { name }).await;
    deleted.map(|receipt| done(receipt.index)).map_err(Failure::as_internal)
}

async fn submit(server: &AppState, write: &Write, name: &str, command: Command) -> Answer {
    let receipt = server.submit(write, command).await?;
    let state = server.after(&receipt).await?;
    let method = state::acl::auth_method(&state.acl, name);
    written(
        receipt.index,
        &method.ok_or_else(|| Failure::not_found("the auth method was deleted meanwhile"))?,
    )
}

/// What the log gets: the method, with its secrets sealed. What cannot be understood is refused now: later nobody could log in.
async fn record(
    server: &AppState,
    write: &Write,
    wanted: ACLAuthMethod,
) -> Result<AuthMethodRecord, Failure> {
    if !write.access.acl.is_management() {
        return Err(denied());
    }
    let (ttl, settings) = (wanted.max_token_ttl.0, &server.agent.access);
    if ttl != Duration::ZERO && !(settings.ttl_min..=settings.ttl_max).contains(&ttl) {
        return Err(Failure::invalid(format!(
            "invalid MaxTokenTTL value '{ttl}' (should be between {} and {})",
            settings.ttl_min, settings.ttl_max
        )));
    }
    let placeholders = ["auth_method_type", "auth_method_name"];
    ::acl::login::check_template(&wanted.token_name_format, &placeholders)
        .map_err(|why| Failure::invalid(format!("invalid TokenNameFormat: {why}")))?;
    let mut method = wanted;
    let (mut secret, mut key) = (String::new(), String::new());
    if let Some(config) = &mut method.config {
        check_keys(config)?;
        secret = std::mem::take(&mut config.oidc_client_secret);
        if let Some(assertion) = &mut config.oidc_client_assertion {
            let given = std::mem::take(&mut assertion.client_secret);
            if secret.is_empty() {
                secret = given;
            }
            if let Some(own) = &mut assertion.private_key {
                key = std::mem::take(&mut own.pem_key);
            }
        }
    }
    if !key.is_empty() {
        login::check_private_key(&key).map_err(Failure::invalid)?;
    }
    let sealed = |state: &State, what: &str, secret: &str| -> Result<Option<SealedData>, KeyError> {
        let (of, purpose) = (auth_method_secrets(&method.name), purpose(&method.name, what));
        let seal = || server.signer.seal_secret(state, &of, &purpose, secret.as_bytes());
        (!secret.is_empty()).then(seal).transpose()
    };
    let both =
        |state: &State| Ok((sealed(state, CLIENT_SECRET, &secret)?, sealed(state, PRIVATE_KEY, &key)?));
    let (client_secret, private_key) = once_keyed(server, "secrets", both).await?;
    Ok(AuthMethodRecord { method, client_secret, private_key })
}

/// Everything in PEM can be read.
fn check_keys(config: &ACLAuthMethodConfig) -> Result<(), Failure> {
    for pem in config.jwt_validation_pub_keys.iter() {
        login::from_pem(pem)
            .map_err(|why| Failure::invalid(format!("invalid JWTValidationPubKeys: {why}")))?;
    }
    let authorities = [
        ("DiscoveryCaPem", config.discovery_ca_pem.0.clone()),
        ("JWKSCACert", {
            Some(config.jwks_ca_cert.clone()).filter(|pem| !pem.is_empty()).into_iter().collect()
        }),
    ];
    for (field, authorities) in authorities {
        if !authorities.is_empty() {
            login::check_authorities(&authorities)
                .map_err(|why| Failure::invalid(format!("invalid {field}: {why}")))?;
        }
    }
    Ok(())
}

pub(super) const CLIENT_SECRET: &str = "client secret";
pub(super) const PRIVATE_KEY: &str = "private key";

/// What a seal of an auth method is for: it opens for no other method, and for nothing else of it.
pub(super) fn purpose(method: &str, what: &str) -> Vec<u8> {
    format!("auth method {method}: {what}").into_bytes()
}

fn changed(state: &State) -> Index {
    state.acl.methods.changed.max(Index(1))
}
