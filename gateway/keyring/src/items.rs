//! The items of variables, and the secrets of access tokens and auth methods, as the log holds them: with a key of the key tree that only this object has, or, from before there
//! was a tree, with a root key (see `sealing`).
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version: 2 |
//! | 16 | the key tree |
//! | 24 | a nonce, drawn for this seal |
//! | n | XChaCha20-Poly1305 over it, with the tree, the key's id and what it is for (the variable's name) as associated data |

use std::collections::BTreeMap;

use base::Uuid;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use model::{SealedData, SealedItems, VariableKey};
use state::State;
use state::keyring::Keyring;

use crate::{KeyError, Signer};

pub(crate) const VERSION: u8 = 2;
const CIPHER_CONTEXT: &str = "sojourn 2026 items of a variable sealed with a key of its own";

const DIGEST_CONTEXT: &str = "sojourn 2026 digest of the items of a variable";

/// Keys and values of a variable.
pub type Items = BTreeMap<String, String>;

impl Signer {
    /// Seals items with the variable's own key. A cluster without a key tree, because a server of an earlier release is
    /// in it, seals with its root key.
    ///
    /// # Errors
    /// [`KeyError::Tree`]: this server has not got the tree yet. As [`Signer::seal`] where there is none.
    pub fn seal_items(
        &self,
        state: &State,
        variable: &VariableKey,
        items: &Items,
    ) -> Result<SealedItems, KeyError> {
        let Some(tree) = state.erasure.tree() else {
            return self.seal_items_with_root_key(&state.keyring, variable, items);
        };
        let (purpose, plain) =
            (purpose(variable), rmp_serde::to_vec(items).expect("items have a msgpack form"));
        let (sealed, key) = self.seal_with(tree, state.erasure.key_of(variable), &purpose, &plain)?;
        Ok(SealedItems { sealed, digest: digest(&key, &purpose, &plain) })
    }

    /// Seals a secret with the own key of what it belongs to, as the key tree knows that ([`model::token_secrets`]). `purpose` as of
    /// [`Signer::seal`].
    ///
    /// # Errors
    /// As [`Signer::seal_items`].
    pub fn seal_secret(
        &self,
        state: &State,
        of: &VariableKey,
        purpose: &[u8],
        secret: &[u8],
    ) -> Result<SealedData, KeyError> {
        let Some(tree) = state.erasure.tree() else { return self.seal(&state.keyring, purpose, secret) };
        self.seal_with(tree, state.erasure.key_of(of), purpose, secret).map(|(sealed, _)| sealed)
    }

