use aws_lc_rs::rsa::{KeyPair, PublicKeyComponents};
use aws_lc_rs::signature::UnparsedPublicKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::pem::{PemObject, SectionKind};
use serde::Deserialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::jwt::Algorithm;

/// Most keys of one document.
const KEYS_MAX: usize = 256;

/// A public key of somebody who signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    kid: Option<String>,
    /// The only algorithm that it is for, if it says so.
    alg: Option<String>,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// SubjectPublicKeyInfo, of any kind.
    Spki(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    Point {
        curve: String,
        bytes: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

impl Key {
    pub(crate) fn is_meant(&self, kid: Option<&str>, alg: &str) -> bool {
        let by_id = match (kid, &self.kid) {
            (Some(wanted), Some(own)) => wanted == own,
            (None, _) | (_, None) => true,
        };
        by_id && self.alg.as_deref().is_none_or(|own| own == alg)
    }

    pub(crate) fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let checked = match (&self.content, algorithm) {
            (Content::Spki(der), any) => {
                UnparsedPublicKey::new(any.verification(), der).verify(message, signature)
            }
            (Content::Rsa { n, e }, Algorithm::Rsa(parameters)) => {
                PublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Content::Point { curve: own, bytes }, Algorithm::Ecdsa { curve, algorithm }) if own == curve => {
                UnparsedPublicKey::new(algorithm, bytes).verify(message, signature)
            }
            (Content::Ed25519(bytes), Algorithm::Ed25519) => {
                UnparsedPublicKey::new(algorithm.verification(), bytes).verify(message, signature)
            }
            (Content::Rsa { .. } | Content::Point { .. } | Content::Ed25519(_), _) => return false,
        };
        checked.is_ok()
    }
}

/// The public keys in a PEM text, also out of certificates.
///
/// # Errors
/// What cannot be read.
pub fn from_pem(pem: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()) {
        let (kind, der) = section.map_err(|error| format!("invalid public key: {error:?}"))?;
        let content = match kind {
            SectionKind::PublicKey => Content::Spki(der),
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(&der)
                    .map_err(|error| format!("invalid certificate: {error}"))?;
                Content::Spki(certificate.public_key().raw.to_vec())
            }
            _ => return Err("invalid public key: expected PUBLIC KEY or CERTIFICATE".to_string()),
        };
        keys.push(Key { kid: None, alg: None, content });
    }
    match keys.is_empty() {
        true => Err("invalid public key: expected PEM".to_string()),
        false => Ok(keys),
    }
}

/// The pair of an RSA key in PEM.
pub(crate) fn private_from_pem(pem: &str) -> Result<KeyPair, String> {
    let wrong = "invalid PemKey: expected an RSA key in PEM, PRIVATE KEY or RSA PRIVATE KEY";
    let mut sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes());
    let read = match sections.next() {
        Some(Ok((SectionKind::PrivateKey, der))) => KeyPair::from_pkcs8(&der),
        Some(Ok((SectionKind::RsaPrivateKey, der))) => KeyPair::from_der(&der),
        _ => return Err(wrong.to_string()),
    };
    read.map_err(|_| wrong.to_string())
}

/// # Errors
/// The PEM holds no private key that can sign.
pub fn check_private_key(pem: &str) -> Result<(), String> {
    private_from_pem(pem).map(drop)
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

/// The keys of a JSON Web Key Set (RFC 7517) that check signatures. What is of another kind is left out.
///
/// # Errors
/// It is no such set.
pub(crate) fn from_jwks(json: &[u8]) -> Result<Vec<Key>, String> {
    let set: Jwks = serde_json::from_slice(json).map_err(|error| format!("not a set of keys: {error}"))?;
    let signing = set.keys.into_iter().filter(|key| key.purpose.as_deref().is_none_or(|own| own == "sig"));
    Ok(signing.filter_map(Jwk::key).take(KEYS_MAX).collect())
}

impl Jwk {
    fn key(self) -> Option<Key> {
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty());
        let content = match self.kty.as_str() {
            "RSA" => Content::Rsa { n: decoded(&self.n)?, e: decoded(&self.e)? },
            "EC" => {
                let length = match self.crv.as_str() {
                    "P-256" => 32,
                    "P-384" => 48,
                    "P-521" => 66,
                    _ => return None,
                };
                let mut bytes = vec![4];
                for half in [decoded(&self.x)?, decoded(&self.y)?] {
                    bytes.extend(vec![0; usize::checked_sub(length, half.len())?]);
                    bytes.extend(half);
                }
                Content::Point { curve: self.crv, bytes }
            }
            "OKP" if self.crv == "Ed25519" => Content::Ed25519(decoded(&self.x)?),
            _ => return None,
        };
        Some(Key { kid: self.kid, alg: self.alg, content })
    }
}
