//! The key of a server, and what is sealed for it.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version: 1 |
//! | 32 | X25519 public key, drawn for this seal alone |
//! | n | XChaCha20-Poly1305 over the private key (or the key tree), with its id and the server's as associated data |
//!
//! The cipher's key comes out of what both X25519 keys agree on, and both of them. It seals one thing only, so the nonce
//! is zero.

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::error::Unspecified;
use base::Uuid;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use model::SealedKey;

use crate::{KeyError, KeyTree, SigningKey};

const VERSION: u8 = 1;
const CONTEXT: &str = "sojourn 2026 root key sealed for a server";

/// What a server proves itself with. Its private half never leaves the server.
#[derive(Debug)]
pub struct ServerSecret {
    server: Uuid,
    private: PrivateKey,
    public: [u8; 32],
}

impl ServerSecret {
    /// # Errors
    /// [`KeyError::Generate`] for bytes that no key can have.
    pub fn new(server: Uuid, private: &[u8; 32]) -> Result<ServerSecret, KeyError> {
        let private = PrivateKey::from_private_key(&X25519, private).map_err(|_| KeyError::Generate)?;
        let public = public_half(&private).ok_or(KeyError::Generate)?;
        Ok(ServerSecret { server, private, public })
    }

    pub fn server(&self) -> Uuid {
        self.server
    }

    pub fn public(&self) -> [u8; 32] {
        self.public
    }

    /// # Errors
    /// [`KeyError::Open`], [`KeyError::Content`].
    pub fn open(&self, key: Uuid, sealed: &[u8]) -> Result<SigningKey, KeyError> {
        SigningKey::from_pkcs8(key, &self.open_bytes(key, sealed)?)
    }

    /// # Errors
    /// [`KeyError::Open`]; [`KeyError::Content`] for what is no key tree.
    pub fn open_tree(&self, tree: Uuid, sealed: &[u8]) -> Result<KeyTree, KeyError> {
        KeyTree::from_bytes(tree, &self.open_bytes(tree, sealed)?).ok_or(KeyError::Content(tree))
    }

    fn open_bytes(&self, key: Uuid, sealed: &[u8]) -> Result<Vec<u8>, KeyError> {
        let refuse = || KeyError::Open(key);
        let (&[version], rest) = sealed.split_first_chunk().ok_or_else(refuse)?;
        let (once, content) = rest.split_first_chunk::<32>().ok_or_else(refuse)?;
        if version != VERSION {
            return Err(refuse());
        }
        let cipher = cipher(&self.private, once, &Ends { once, public: &self.public }).ok_or_else(refuse)?;
        let payload = Payload { msg: content, aad: &associated(key, self.server) };
        cipher.decrypt(&XNonce::default(), payload).map_err(|_| refuse())
    }
}

/// Seals a private key for the server with this public one.
pub(crate) fn seal(
    key: Uuid,
    private: &[u8],
    server: Uuid,
    public: &[u8; 32],
) -> Result<SealedKey, KeyError> {
    let refuse = || KeyError::Public(server);
    let drawn = PrivateKey::generate(&X25519).map_err(|_| KeyError::Entropy)?;
    let once = public_half(&drawn).ok_or(KeyError::Generate)?;
    let cipher = cipher(&drawn, public, &Ends { once: &once, public }).ok_or_else(refuse)?;
    let payload = Payload { msg: private, aad: &associated(key, server) };
    let content = cipher.encrypt(&XNonce::default(), payload).map_err(|_| KeyError::Generate)?;
    let bytes = [&[VERSION], &once[..], &content].concat();
    Ok(SealedKey { server, bytes })
}

/// The public keys of both ends of a seal.
struct Ends<'a> {
    once: &'a [u8; 32],
    public: &'a [u8; 32],
}

fn cipher(own: &PrivateKey, peer: &[u8; 32], ends: &Ends<'_>) -> Option<XChaCha20Poly1305> {
    let peer = UnparsedPublicKey::new(&X25519, peer);
    let derive = |shared: &[u8]| {
        let material = [shared, ends.once, ends.public].concat();
        Ok(XChaCha20Poly1305::new(&blake3::derive_key(CONTEXT, &material).into()))
    };
    agree(own, peer, Unspecified, derive).ok()
}

fn public_half(private: &PrivateKey) -> Option<[u8; 32]> {
    private.compute_public_key().ok()?.as_ref().try_into().ok()
}

fn associated(key: Uuid, server: Uuid) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&key.0);
    bytes[16..].copy_from_slice(&server.0);
    bytes
}