    /// With the key as well.
    fn seal_with(
        &self,
        tree: Uuid,
        id: Uuid,
        purpose: &[u8],
        plain: &[u8],
    ) -> Result<(SealedData, [u8; 32]), KeyError> {
        let key = self.trees().key(tree, id)?;
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce).map_err(|_| KeyError::Entropy)?;
        let payload = Payload { msg: plain, aad: &associated(tree, id, purpose) };
        let content = cipher(&key).encrypt(&XNonce::from(nonce), payload).map_err(|_| KeyError::Generate)?;
        let bytes = [&[VERSION], &tree.0[..], &nonce, &content].concat();
        Ok((SealedData { key: id, bytes }, key))
    }

    /// # Errors
    /// As [`Signer::seal`].
    pub fn seal_items_with_root_key(
        &self,
        keyring: &Keyring,
        variable: &VariableKey,
        items: &Items,
    ) -> Result<SealedItems, KeyError> {
        let purpose = purpose(variable);
        let plain = rmp_serde::to_vec(items).expect("items have a msgpack form");
        let sealed = self.seal(keyring, &purpose, &plain)?;
        let digest = digest(&self.key(keyring, sealed.key)?.pkcs8()?, &purpose, &plain);
        Ok(SealedItems { sealed, digest })
    }

    /// # Errors
    /// [`KeyError::Erased`]: the variable was forgotten. [`KeyError::Tree`]: this server does not have the tree. As
    /// [`Signer::unseal`].
    pub fn open_items(
        &self,
        keyring: &Keyring,
        variable: &VariableKey,
        items: &SealedItems,
    ) -> Result<Items, KeyError> {
        let plain = self.unseal(keyring, &purpose(variable), &items.sealed)?;
        rmp_serde::from_slice(&plain).map_err(|_| KeyError::Open(items.sealed.key))
    }

    pub(crate) fn open_with_own_key(&self, purpose: &[u8], sealed: &SealedData) -> Result<Vec<u8>, KeyError> {
        let refuse = || KeyError::Open(sealed.key);
        let (tree, rest) = sealed.bytes[1..].split_first_chunk::<16>().ok_or_else(refuse)?;
        let (nonce, content) = rest.split_first_chunk::<24>().ok_or_else(refuse)?;
        let tree = Uuid(*tree);
        let key = self.trees().key(tree, sealed.key)?;
        let payload = Payload { msg: content, aad: &associated(tree, sealed.key, purpose) };
        cipher(&key).decrypt(&XNonce::from(*nonce), payload).map_err(|_| refuse())
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
fn digest(key: &[u8], purpose: &[u8], plain: &[u8]) -> [u8; 32] {
    let derived = blake3::derive_key(DIGEST_CONTEXT, key);
    let mut hash = blake3::Hasher::new_keyed(&derived);
    hash.update(&(purpose.len() as u64).to_le_bytes()).update(purpose).update(plain);
    *hash.finalize().as_bytes()
}

fn cipher(key: &[u8; 32]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&blake3::derive_key(CIPHER_CONTEXT, key).into())
}

fn associated(tree: Uuid, key: Uuid, purpose: &[u8]) -> Vec<u8> {
    [&tree.0[..], &key.0, purpose].concat()
}

#[cfg(test)]
mod tests {
    use model::event::{KeyTreeFounded, RootKeyActivated, SecretsForgotten, VariableForgotten};
    use model::{Actor, CommandRecord, Event, RequestId, SigningAlgorithm};
    use state::{Delta, Moment, State};

    use super::*;
    use crate::{KeyTree, ServerSecret, SigningKey};

    fn fold(state: &mut State, index: u64, event: Event) {
        let at = Moment { index: base::Index(index), time: base::Time::ZERO, epoch: model::EPOCH };
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        state.absorb(at, &record, [event].iter(), &mut Delta::default());
    }

