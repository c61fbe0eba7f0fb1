//! Secrets that are kept in the log: sealed, so that only servers which can open the root key read them.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version: 1 |
//! | 24 | a nonce, drawn for this seal |
//! | n | XChaCha20-Poly1305 over the secret, with the key's id and what it is for as associated data |

use base::Uuid;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use model::SealedData;
use state::keyring::Keyring;

use crate::{KeyError, Signer, SigningKey, items};

const VERSION: u8 = 1;
const CONTEXT: &str = "sojourn 2026 data sealed with a root key";

impl Signer {
    /// Seals with the active key. `purpose` names what the secret belongs to: the seal opens for nothing else.
    ///
    /// # Errors
    /// [`KeyError::Open`]: there is no key yet, or this server has no copy of it yet.
    pub fn seal(&self, keyring: &Keyring, purpose: &[u8], secret: &[u8]) -> Result<SealedData, KeyError> {
        let (id, _) = keyring.active().ok_or(KeyError::Open(Uuid::default()))?;
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce).map_err(|_| KeyError::Entropy)?;
        let payload = Payload { msg: secret, aad: &associated(id, purpose) };
        let cipher = cipher(&*self.key(keyring, id)?)?;
        let content = cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| KeyError::Generate)?;
        Ok(SealedData { key: id, bytes: [&[VERSION], &nonce[..], &content].concat() })
    }

    /// Also what an own key seals, of the key tree.
    ///
    /// # Errors
    /// [`KeyError::Open`]: this server has no copy of the key, or what is sealed was changed. [`KeyError::Erased`]: it was forgotten.
    /// [`KeyError::Tree`]: this server does not have the tree.
    pub fn unseal(
        &self,
        keyring: &Keyring,
        purpose: &[u8],
        sealed: &SealedData,
    ) -> Result<Vec<u8>, KeyError> {
        let refuse = || KeyError::Open(sealed.key);
        let (&[version], rest) = sealed.bytes.split_first_chunk().ok_or_else(refuse)?;
        match version {
            VERSION => {}
            items::VERSION => return self.open_with_own_key(purpose, sealed),
            _ => return Err(refuse()),
        }
        let (nonce, content) = rest.split_first_chunk::<24>().ok_or_else(refuse)?;
        let payload = Payload { msg: content, aad: &associated(sealed.key, purpose) };
        let cipher = cipher(&*self.key(keyring, sealed.key)?)?;
        cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| refuse())
    }
}

/// The key signs and does not encrypt: another one follows from it.
fn cipher(key: &SigningKey) -> Result<XChaCha20Poly1305, KeyError> {
    Ok(XChaCha20Poly1305::new(&blake3::derive_key(CONTEXT, &key.pkcs8()?).into()))
}

fn associated(key: Uuid, purpose: &[u8]) -> Vec<u8> {
    [&key.0[..], purpose].concat()
}

#[cfg(test)]
mod tests {
    use model::event::RootKeyActivated;
    use model::{Actor, CommandRecord, Event, RequestId, SigningAlgorithm};
    use state::{Delta, Moment, State};

    use super::*;
    use crate::ServerSecret;

    #[test]
    fn a_secret_opens_with_its_key_and_for_its_purpose_alone() {
        let own = ServerSecret::new(1.into(), &[1; 32]).unwrap();
        let [key, other] = SigningAlgorithm::ALL.map(|algorithm| SigningKey::generate(algorithm).unwrap());
        let mut state = State::default();
        for (index, key) in [(1, &key), (2, &other)] {
            let sealed = vec![key.seal_for(own.server(), &own.public()).unwrap()];
            let (modulus, exponent) = key.public();
            let activated = RootKeyActivated { key: key.id(), modulus, exponent, sealed };
            let at = Moment { index: base::Index(index), time: base::Time::ZERO, epoch: model::EPOCH };
            let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
            state.absorb(at, &record, [Event::from(activated)].iter(), &mut Delta::default());
        }
        let signer = Signer::new(own);
        assert_eq!(state.keyring.algorithm(), SigningAlgorithm::EdDsa);
        let sealed = signer.seal(&state.keyring, b"token", b"secret").unwrap();
        assert_eq!(sealed.key, other.id(), "the active key");
        assert!(!sealed.bytes.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(signer.unseal(&state.keyring, b"token", &sealed), Ok(b"secret".to_vec()));
        let reopened = Signer::new(ServerSecret::new(1.into(), &[1; 32]).unwrap());
        assert_eq!(
            reopened.unseal(&state.keyring, b"token", &sealed),
            Ok(b"secret".to_vec()),
            "after a restart"
        );
        let refused = Err(KeyError::Open(other.id()));
        assert_eq!(signer.unseal(&state.keyring, b"other", &sealed), refused);
        for at in [0, 1, 30, sealed.bytes.len() - 1] {
            let mut changed = sealed.clone();
            changed.bytes[at] ^= 1;
            assert_eq!(signer.unseal(&state.keyring, b"token", &changed), refused, "byte {at}");
        }
        let under_another = SealedData { key: key.id(), ..sealed };
        assert!(signer.unseal(&state.keyring, b"token", &under_another).is_err());
    }
}
