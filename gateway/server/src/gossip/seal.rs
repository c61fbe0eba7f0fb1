//! Packets as they are on the network: who sent it, which one it is, and the seal over it.
//!
//! | bytes | what |
//! |---|---|
//! | 3 | `SJG` |
//! | 1 | version: 1 |
//! | 1 | 1 if sealed, else 0 |
//! | 16 | session: drawn by the sender's process when it started |
//! | 8 | number of the packet in its session, little-endian |
//! | n | content; if sealed, XChaCha20-Poly1305 over it with all before as associated data |
//!
//! Session and number are the nonce, so none is ever used twice under one key, by any sender.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use super::keyring::Keyring;

/// Largest packet on the network: fits one Ethernet frame with its headers.
pub(super) const PACKET_MAX: usize = 1_472;

const MAGIC: [u8; 3] = *b"SJG";
const VERSION: u8 = 1;
const HEAD: usize = 29;
const TAG: usize = 16;

/// Most content a packet can carry.
pub(super) const CONTENT_MAX: usize = PACKET_MAX - HEAD - TAG;

/// A secret that servers share: 16, 24 or 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("expected base64 of 16, 24 or 32 bytes: this is not base64")]
    NotBase64,
    #[error("expected base64 of 16, 24 or 32 bytes: these are {0}")]
    Length(usize),
}

impl Key {
    /// # Errors
    /// [`KeyError`] unless it is base64 of 16, 24 or 32 bytes.
    pub fn parse(text: &str) -> Result<Key, KeyError> {
        Key::from_bytes(STANDARD.decode(text.trim()).map_err(|_| KeyError::NotBase64)?)
    }

    /// # Errors
    /// [`KeyError::Length`].
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Key, KeyError> {
        if matches!(bytes.len(), 16 | 24 | 32) { Ok(Key(bytes)) } else { Err(KeyError::Length(bytes.len())) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As operators write it. Whoever reads it can pass for a server.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        // One cipher for every length; what is hard to guess stays as hard to guess.
        XChaCha20Poly1305::new(&blake3::derive_key("sojourn 2026 gossip packets", &self.0).into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(<redacted>)")
    }
}

pub(super) type Session = [u8; 16];

/// Why a packet is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// No packet of ours.
    Foreign,
    /// Another release's.
    Version(u8),
    /// It came in the clear, and there is a key here.
    NotSealed,
    /// It is sealed, and there is no key here.
    Sealed,
    /// Sealed with another key, or changed on its way.
    NotAuthentic,
}

/// A packet that was opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub session: Session,
    pub number: u64,
    pub content: Vec<u8>,
}

/// Seals what this process sends and opens what it gets.
pub(super) struct Sealer {
    keyring: Keyring,
    /// One for each key, in the same order.
    ciphers: Vec<XChaCha20Poly1305>,
    session: Session,
    sent: u64,
}

impl Sealer {
    pub(super) fn new(keyring: Keyring, session: Session) -> Sealer {
        let mut sealer = Sealer { keyring: Keyring::default(), ciphers: Vec::new(), session, sent: 0 };
        sealer.replace_keys(keyring);
        sealer
    }

    pub(super) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Packets are counted on: no nonce repeats under any key.
    pub(super) fn replace_keys(&mut self, keyring: Keyring) {
        self.ciphers = keyring.keys().iter().map(Key::cipher).collect();
        self.keyring = keyring;
    }

    pub(super) fn session(&self) -> Session {
        self.session
    }

    /// # Panics
    /// If there is more content than [`CONTENT_MAX`]: the caller respects that.
    pub(super) fn seal(&mut self, content: &[u8]) -> Vec<u8> {
        assert!(content.len() <= CONTENT_MAX, "content was made to fit a packet");
        self.sent += 1;
        let mut packet = Vec::with_capacity(HEAD + content.len() + TAG);
        packet.extend_from_slice(&MAGIC);
        packet.extend_from_slice(&[VERSION, u8::from(!self.ciphers.is_empty())]);
        packet.extend_from_slice(&self.session);
        packet.extend_from_slice(&self.sent.to_le_bytes());
        match self.ciphers.first() {
            None => packet.extend_from_slice(content),
            Some(cipher) => {
                let sealed = cipher.encrypt(&nonce(&packet), Payload { msg: content, aad: &packet });
                packet.extend_from_slice(&sealed.expect("a packet is far below what the cipher takes"));
            }
        }
        packet
    }

