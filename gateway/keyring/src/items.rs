//! The items of variables, as the log holds them.

use std::collections::BTreeMap;

use base::Uuid;
use model::{SealedItems, VariableKey};
use state::keyring::Keyring;

use crate::{KeyError, Signer, SigningKey};

const DIGEST_CONTEXT: &str = "sojourn 2026 digest of the items of a variable";

/// Keys and values of a variable.
pub type Items = BTreeMap<String, String>;

impl Signer {
    /// Seals items with the active key, for this variable alone.
    ///
    /// # Errors
    /// As [`Signer::seal`].
    pub fn seal_items(
        &self,
        keyring: &Keyring,
        variable: &VariableKey,
        items: &Items,
    ) -> Result<SealedItems, KeyError> {
        let purpose = purpose(variable);
        let plain = rmp_serde::to_vec(items).expect("items have a msgpack form");
        let sealed = self.seal(keyring, &purpose, &plain)?;
        let digest = digest(&*self.key(keyring, sealed.key)?, &purpose, &plain)?;
        Ok(SealedItems { sealed, digest })
    }

    /// # Errors
    /// As [`Signer::unseal`].
    pub fn open_items(
        &self,
        keyring: &Keyring,
        variable: &VariableKey,
        items: &SealedItems,
    ) -> Result<Items, KeyError> {
        let plain = self.unseal(keyring, &purpose(variable), &items.sealed)?;
        rmp_serde::from_slice(&plain).map_err(|_| KeyError::Open(items.sealed.key))
    }

    /// This server has a copy of the key.
    pub fn opens(&self, keyring: &Keyring, key: Uuid) -> bool {
        self.key(keyring, key).is_ok()
    }
}

/// What a seal is bound to: a namespace has no NUL in it, so that no two variables have the same.
fn purpose(variable: &VariableKey) -> Vec<u8> {
    [b"variable\0", variable.namespace.as_bytes(), b"\0", variable.path.as_bytes()].concat()
}

/// With a key, because a plain hash would let whoever has the log try out what a short secret may be. With the name, so
/// that two variables do not show that they hold the same.
fn digest(key: &SigningKey, purpose: &[u8], plain: &[u8]) -> Result<[u8; 32], KeyError> {
    let derived = blake3::derive_key(DIGEST_CONTEXT, &key.pkcs8()?);
    let mut hash = blake3::Hasher::new_keyed(&derived);
    hash.update(&(purpose.len() as u64).to_le_bytes()).update(purpose).update(plain);
    Ok(*hash.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use model::event::RootKeyActivated;
    use model::{Actor, CommandRecord, Event, RequestId, SigningAlgorithm};
    use state::{Delta, Moment, State};

    use super::*;
    use crate::ServerSecret;

    #[test]
    fn items_open_for_their_variable_and_equal_ones_are_known_without_being_opened() {
        let own = ServerSecret::new(1.into(), &[1; 32]).unwrap();
        let mut state = State::default();
        let activate = |state: &mut State, index, algorithm| {
            let key = SigningKey::generate(algorithm).unwrap();
            let sealed = vec![key.seal_for(own.server(), &own.public()).unwrap()];
            let (modulus, exponent) = key.public();
            let activated = RootKeyActivated { key: key.id(), modulus, exponent, sealed };
            let at = Moment { index: base::Index(index), time: base::Time::ZERO, epoch: model::EPOCH };
            let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
            state.absorb(at, &record, [Event::from(activated)].iter(), &mut Delta::default());
        };
        activate(&mut state, 1, SigningAlgorithm::EdDsa);
        let signer = Signer::new(ServerSecret::new(1.into(), &[1; 32]).unwrap());
        let items = |value: &str| Items::from([("password".to_string(), value.to_string())]);
        let (key, other) = (VariableKey::new("default", "a/b"), VariableKey::new("default", "a/c"));
        let seal = |state: &State, key, value| signer.seal_items(&state.keyring, key, &items(value)).unwrap();

        let sealed = seal(&state, &key, "hunter2");
        assert_eq!(signer.open_items(&state.keyring, &key, &sealed), Ok(items("hunter2")));
        assert!(signer.open_items(&state.keyring, &other, &sealed).is_err(), "it is of another variable");
        let again = seal(&state, &key, "hunter2");
        assert!(sealed.is_same(&again) && sealed.sealed.bytes != again.sealed.bytes);
        assert!(!sealed.is_same(&seal(&state, &key, "hunter3")));
        assert_ne!(sealed.digest, seal(&state, &other, "hunter2").digest, "nobody sees that they are equal");

        activate(&mut state, 2, SigningAlgorithm::Rs256);
        assert_eq!(signer.open_items(&state.keyring, &key, &sealed), Ok(items("hunter2")));
        assert_ne!(sealed.digest, seal(&state, &key, "hunter2").digest, "another key");
    }
}
