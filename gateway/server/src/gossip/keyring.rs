//! The keys of one server: the first one seals what it sends, and all of them open what it gets.
//!
//! So a key is replaced without losing a server: every server installs the new key, then each uses it, then the old one
//! is removed.

use super::seal::Key;

/// Most keys of a server: all of them fit into the packet that lists them, and opening a packet of a stranger stays cheap.
pub const KEYS_MAX: usize = 16;

/// The key that seals comes first. Without any key gossip is not encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyring(Vec<Key>);

/// What operators ask of the keys of all servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    List,
    Install(Key),
    Use(Key),
    Remove(Key),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    #[error("gossip is not encrypted, so there are no keys: set server.encrypt on every server")]
    NotEncrypted,
    #[error("the key is not installed")]
    NotInstalled,
    #[error("the key encrypts what is sent: use another key before it is removed")]
    Primary,
    #[error("there are {KEYS_MAX} keys already: remove one first")]
    Full,
    #[error("the key is there twice")]
    Twice,
}

impl Keyring {
    /// # Errors
    /// [`KeyringError::Full`] or [`KeyringError::Twice`].
    pub fn new(keys: Vec<Key>) -> Result<Keyring, KeyringError> {
        if keys.len() > KEYS_MAX {
            return Err(KeyringError::Full);
        }
        let is_twice = |(nth, key)| keys[..nth].contains(key);
        if keys.iter().enumerate().any(is_twice) { Err(KeyringError::Twice) } else { Ok(Keyring(keys)) }
    }

    pub fn keys(&self) -> &[Key] {
        &self.0
    }

    /// The keys as they are, for proofs that are made with them.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Key::bytes)
    }

    /// The keyring after an operation. What has been done already changes nothing: packets that ask for it are repeated.
    ///
    /// # Errors
    /// [`KeyringError`].
    pub fn after(&self, operation: &KeyOperation) -> Result<Keyring, KeyringError> {
        let primary = self.0.first().ok_or(KeyringError::NotEncrypted)?;
        let mut keys = self.0.clone();
        match operation {
            KeyOperation::List => {}
            KeyOperation::Install(key) if keys.contains(key) => {}
            KeyOperation::Install(_) if keys.len() >= KEYS_MAX => return Err(KeyringError::Full),
            KeyOperation::Install(key) => keys.push(key.clone()),
            KeyOperation::Use(key) => {
                let at = keys.iter().position(|known| known == key).ok_or(KeyringError::NotInstalled)?;
                keys[..=at].rotate_right(1);
            }
            KeyOperation::Remove(key) if key == primary => return Err(KeyringError::Primary),
            KeyOperation::Remove(key) => keys.retain(|known| known != key),
        }
        Ok(Keyring(keys))
    }
}

impl From<Option<Key>> for Keyring {
    fn from(key: Option<Key>) -> Keyring {
        Keyring(key.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn key(byte: u8) -> Key {
        Key::parse(&STANDARD.encode([byte; 16])).unwrap()
    }

    #[test]
    fn a_key_is_replaced_in_three_steps() {
        let ring = Keyring::from(Some(key(1)));
        let ring = ring.after(&KeyOperation::Install(key(2))).unwrap();
        assert_eq!(ring.keys(), [key(1), key(2)]);
        assert_eq!(ring.after(&KeyOperation::Install(key(2))).unwrap(), ring);
        assert_eq!(ring.after(&KeyOperation::Remove(key(1))), Err(KeyringError::Primary));
        let ring = ring.after(&KeyOperation::Use(key(2))).unwrap();
        assert_eq!(ring.keys(), [key(2), key(1)]);
        assert_eq!(ring.after(&KeyOperation::Use(key(2))).unwrap(), ring);
        let ring = ring.after(&KeyOperation::Remove(key(1))).unwrap();
        assert_eq!(ring.keys(), [key(2)]);
        assert_eq!(ring.after(&KeyOperation::Remove(key(1))).unwrap(), ring);
        assert_eq!(ring.after(&KeyOperation::Use(key(1))), Err(KeyringError::NotInstalled));
    }

    #[test]
    fn keys_are_bounded_and_there_must_be_one() {
        let none = Keyring::default();
        assert_eq!(none.after(&KeyOperation::List), Err(KeyringError::NotEncrypted));
        assert_eq!(none.after(&KeyOperation::Install(key(1))), Err(KeyringError::NotEncrypted));
        let full = Keyring::new((0..KEYS_MAX as u8).map(key).collect()).unwrap();
        assert_eq!(full.after(&KeyOperation::Install(key(99))), Err(KeyringError::Full));
        assert_eq!(Keyring::new(vec![key(1), key(2), key(1)]), Err(KeyringError::Twice));
    }
}
