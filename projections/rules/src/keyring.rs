//! Which keys the cluster signs with.

use base::Uuid;
use model::command::ActivateRootKey;
use model::event::{RootKeyActivated, RootKeyRemoved, RootKeySealed, RootKeysRekeying, ServerKeyAnnounced};
use model::{Rejection, SealedKey, SigningAlgorithm};
use state::keyring::Keyring;

use crate::decision::Decision;

/// Keys that are kept, the active one included: with one a month, those of five years.
pub const ROOT_KEYS_MAX: usize = 64;
/// Largest half of a key that is accepted; an RSA key of 4,096 bits, sealed, takes 2,400 bytes.
const KEY_BYTES_MAX: usize = 4_096;
/// A public key of Ed25519.
const ED25519_BYTES: usize = 32;

pub(crate) fn announce(keyring: &Keyring, server: Uuid, public: [u8; 32]) -> Result<Decision, Rejection> {
    if server.is_nil() {
        return invalid("Server", "the id of a server");
    }
    if keyring.servers().get(&server).is_some_and(|known| known.public == public) {
        return Ok(Decision::nothing());
    }
    Ok(ServerKeyAnnounced { server, public }.into())
}

/// # Errors
/// [`Rejection::RootKeyRefused`] when another key became the active one meanwhile, or there are too many.
pub(crate) fn activate(keyring: &Keyring, request: &ActivateRootKey) -> Result<Decision, Rejection> {
    let active = keyring.active().map_or(Uuid::NIL, |(key, _)| key);
    if request.only_after.is_some_and(|after| after != active) {
        return refused("another root key became the active one meanwhile");
    }
    if request.key.is_nil() || keyring.keys().contains_key(&request.key) {
        return invalid("KeyID", "an id that no key has");
    }
    let is_key = match SigningAlgorithm::of_exponent(&request.exponent) {
        SigningAlgorithm::Rs256 => fits(&request.modulus) && fits(&request.exponent),
        SigningAlgorithm::EdDsa => request.modulus.len() == ED25519_BYTES,
    };
    if !is_key {
        return invalid("PublicKey", "an RSA modulus and exponent, or the 32 bytes of an Ed25519 key");
    }
    if request.sealed.is_empty() {
        return invalid("Sealed", "a copy for at least one server");
    }
    request.sealed.iter().try_for_each(|sealed| check_sealed(keyring, sealed))?;
    if keyring.keys().len() >= ROOT_KEYS_MAX {
        return refused(&format!("there are {ROOT_KEYS_MAX} root keys already: remove one that is not used"));
    }
    let activated = RootKeyActivated {
        key: request.key,
        modulus: request.modulus.clone(),
        exponent: request.exponent.clone(),
        sealed: request.sealed.clone(),
    };
    let former: Vec<Uuid> = keyring.keys().keys().copied().collect();
    let mut events = vec![activated.into()];
    if request.full && !former.is_empty() {
        events.push(RootKeysRekeying { keys: former }.into());
    }
    Ok(Decision::of(events))
}

pub(crate) fn seal(keyring: &Keyring, key: Uuid, sealed: &SealedKey) -> Result<Decision, Rejection> {
    check_sealed(keyring, sealed)?;
    let known = keyring.keys().get(&key).ok_or(Rejection::RootKeyUnknown(key))?;
    if known.sealed.contains_key(&sealed.server) {
        return Ok(Decision::nothing());
    }
    Ok(RootKeySealed { key, sealed: sealed.clone() }.into())
}

/// # Errors
/// [`Rejection::RootKeyUnknown`]; [`Rejection::RootKeyRefused`] for the active key.
pub(crate) fn remove(keyring: &Keyring, key: Uuid) -> Result<Decision, Rejection> {
    if !keyring.keys().contains_key(&key) {
        return Err(Rejection::RootKeyUnknown(key));
    }
    if keyring.active().is_some_and(|(active, _)| active == key) {
        return refused("the active root key cannot be removed: rotate first");
    }
    Ok(RootKeyRemoved { key }.into())
}

fn check_sealed(keyring: &Keyring, sealed: &SealedKey) -> Result<(), Rejection> {
    if !keyring.servers().contains_key(&sealed.server) {
        return invalid("Sealed.Server", "a server that has announced its key");
    }
    if !fits(&sealed.bytes) {
        return invalid("Sealed.Bytes", "a sealed key");
    }
    Ok(())
}

fn fits(bytes: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&bytes.len())
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::RootKeyInvalid { field: field.into(), expected: expected.into() })
}

fn refused(why: &str) -> Result<Decision, Rejection> {
    Err(Rejection::RootKeyRefused(why.to_string()))
}
