//! Tokens whose signatures were found good. A node presents the same one with each heartbeat for hours, and checking the signature
//! was an eighth of what a heartbeat cost.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use base::{Time, Uuid};
use state::keyring::Keyring;

use crate::Claims;
use crate::token::{TokenError, verify_with};

/// Tokens in each of the two generations: one for each node of the largest fleet that is planned for. Some 500 bytes each.
const GENERATION_MAX: usize = 131_072;

/// In two generations. A full young one becomes the old one; what was in the old one by then, and has not been presented since it
/// was young, is forgotten, and checked again when it comes back.
#[derive(Debug, Default)]
pub struct VerifiedTokens(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Digest, Verified>,
    old: HashMap<Digest, Verified>,
}

/// Of a token: what is kept could not be presented by whoever reads it.
type Digest = [u8; 32];

#[derive(Clone, Debug)]
struct Verified {
    key: Uuid,
    claims: Arc<Claims>,
}

impl VerifiedTokens {
    /// As [`crate::verify`].
    ///
    /// # Errors
    /// As there. A token that was good is refused as soon as its key is removed.
    pub fn verify(&self, keyring: &Keyring, token: &str, now: Time) -> Result<Arc<Claims>, TokenError> {
        let digest = *blake3::hash(token.as_bytes()).as_bytes();
        if let Some(verified) = self.find(&digest) {
            let is_there = keyring.keys().contains_key(&verified.key);
            return if is_there { Ok(verified.claims) } else { Err(TokenError::UnknownKey) };
        }
        let (claims, key) = verify_with(keyring, token, now)?;
        let claims = Arc::new(claims);
        self.keep(digest, Verified { key, claims: Arc::clone(&claims) }, GENERATION_MAX);
        Ok(claims)
    }

    fn find(&self, digest: &Digest) -> Option<Verified> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verified) = generations.young.get(digest) {
            return Some(verified.clone());
        }
        let verified = generations.old.remove(digest)?;
        generations.young.insert(*digest, verified.clone());
        Some(verified)
    }

    fn keep(&self, digest: Digest, verified: Verified, max: usize) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= max {
            generations.old = mem::take(&mut generations.young);
        }
        generations.young.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;
    use crate::token::tests::{NOW, keyring, keys, node, signer};

    #[test]
    fn a_token_found_good_is_good_until_its_key_is_removed() {
        let (one, [rsa, ed]) = (signer(1), keys());
        let (both, without) = (keyring(&[&rsa, &ed], &[&one]), keyring(&[&rsa], &[&one]));
        let verified = VerifiedTokens::default();
        let claims = Claims::of_node("global", node(), NOW, Duration::from_secs(90));
        let token = one.sign(&both, ed.id(), &claims).unwrap();
        assert_eq!(verified.verify(&without, &token, NOW), Err(TokenError::UnknownKey));
        let first = verified.verify(&both, &token, NOW).unwrap();
        let second = verified.verify(&both, &token, NOW).unwrap();
        assert!(*first == claims && Arc::ptr_eq(&first, &second), "it is checked once");
        assert_eq!(verified.verify(&without, &token, NOW), Err(TokenError::UnknownKey));

        let forged = format!("{token}A");
        for _ in 0..2 {
            assert!(verified.verify(&both, &forged, NOW).is_err(), "what failed is not kept");
        }
    }

    #[test]
    fn what_is_presented_again_stays_and_the_rest_is_forgotten() {
        let verified = VerifiedTokens::default();
        let claims = Arc::new(Claims::of_node("global", node(), NOW, Duration::ZERO));
        let keep = |number: u8| {
            verified.keep([number; 32], Verified { key: Uuid::NIL, claims: Arc::clone(&claims) }, 2);
        };
        (1..=3).for_each(keep);
        assert!(verified.find(&[1; 32]).is_some(), "of the older generation: young again");
        keep(4);
        let known: Vec<bool> = (1..=4).map(|number| verified.find(&[number; 32]).is_some()).collect();
        assert_eq!(known, [true, false, true, true]);
    }
}
