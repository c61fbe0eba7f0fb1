//! Signed tokens (RFC 7515, RFC 7519) of others.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use crate::{Key, LoginError, unproven};

/// Longest token that is looked at.
pub const TOKEN_MAX: usize = 64 * 1024;

/// What tokens may be signed with if their method says nothing.
const DEFAULT: &str = "RS256";

/// How a signature is made. Each takes keys of one kind only, and all are of pairs of keys: nobody who can check a token can
/// make one.
#[derive(Clone, Copy)]
pub enum Algorithm {
    Rsa(&'static RsaParameters),
    Ecdsa { curve: &'static str, algorithm: &'static dyn VerificationAlgorithm },
    Ed25519,
}

impl Algorithm {
    fn named(name: &str) -> Option<Algorithm> {
        let ecdsa = |curve, algorithm| Some(Algorithm::Ecdsa { curve, algorithm });
        match name {
            "RS256" => Some(Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA256)),
            "RS384" => Some(Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA384)),
            "RS512" => Some(Algorithm::Rsa(&RSA_PKCS1_2048_8192_SHA512)),
            "PS256" => Some(Algorithm::Rsa(&RSA_PSS_2048_8192_SHA256)),
            "PS384" => Some(Algorithm::Rsa(&RSA_PSS_2048_8192_SHA384)),
            "PS512" => Some(Algorithm::Rsa(&RSA_PSS_2048_8192_SHA512)),
            "ES256" => ecdsa("P-256", &ECDSA_P256_SHA256_FIXED),
            "ES384" => ecdsa("P-384", &ECDSA_P384_SHA384_FIXED),
            "ES512" => ecdsa("P-521", &ECDSA_P521_SHA512_FIXED),
            "EdDSA" => Some(Algorithm::Ed25519),
            _ => None,
        }
    }

    /// For keys that are found by trial.
    pub(crate) fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Algorithm::Rsa(parameters) => parameters,
            Algorithm::Ecdsa { algorithm, .. } => algorithm,
            Algorithm::Ed25519 => &ED25519,
        }
    }
}

/// A token, taken apart. Nothing of it is proven.
#[derive(Clone, Debug)]
pub struct Token<'a> {
    alg: String,
    /// The key that it says it is signed with.
    pub kid: Option<String>,
    signed: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// What a reader has to understand, which nobody here does.
    #[serde(default)]
    crit: Option<Value>,
}

impl<'a> Token<'a> {
    /// # Errors
    /// [`LoginError::Unproven`]: it is no signed token.
    pub fn parse(text: &'a str) -> Result<Token<'a>, LoginError> {
        let malformed = || LoginError::Unproven("the token is not a signed JWT".to_string());
        if text.len() > TOKEN_MAX {
            return Err(malformed());
        }
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (header, said) = signed.split_once('.').ok_or_else(malformed)?;
        if said.contains('.') {
            return Err(malformed());
        }
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed());
        let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| malformed())?;
        if header.crit.is_some() {
            return unproven("the token has a header that is not understood: crit");
        }
        Ok(Token { alg: header.alg, kid: header.kid, signed, signature: decoded(signature)? })
    }

    /// # Errors
    /// [`LoginError::Unproven`]: it is signed in a way that is not among the allowed ones.
    pub fn algorithm(&self, allowed: &[String]) -> Result<Algorithm, LoginError> {
        let is_allowed = match allowed {
            [] => self.alg == DEFAULT,
            some => some.contains(&self.alg),
        };
        let algorithm = Algorithm::named(&self.alg).filter(|_| is_allowed);
        algorithm.ok_or_else(|| {
            let allowed = if allowed.is_empty() { DEFAULT.to_string() } else { allowed.join(", ") };
            LoginError::Unproven(format!("the token is signed with {:?}: expected {allowed}", self.alg))
        })
    }

    /// The keys that may have signed it.
    pub fn candidates<'k>(&'k self, keys: &'k [Key]) -> impl Iterator<Item = &'k Key> {
        keys.iter().filter(|key| key.is_meant(self.kid.as_deref(), &self.alg))
    }

    /// What it says.
    ///
    /// # Errors
    /// [`LoginError::Unproven`]: none of the keys has signed it.
    pub fn verified(&self, algorithm: Algorithm, keys: &[Key]) -> Result<Value, LoginError> {
        let mut candidates = self.candidates(keys);
        if !candidates.any(|key| key.has_signed(algorithm, self.signed.as_bytes(), &self.signature)) {
            return unproven("no known key has signed the token");
        }
        let said = self.signed.split_once('.').map(|(_, said)| said).unwrap_or_default();
        let said = URL_SAFE_NO_PAD.decode(said).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        match said {
            Some(said @ Value::Object(_)) => Ok(said),
            _ => unproven("the token has no claims"),
        }
    }
}
