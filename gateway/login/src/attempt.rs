use base::{Duration, Time, Uuid};
use serde::{Deserialize, Serialize};

use crate::LoginError;

/// How long somebody may take to log in at the provider.
pub const ATTEMPT_LIFETIME: Duration = Duration::from_secs(360);

/// Somebody has been sent to a provider to log in. It travels with them, sealed, and comes back: so any server can go on with
/// it, whichever began, and none has to remember anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The accessor that their token gets: a second token for the same attempt would have the same one.
    pub accessor: Uuid,
    pub method: String,
    pub redirect_uri: String,
    /// BLAKE3 of what only the program knows that they log in with.
    client_nonce: [u8; 32],
    /// What the provider has to repeat.
    pub nonce: String,
    /// What proves to the provider that it was us who sent them (RFC 7636).
    pub verifier: Option<String>,
    pub expires: Time,
}

impl Attempt {
    pub fn new(
        accessor: Uuid,
        method: &str,
        redirect_uri: &str,
        client_nonce: &str,
        pkce: bool,
        now: Time,
    ) -> Result<Attempt, LoginError> {
        Ok(Attempt {
            accessor,
            method: method.to_string(),
            redirect_uri: redirect_uri.to_string(),
            client_nonce: *blake3::hash(client_nonce.as_bytes()).as_bytes(),
            nonce: random()?,
            verifier: pkce.then(random).transpose()?,
            expires: now.plus(ATTEMPT_LIFETIME),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an attempt has a JSON form")
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Attempt> {
        serde_json::from_slice(bytes).ok()
    }

    /// # Errors
    /// [`LoginError::Invalid`]: it is too late, or what comes back belongs to another attempt.
    pub fn check(
        &self,
        method: &str,
        redirect_uri: &str,
        client_nonce: &str,
        now: Time,
    ) -> Result<(), LoginError> {
        let invalid = |why: &str| Err(LoginError::Invalid(why.to_string()));
        if now >= self.expires {
            return invalid("the login took too long: begin again");
        }
        if self.method != method {
            return invalid("the state belongs to another auth method");
        }
        if self.redirect_uri != redirect_uri {
            return invalid("the redirect URI is not the one that the login began with");
        }
        // A comparison of hashes reveals nothing about what is hashed.
        if self.client_nonce != *blake3::hash(client_nonce.as_bytes()).as_bytes() {
            return invalid("the client nonce is not the one that the login began with");
        }
        Ok(())
    }
}

/// 256 bits, as text.
fn random() -> Result<String, LoginError> {
    use base64::Engine;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| LoginError::Provider("the system has no entropy".to_string()))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