#[cfg(test)]
mod tests {
    use base::{Index, Time};
    use model::batch::{Batch, LoggedEvent};
    use model::event::RootKeyActivated;
    use model::{Actor, CommandRecord, Event, RequestId, SigningAlgorithm};
    use state::{Delta, Moment, State};

    use super::*;

    fn secret(server: u128, byte: u8) -> ServerSecret {
        ServerSecret::new(server.into(), &[byte; 32]).unwrap()
    }

    fn keys() -> [SigningKey; 2] {
        SigningAlgorithm::ALL.map(|algorithm| SigningKey::generate(algorithm).unwrap())
    }

    #[test]
    fn a_sealed_key_opens_for_its_server_alone() {
        let (own, other) = (secret(1, 1), secret(2, 2));
        for key in keys() {
            let sealed = key.seal_for(own.server(), &own.public()).unwrap();
            let opened = own.open(key.id(), &sealed.bytes).unwrap();
            assert_eq!((opened.public(), opened.algorithm()), (key.public(), key.algorithm()));
            assert_eq!(opened.sign(b"claims").unwrap(), key.sign(b"claims").unwrap());
            assert_eq!(opened.pkcs8().unwrap(), key.pkcs8().unwrap(), "what it seals opens with the copy");
            let refused = |result: Result<SigningKey, KeyError>| result.err();
            assert_eq!(refused(other.open(key.id(), &sealed.bytes)), Some(KeyError::Open(key.id())));
            let as_another = Uuid::from(9);
            assert_eq!(refused(own.open(as_another, &sealed.bytes)), Some(KeyError::Open(as_another)));
            for at in [0, 1, 40, sealed.bytes.len() - 1] {
                let mut changed = sealed.bytes.clone();
                changed[at] ^= 1;
                let refused = refused(own.open(key.id(), &changed));
                assert_eq!(refused, Some(KeyError::Open(key.id())), "byte {at}");
            }
            assert_eq!(refused(own.open(key.id(), &[])), Some(KeyError::Open(key.id())));
        }
    }

    /// Whether 16 bytes of these stand in a log or in an image, as bytes or as a list of numbers.
    fn shows(stored: &[u8], bytes: &[u8]) -> bool {
        bytes.windows(16).any(|part| {
            let numbers = rmp_serde::to_vec(&part.to_vec()).unwrap();
            // Without the length of the list.
            [part, &numbers[3..]].iter().any(|part| stored.windows(part.len()).any(|window| window == *part))
        })
    }

    #[test]
    fn nothing_of_the_private_key_stands_in_the_log_or_in_an_image() {
        let own = secret(1, 1);
        for key in keys() {
            let sealed = key.seal_for(own.server(), &own.public()).unwrap();
            let (modulus, exponent) = key.public();
            let event = Event::from(RootKeyActivated {
                key: key.id(),
                modulus: modulus.clone(),
                exponent,
                sealed: vec![sealed.clone()],
            });
            let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
            let mut state = State::default();
            let at = Moment { index: Index(1), time: Time::ZERO, epoch: model::EPOCH };
            state.absorb(at, &record, [event.clone()].iter(), &mut Delta::default());
            let batch = journal::encode(&Batch {
                epoch: model::EPOCH,
                index: at.index,
                previous: Index::ZERO,
                digest: state.digest(),
                time: at.time,
                proposer: Uuid::from(1),
                commands: vec![record],
                events: vec![LoggedEvent { command: 0, event }],
            });
            let image = state::Imager::default().image(&state);
            let chunks = image.chunks.iter().filter_map(|chunk| chunk.bytes.as_ref());
            let image: Vec<u8> = chunks.flat_map(|bytes| bytes.iter().copied()).collect();

            // The form of a private key holds the public one too.
            let private = key.pkcs8().unwrap();
            let at = private.windows(modulus.len()).position(|window| window == modulus);
            let parts = at.map_or([&private[..], &[]], |at| [&private[..at], &private[at + modulus.len()..]]);
            assert!(parts.concat().len() >= 32, "there is something to look for");
            for stored in [&batch.bytes()[..], &image] {
                assert!(shows(stored, &modulus) && shows(stored, &sealed.bytes), "what is there is found");
                assert!(!parts.iter().any(|part| shows(stored, part)), "{:?}", key.algorithm());
            }
        }
    }

    #[test]
    fn a_public_key_that_is_none_is_refused() {
        for key in keys() {
            assert_eq!(key.seal_for(7.into(), &[0; 32]), Err(KeyError::Public(7.into())));
        }
    }
}