    /// # Errors
    /// [`SealError`]; nothing of the packet can be trusted then, its sender included.
    pub(super) fn open(&self, packet: &[u8]) -> Result<Opened, SealError> {
        let (head, content) = packet.split_at_checked(HEAD).ok_or(SealError::Foreign)?;
        if head[..3] != MAGIC {
            return Err(SealError::Foreign);
        }
        if head[3] != VERSION {
            return Err(SealError::Version(head[3]));
        }
        let content = match (self.ciphers.is_empty(), head[4]) {
            (true, 0) => content.to_vec(),
            (false, 1) => {
                let open = |cipher: &XChaCha20Poly1305| {
                    cipher.decrypt(&nonce(head), Payload { msg: content, aad: head }).ok()
                };
                self.ciphers.iter().find_map(open).ok_or(SealError::NotAuthentic)?
            }
            (false, 0) => return Err(SealError::NotSealed),
            (true, 1) => return Err(SealError::Sealed),
            (_, _) => return Err(SealError::Foreign),
        };
        let session = head[5..21].try_into().expect("16 bytes were cut out");
        let number = u64::from_le_bytes(head[21..].try_into().expect("8 bytes are left"));
        Ok(Opened { session, number, content })
    }
}

/// Session and number of a packet.
fn nonce(head: &[u8]) -> XNonce {
    XNonce::try_from(&head[5..HEAD]).expect("session and number are as long as a nonce")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8, length: usize) -> Key {
        Key::parse(&STANDARD.encode(vec![byte; length])).unwrap()
    }

    fn sealer(key: Option<&Key>, session: Session) -> Sealer {
        Sealer::new(Keyring::from(key.cloned()), session)
    }

    #[test]
    fn every_installed_key_opens_and_the_first_one_seals() {
        let (old, new) = (key(1, 32), key(2, 16));
        let both = |first: &Key, second: &Key| Keyring::new(vec![first.clone(), second.clone()]).unwrap();
        let mut rotating = Sealer::new(both(&old, &new), [1; 16]);
        let sealed = rotating.seal(b"old");
        assert_eq!(sealer(Some(&old), [2; 16]).open(&sealed).unwrap().content, b"old");
        rotating.replace_keys(both(&new, &old));
        let sealed = rotating.seal(b"new");
        assert_eq!(sealer(Some(&new), [2; 16]).open(&sealed).unwrap().number, 2, "numbers go on");
        assert_eq!(sealer(Some(&old), [2; 16]).open(&sealed), Err(SealError::NotAuthentic));
        assert!(rotating.open(&sealer(Some(&old), [2; 16]).seal(b"x")).is_ok());
        assert_eq!(Key::parse(&new.to_base64()), Ok(new));
    }

    #[test]
    fn keys_are_16_24_or_32_bytes_in_base64() {
        for length in [16, 24, 32] {
            let (key, packet) = (key(7, length), b"content");
            let sealed = sealer(Some(&key), [1; 16]).seal(packet);
            assert_eq!(sealer(Some(&key), [2; 16]).open(&sealed).unwrap().content, packet);
        }
        assert_ne!(key(7, 16), key(7, 32));
        assert_eq!(Key::parse("no base64!"), Err(KeyError::NotBase64));
        for length in [0, 15, 17, 31, 33] {
            assert_eq!(Key::parse(&STANDARD.encode(vec![7; length])), Err(KeyError::Length(length)));
        }
        assert_eq!(format!("{:?}", key(7, 16)), "Key(<redacted>)");
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let key = key(7, 32);
        let sealed = sealer(Some(&key), [1; 16]).seal(b"content");
        let reader = sealer(Some(&key), [2; 16]);
        for at in 0..sealed.len() {
            for flip in [1, 0x80] {
                let mut changed = sealed.clone();
                changed[at] ^= flip;
                assert!(reader.open(&changed).is_err(), "byte {at}");
            }
            assert!(reader.open(&sealed[..at]).is_err(), "cut at {at}");
        }
        assert_eq!(reader.open(&sealed).unwrap().content, b"content");
    }

    #[test]
    fn mixed_clusters_are_detected() {
        let (one, other) = (key(1, 32), key(2, 32));
        let sealed = sealer(Some(&one), [1; 16]).seal(b"x");
        let plain = sealer(None, [1; 16]).seal(b"x");
        assert_eq!(sealer(Some(&other), [2; 16]).open(&sealed), Err(SealError::NotAuthentic));
        assert_eq!(sealer(Some(&one), [2; 16]).open(&plain), Err(SealError::NotSealed));
        assert_eq!(sealer(None, [2; 16]).open(&sealed), Err(SealError::Sealed));
        assert_eq!(sealer(None, [2; 16]).open(&plain).unwrap().content, b"x");
        let mut newer = plain;
        newer[3] = 9;
        assert_eq!(sealer(None, [2; 16]).open(&newer), Err(SealError::Version(9)));
        assert_eq!(sealer(None, [2; 16]).open(b"hello"), Err(SealError::Foreign));
    }

    #[test]
    fn packets_are_numbered_and_hide_what_they_say() {
        let key = key(7, 32);
        let mut sealer = sealer(Some(&key), [1; 16]);
        let (first, second) = (sealer.seal(b"the same words"), sealer.seal(b"the same words"));
        assert_ne!(first[HEAD..], second[HEAD..]);
        assert!(!first.windows(4).any(|window| window == b"same"));
        let (first, second) = (sealer.open(&first).unwrap(), sealer.open(&second).unwrap());
        assert_eq!((first.number, second.number, second.session), (1, 2, [1; 16]));
    }
}
