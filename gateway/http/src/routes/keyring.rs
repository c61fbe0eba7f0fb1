//! The keys that the cluster signs with.

use api::{
    IssuerMetadata, KeyringDeleted, KeyringRotated, RootKeyMeta, SigningKeySet, SigningRootKey, WebKey,
};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{delete, get};
use base::Uuid;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyring::{KeyError, SigningKey, is_used};
use model::command::ActivateRootKey;
use model::{Command, SigningAlgorithm};
use state::State;
use state::keyring::RootKey;

use super::write;
use crate::access::ReadKeyring;
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Read, Write};

/// How long a verifier may keep the public keys. One that meets a key it does not know asks again.
const CACHE: (HeaderName, &str) = (header::CACHE_CONTROL, "max-age=3600");
const WEB_KEYS: &str = "/.well-known/jwks.json";
/// The one cipher that Nomad has for what root keys encrypt.
const ALGORITHM: &str = "aes256-gcm";

pub(super) fn router() -> Router<AppState> {
    let invalid = async || Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Invalid method");
    Router::new()
        .route(WEB_KEYS, get(web_keys))
        .route("/.well-known/openid-configuration", get(issuer))
        .route("/v1/operator/keyring/keys", get(list).fallback(invalid))
        .route("/v1/operator/keyring/rotate", write(rotate).fallback(invalid))
        .route("/v1/operator/keyring/key/{id}", delete(remove).fallback(invalid))
        .route("/v1/operator/keyring/{*rest}", axum::routing::any(invalid))
}

/// Public halves of all keys: what was signed before a rotation is still to be verified.
async fn web_keys(With(server): With<AppState>) -> Answer {
    let state = server.control.state();
    let keys = state.keyring.keys().iter().map(|(id, key)| web_key(*id, key)).collect();
    Ok(([CACHE], answer::json(&SigningKeySet { keys })).into_response())
}

/// What verifiers need to know, where the operator has said under which address they find it.
async fn issuer(With(server): With<AppState>) -> Answer {
    let Some(issuer) = server.signer.issuer() else {
        return Err(Failure::not_found("OIDC Discovery endpoint disabled"));
    };
    let state = server.control.state();
    let has = |wanted| move |key: &RootKey| key.algorithm() == wanted;
    let living =
        SigningAlgorithm::ALL.iter().filter(|wanted| state.keyring.keys().values().any(has(**wanted)));
    let metadata = IssuerMetadata {
        issuer: issuer.to_string(),
        jwks_uri: format!("{}{WEB_KEYS}", issuer.trim_end_matches('/')),
        response_types_supported: vec!["code".to_string()],
        subject_types_supported: vec!["public".to_string()],
        id_token_signing_alg_values_supported: living.map(|algorithm| algorithm.name().to_string()).collect(),
    };
    Ok(([CACHE], answer::json(&metadata)).into_response())
}

async fn list(With(server): With<AppState>, read: Read<ReadKeyring>) -> Answer {
    let view =
        |state: &State| Ok(state.keyring.keys().keys().map(|id| listed(state, *id)).collect::<Vec<_>>());
    server.read(&read, |state: &State| state.keyring.changed(), view).await
}

async fn rotate(With(server): With<AppState>, write: Write) -> Answer {
    if write.params.get("publish_time").is_some_and(|time| !time.is_empty()) {
        return Err(Failure::unsupported("publishing a root key ahead of its use (`publish_time`) is"));
    }
    let state = server.control.state();
    let algorithm = wanted_algorithm(&state, write.params.get("algo").unwrap_or_default())?;
    // What the old keys seal is to be sealed anew; the leader does it, some at a time.
    let full = write.params.boolean("full")?;
    let draw = move || -> Result<_, KeyError> {
        Ok(ActivateRootKey { full, ..SigningKey::generate(algorithm)?.activation(&state.keyring, None)? })
    };
    let failed = |why: String| Failure::internal(format!("the root key is not generated: {why}"));
    let drawn = tokio::task::spawn_blocking(draw).await.map_err(|panic| failed(panic.to_string()))?;
    let activation = drawn.map_err(|error| failed(error.to_string()))?;
    let key = activation.key;
    let receipt = server.submit(&write, Command::ActivateRootKey(Box::new(activation))).await?;
    let state = server.after(&receipt).await?;
    // As Nomad does it: clients take the key's index for one they have not seen the list at, and would wait for ever.
    let mut key = listed(&state, key);
    (key.meta.create_index, key.meta.modify_index) = (0, 0);
    let answer = KeyringRotated { key, index: receipt.index.0 };
    answer::written(receipt.index, &answer)
}

