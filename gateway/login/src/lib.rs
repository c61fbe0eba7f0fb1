//! Proofs of who somebody is that others have signed.
//!
//! [`jwt`] checks tokens against keys, [`claims`] what they say against what an auth method demands, [`Providers`] fetches
//! keys and remembers them, [`oidc`] is the authorization code flow with PKCE. What rights follow from the claims is not for
//! here to say: see `acl::login`.
//!
//! Signatures are checked with the cryptography that this program has anyway, so that every algorithm of an auth method,
//! ES512 too, is there and no second library of tokens is. The code flow is four requests: a client library of OpenID Connect
//! would bring its own types for claims that are looked at as JSON here.
//!
//! What must never be here: a key that a token names itself, or an algorithm that its method does not list.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod assertion;
mod attempt;
pub mod claims;
mod http;
pub mod jwt;
mod keys;
pub mod oidc;
mod provider;

pub use assertion::{ClusterKey, Sign};
pub use attempt::{ATTEMPT_LIFETIME, Attempt};
pub use http::check_authorities;
pub use keys::{Key, check_private_key, from_pem};
pub use provider::Providers;

use base::Time;
use model::document::ACLAuthMethodConfig;
use serde_json::Value;

/// Why nobody is logged in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// What the caller asks for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// What the caller presents proves nothing.
    #[error("{0}")]
    Unproven(String),
    /// The provider, or the auth method's way to it.
    #[error("{0}")]
    Provider(String),
}

fn unproven<T>(why: impl Into<String>) -> Result<T, LoginError> {
    Err(LoginError::Unproven(why.into()))
}

/// What a JWT says, if it is signed with a key of the auth method and says what that demands.
///
/// # Errors
/// [`LoginError`].
pub async fn check_jwt(
    providers: &Providers,
    config: &ACLAuthMethodConfig,
    token: &str,
    now: Time,
) -> Result<Value, LoginError> {
    let token = jwt::Token::parse(token)?;
    let algorithm = token.algorithm(&config.signing_algs)?;
    let (said, issuer) = if !config.jwt_validation_pub_keys.is_empty() {
        let mut keys = Vec::new();
        for pem in config.jwt_validation_pub_keys.iter() {
            keys.extend(from_pem(pem).map_err(LoginError::Provider)?);
        }
        (token.verified(algorithm, &keys)?, None)
    } else if !config.jwks_url.is_empty() {
        let authorities: Vec<String> =
            Some(config.jwks_ca_cert.clone()).filter(|pem| !pem.is_empty()).into_iter().collect();
        let source = provider::Source { url: &config.jwks_url, authorities: &authorities };
        (providers.verified(&source, &token, algorithm).await?, None)
    } else {
        let found = providers.discovery(config).await?;
        let source = provider::Source { url: &found.jwks_uri, authorities: &config.discovery_ca_pem };
        (providers.verified(&source, &token, algorithm).await?, Some(found.issuer.clone()))
    };
    let issuers = match issuer {
        // Its keys speak for it, and for nobody else.
        Some(issuer) if config.bound_issuer.is_empty() => vec![issuer],
        _ => config.bound_issuer.0.clone(),
    };
    claims::check(&said, &claims::Demands::of(config, issuers, config.bound_audiences.0.clone()), now)?;
    Ok(said)
}
