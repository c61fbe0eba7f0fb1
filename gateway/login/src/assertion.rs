//! What the cluster proves itself to a provider with, instead of a secret (RFC 7523).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512};
use base::{Duration, Time, Uuid};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::document::{OIDCClientAssertion, OIDCClientAssertionKey};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Map, Value, json};

use crate::LoginError;
use crate::http::failed;
use crate::keys::private_from_pem;

/// How long an assertion is good for.
const LIFETIME: Duration = Duration::from_secs(300);

/// Signs with the key of the cluster: gives the key's id and an RS256 signature.
pub type ClusterKey<'a> = &'a (dyn Fn(&[u8]) -> Result<Vec<u8>, String> + Send + Sync);

/// What an assertion is made with.
pub(crate) struct Signing<'a> {
    pub client_secret: Option<&'a str>,
    pub private_key: Option<&'a str>,
    /// The id of the cluster's key, and what signs with it.
    pub cluster_key: Option<(Uuid, ClusterKey<'a>)>,
}

/// A signed assertion that this is the client.
pub(crate) fn signed(
    assertion: &OIDCClientAssertion,
    client: &str,
    token_endpoint: &str,
    signing: &Signing<'_>,
    now: Time,
) -> Result<String, LoginError> {
    let wrong = |why: String| failed("client assertion", why);
    let audience = match assertion.audience.as_slice() {
        [] => json!(token_endpoint),
        [one] => json!(one),
        several => json!(several),
    };
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| wrong("the system has no entropy".to_string()))?;
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": audience,
        "jti": Uuid::from_random(id).to_string(),
        "iat": now.secs(),
        "nbf": now.secs(),
        "exp": now.plus(LIFETIME).secs(),
    });
    let mut header: Map<String, Value> =
        assertion.extra_headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    header.insert("typ".to_string(), json!("JWT"));
    let missing = |what: &str| wrong(format!("{what} cannot be opened"));
    let named = |default: &str| match assertion.key_algorithm.as_str() {
        "" => default.to_string(),
        given => given.to_string(),
    };
    let sign: Box<dyn Fn(&[u8]) -> Result<Vec<u8>, String>> = match assertion.key_source.as_str() {
        OIDCClientAssertion::CLIENT_SECRET => {
            let name = named("HS256");
            let algorithm = match name.as_str() {
                "HS384" => hmac::HMAC_SHA384,
                "HS512" => hmac::HMAC_SHA512,
                _ => hmac::HMAC_SHA256,
            };
            header.insert("alg".to_string(), json!(name));
            let secret = signing.client_secret.ok_or_else(|| missing("the client secret"))?;
            let key = hmac::Key::new(algorithm, secret.as_bytes());
            Box::new(move |message| Ok(hmac::sign(&key, message).as_ref().to_vec()))
        }
        OIDCClientAssertion::PRIVATE_KEY => {
            let name = named("RS256");
            let padding = match name.as_str() {
                "RS384" => &RSA_PKCS1_SHA384,
                "RS512" => &RSA_PKCS1_SHA512,
                _ => &RSA_PKCS1_SHA256,
            };
            header.insert("alg".to_string(), json!(name));
            if let Some(key) = &assertion.private_key {
                let (name, id) = key_id(key).map_err(wrong)?;
                header.insert(name.to_string(), json!(id));
            }
            let pem = signing.private_key.ok_or_else(|| missing("the private key"))?;
            let pair = private_from_pem(pem).map_err(wrong)?;
            Box::new(move |message| {
                let mut signature = vec![0; pair.public_modulus_len()];
                let signed = pair.sign(padding, &SystemRandom::new(), message, &mut signature);
                signed.map(|()| signature).map_err(|_| "the key cannot sign".to_string())
            })
        }
        _ => {
            let (id, sign) = signing.cluster_key.ok_or_else(|| missing("the key of the cluster"))?;
            header.insert("alg".to_string(), json!("RS256"));
            header.insert("kid".to_string(), json!(id.to_string()));
            Box::new(sign)
        }
    };
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let content = format!("{}.{}", part(&Value::Object(header)), part(&claims));
    let signature = sign(content.as_bytes()).map_err(wrong)?;
    Ok(format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The header that says which key it is, and what it says.
fn key_id(key: &OIDCClientAssertionKey) -> Result<(&str, String), String> {
    let algorithm = match key.key_id_header.as_str() {
        "x5t" => &SHA1_FOR_LEGACY_USE_ONLY,
        "x5t#S256" => &SHA256,
        _ => return Ok(("kid", key.key_id.clone())),
    };
    let certificate = CertificateDer::from_pem_slice(key.pem_cert.as_bytes())
        .map_err(|_| "invalid PemCert: expected a certificate in PEM".to_string())?;
    Ok((&key.key_id_header, URL_SAFE_NO_PAD.encode(digest(algorithm, &certificate))))
}