/// How a new key is to sign: like the one before, unless the caller says otherwise.
///
/// # Errors
/// 400 for an algorithm that nobody has.
fn wanted_algorithm(state: &State, name: &str) -> Result<SigningAlgorithm, Failure> {
    // Nomad's `algo` speaks of what the key encrypts, which is the same for each of ours.
    if matches!(name, "" | ALGORITHM) {
        return Ok(state.keyring.algorithm());
    }
    let called = |algorithm: &SigningAlgorithm| algorithm.name().eq_ignore_ascii_case(name);
    SigningAlgorithm::ALL.into_iter().find(called).ok_or_else(|| {
        let [first, second] = SigningAlgorithm::ALL.map(|known| known.name().to_ascii_lowercase());
        Failure::invalid(format!("invalid algo {name:?}: expected {first}, {second} or {ALGORITHM}"))
    })
}

/// `force` also removes a key that is in use, and takes back what it signed.
async fn remove(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let force = write.params.get("force").unwrap_or_default();
    if !matches!(force, "" | "true" | "false" | "1" | "0") {
        return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid force parameter"));
    }
    let key = id.parse().map_err(|error: base::IdError| Failure::invalid(error.to_string()))?;
    let is_forced = matches!(force, "true" | "1");
    let state = server.control.state();
    // That of the active one is a rule, and stands there.
    let is_former = state.keyring.active().is_none_or(|(active, _)| active != key);
    if is_former && !is_forced && is_used(&state, key, now()) {
        let why = "root key in use, cannot delete: identities that it signed are still valid, or it seals secrets (`force` takes them back)";
        return Err(Failure::new(StatusCode::CONFLICT, why));
    }
    let receipt = server.submit(&write, Command::RemoveRootKey { key }).await?;
    answer::written(receipt.index, &KeyringDeleted { index: receipt.index.0 })
}

/// Nothing but its id for a key that was removed meanwhile.
pub(crate) fn listed(state: &State, id: Uuid) -> SigningRootKey {
    let is_active = state.keyring.active().is_some_and(|(active, _)| active == id);
    let key_id = id.to_string();
    let Some(key) = state.keyring.keys().get(&id) else {
        let meta = RootKeyMeta { key_id, ..RootKeyMeta::default() };
        return SigningRootKey { meta, ..SigningRootKey::default() };
    };
    let meta = RootKeyMeta {
        key_id,
        algorithm: ALGORITHM.to_string(),
        create_time: key.created_at.0,
        create_index: key.created.0,
        modify_index: key.modified.0,
        state: match (is_active, state.keyring.rekeying().contains(&id)) {
            (true, _) => "active",
            (false, true) => "rekeying",
            (false, false) => "inactive",
        }
        .to_string(),
        publish_time: 0,
    };
    SigningRootKey { meta, signing_algorithm: key.algorithm().name().to_string() }
}

fn web_key(id: Uuid, key: &RootKey) -> WebKey {
    let algorithm = key.algorithm();
    let common = WebKey {
        key_id: id.to_string(),
        usage: "sig".to_string(),
        algorithm: algorithm.name().to_string(),
        ..WebKey::default()
    };
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match algorithm {
        SigningAlgorithm::Rs256 => WebKey {
            key_type: "RSA".to_string(),
            modulus: number(&key.modulus),
            exponent: number(&key.exponent),
            ..common
        },
        SigningAlgorithm::EdDsa => WebKey {
            key_type: "OKP".to_string(),
            curve: "Ed25519".to_string(),
            point: number(&key.modulus),
            ..common
        },
    }
}