    #[test]
    fn items_open_for_their_variable_and_equal_ones_are_known_without_being_opened() {
        let own = ServerSecret::new(1.into(), &[1; 32]).unwrap();
        let mut state = State::default();
        let activate = |state: &mut State, index, algorithm| {
            let key = SigningKey::generate(algorithm).unwrap();
            let sealed = vec![key.seal_for(own.server(), &own.public()).unwrap()];
            let (modulus, exponent) = key.public();
            let activated = RootKeyActivated { key: key.id(), modulus, exponent, sealed };
            fold(state, index, activated.into());
        };
        activate(&mut state, 1, SigningAlgorithm::EdDsa);
        let signer = Signer::new(ServerSecret::new(1.into(), &[1; 32]).unwrap());
        let items = |value: &str| Items::from([("password".to_string(), value.to_string())]);
        let (key, other) = (VariableKey::new("default", "a/b"), VariableKey::new("default", "a/c"));
        let seal = |state: &State, key, value| signer.seal_items(state, key, &items(value)).unwrap();

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

    #[test]
    fn a_variable_has_a_key_of_its_own_and_another_one_after_it_was_forgotten() {
        let mut state = State::default();
        let signer = Signer::new(ServerSecret::new(1.into(), &[1; 32]).unwrap());
        let tree = KeyTree::generate().unwrap();
        fold(&mut state, 1, KeyTreeFounded { tree: tree.id(), sealed: vec![] }.into());
        let items = |value: &str| Items::from([("password".to_string(), value.to_string())]);
        let (key, other) = (VariableKey::new("default", "a/b"), VariableKey::new("default", "a/c"));
        let missing = Err(KeyError::Tree(tree.id()));
        assert_eq!(signer.seal_items(&state, &key, &items("hunter2")), missing, "it has not got it yet");
        signer.trees().put(tree);

        let seal = |state: &State, key, value| signer.seal_items(state, key, &items(value)).unwrap();
        let open = |key, sealed: &SealedItems| signer.open_items(&Keyring::default(), key, sealed);
        let (sealed, again) = (seal(&state, &key, "hunter2"), seal(&state, &key, "hunter2"));
        assert!(sealed.is_same(&again) && sealed.sealed.bytes != again.sealed.bytes);
        assert!(!sealed.is_same(&seal(&state, &key, "hunter3")));
        assert_eq!(open(&key, &sealed), Ok(items("hunter2")));
        let kept = seal(&state, &other, "hunter2");
        assert_ne!((sealed.digest, sealed.sealed.key), (kept.digest, kept.sealed.key));
        assert!(open(&other, &sealed).is_err(), "it is of another variable");
        for at in [0, 1, 17, 41, sealed.sealed.bytes.len() - 1] {
            let mut changed = sealed.clone();
            changed.sealed.bytes[at] ^= 1;
            assert!(open(&key, &changed).is_err(), "byte {at}");
        }

        fold(&mut state, 2, VariableForgotten { key: key.clone() }.into());
        assert_eq!(state.erasure.forgotten_at(&key, sealed.sealed.key), Some(base::Index(2)));
        let next = seal(&state, &key, "hunter2");
        assert!(!sealed.is_same(&next), "another key");
        let given_up = state.erasure.given_up();
        assert_eq!(given_up, [(sealed.sealed.key, base::Index(2))]);
        for tree in signer.trees().without(&[sealed.sealed.key]) {
            signer.trees().put(tree);
        }
        assert_eq!(open(&key, &sealed), Err(KeyError::Erased));
        assert_eq!(open(&key, &next), Ok(items("hunter2")));
        assert_eq!(open(&other, &kept), Ok(items("hunter2")));
        assert_eq!(signer.trees().without(&[sealed.sealed.key]), [], "there is nothing left to be done");
    }

    #[test]
    fn the_secret_of_a_token_has_a_key_of_its_own_and_goes_with_it() {
        let mut state = State::default();
        let signer = Signer::new(ServerSecret::new(1.into(), &[1; 32]).unwrap());
        let tree = KeyTree::generate().unwrap();
        fold(&mut state, 1, KeyTreeFounded { tree: tree.id(), sealed: vec![] }.into());
        signer.trees().put(tree);
        let (of, other) = (model::token_secrets(7.into()), model::token_secrets(8.into()));
        let seal = |of: &VariableKey| signer.seal_secret(&state, of, b"token", b"secret").unwrap();
        let (sealed, kept) = (seal(&of), seal(&other));
        assert!(!sealed.bytes.windows(6).any(|bytes| bytes == b"secret"));
        let open = |sealed: &SealedData, purpose| signer.unseal(&Keyring::default(), purpose, sealed);
        assert_eq!(open(&sealed, b"token"), Ok(b"secret".to_vec()));
        assert!(open(&sealed, b"other").is_err(), "for its purpose alone");

        fold(&mut state, 2, SecretsForgotten { of: of.clone() }.into());
        for tree in signer.trees().without(&[sealed.key]) {
            signer.trees().put(tree);
        }
        assert_eq!(open(&sealed, b"token"), Err(KeyError::Erased));
        assert_eq!(open(&kept, b"token"), Ok(b"secret".to_vec()));
        assert_ne!(state.erasure.key_of(&of), sealed.key, "another one of that name has another key");
    }
}
