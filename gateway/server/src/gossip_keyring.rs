//! The file with the keys of gossip: a JSON list of them in base64, the one that seals first, as Nomad keeps it.

use std::io;
use std::path::{Path, PathBuf};

use wire::RpcSecurity;

use crate::GossipSettings;
use crate::gossip::{Key, Keyring, SaveKeys};
use crate::identity;

const FILE: &str = "serf.keyring";

/// The keys that a server begins with. They prove servers to each other over RPC too.
///
/// # Errors
/// As for [`load`].
pub(crate) fn open(
    gossip: Option<&GossipSettings>,
    dir: &Path,
    security: &RpcSecurity,
) -> io::Result<Keyring> {
    let keyring = match gossip {
        Some(gossip) => load(dir, gossip.key.clone())?,
        None => Keyring::default(),
    };
    security.keys().replace(keyring.secrets());
    Ok(keyring)
}

/// Keeps the keys that operators change, in the file and for new connections.
pub(crate) fn keeper(dir: PathBuf, security: RpcSecurity) -> SaveKeys {
    Box::new(move |keyring| {
        save(&dir, keyring).map_err(|error| format!("it cannot store its keys: {error}"))?;
        security.keys().replace(keyring.secrets());
        Ok(())
    })
}

/// The stored keys; where there are none, the configured one, which is stored. Once there is a file the configured key does
/// not count: operators have replaced it since, and a restart must not bring it back.
///
/// # Errors
/// The disk's, or the file holds something else than keys.
pub(crate) fn load(dir: &Path, configured: Option<Key>) -> io::Result<Keyring> {
    let path = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let keyring = Keyring::from(configured);
            if !keyring.keys().is_empty() {
                save(dir, &keyring)?;
            }
            return Ok(keyring);
        }
        Err(error) => return Err(error),
    };
    let unusable =
        |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()));
    let texts: Vec<String> = serde_json::from_str(&text)
        .map_err(|error| unusable(format!("expected a JSON list of keys in base64: {error}")))?;
    let keys = texts
        .iter()
        .enumerate()
        .map(|(nth, text)| Key::parse(text).map_err(|error| unusable(format!("key {}: {error}", nth + 1))));
    let keyring =
        Keyring::new(keys.collect::<Result<_, _>>()?).map_err(|error| unusable(error.to_string()))?;
    let primary = keyring.keys().first().ok_or_else(|| unusable("there is no key in it".to_string()))?;
    if configured.is_some_and(|configured| configured != *primary) {
        tracing::warn!(
            keyring = %path.display(),
            "server.encrypt is ignored: gossip is encrypted with the first key of the keyring"
        );
    }
    Ok(keyring)
}

/// For the owner alone to read.
///
/// # Errors
/// The disk's; the keys that were stored before are still there.
pub(crate) fn save(dir: &Path, keyring: &Keyring) -> io::Result<()> {
    let keys: Vec<String> = keyring.keys().iter().map(Key::to_base64).collect();
    std::fs::create_dir_all(dir)?;
    identity::write(dir, FILE, &serde_json::to_string(&keys)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const OLD: &str = "AAECAwQFBgcICQoLDA0ODw==";
    const NEW: &str = "//////////////////////////////////////////8=";

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn the_stored_keys_count_more_than_the_configured_one() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(load(dir, None).unwrap(), Keyring::default());
        assert!(!dir.join(FILE).exists());
        assert_eq!(load(dir, Some(key(OLD))).unwrap().keys(), [key(OLD)]);
        let both = Keyring::new(vec![key(NEW), key(OLD)]).unwrap();
        save(dir, &both).unwrap();
        assert_eq!(load(dir, Some(key(OLD))).unwrap(), both);
        assert_eq!(load(dir, None).unwrap(), both);
        assert_eq!(std::fs::read_to_string(dir.join(FILE)).unwrap(), format!("[\"{NEW}\",\"{OLD}\"]\n"));
        let mode = std::fs::metadata(dir.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_with_something_else_names_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        for (text, why) in [
            ("not json", "expected a JSON list of keys in base64"),
            ("[]", "there is no key in it"),
            ("[\"AAEC\"]", "key 1: expected base64 of 16, 24 or 32 bytes: these are 3"),
            (&format!("[\"{OLD}\",\"{OLD}\"]"), "the key is there twice"),
        ] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            let error = load(dir.path(), Some(key(OLD))).unwrap_err().to_string();
            assert!(error.contains(FILE) && error.contains(why), "{error}");
        }
    }
}
