//! Who this node is: an id and a secret, generated once and stored in the state directory, and what the servers know
//! it by.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base::Uuid;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The id names the node to everybody; the secret proves it to the servers.
#[derive(Clone)]
pub struct NodeIdentity {
    pub id: Uuid,
    pub secret: Uuid,
}

impl std::fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeIdentity({})", self.id)
    }
}

impl NodeIdentity {
    /// Reads the identity of an earlier agent, or generates and stores one.
    ///
    /// # Errors
    /// When the files cannot be read or written, or hold no UUID: a node must not register as another one by
    /// accident.
    pub fn load(state_dir: &Path) -> io::Result<NodeIdentity> {
        Ok(NodeIdentity {
            id: load_or_create(&state_dir.join("client-id"))?,
            secret: load_or_create(&state_dir.join("secret-id"))?,
        })
    }
}

/// What the servers have given this node. Stored as JSON for the next agent: fields are only ever added.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Registration {
    /// The servers know this node. Before that its secret proves nothing, and is refused.
    pub registered: bool,
    /// The signed token that stands for the secret; empty where servers sign none.
    pub identity: String,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.identity.is_empty() { "secret" } else { "identity" };
        write!(f, "Registration({})", if self.registered { kind } else { "none" })
    }
}

/// What a token says, proven or not: for its holder.
pub fn claims(token: &str) -> Option<BTreeMap<String, Value>> {
    let part = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Longest introduction token that is read from a file: a JWT has some hundred bytes.
const INTRO_TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// The introduction token in the state directory, for a node that was configured without one. Empty when there is none.
///
/// # Errors
/// When the file is there and cannot be read as text.
pub fn intro_token(state_dir: &Path) -> io::Result<String> {
    match std::fs::File::open(state_dir.join("intro_token.jwt")) {
        Ok(file) => {
            let mut text = String::new();
            file.take(INTRO_TOKEN_BYTES_MAX).read_to_string(&mut text)?;
            Ok(text.trim().to_string())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// The id of the node with this state directory, before it starts: for a server in the same process.
///
/// # Errors
/// As [`NodeIdentity::load`]; the directory is made when it is missing.
pub fn node_id(state_dir: &Path) -> io::Result<Uuid> {
    std::fs::create_dir_all(state_dir)?;
    Ok(NodeIdentity::load(state_dir)?.id)
}

fn new_id() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the host has entropy");
    Uuid::from_random(bytes)
}

fn load_or_create(path: &Path) -> io::Result<Uuid> {
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().to_lowercase().parse().map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = new_id();
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(id.to_string().as_bytes())?;
            file.sync_all()?;
            Ok(id)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stays_who_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = NodeIdentity::load(dir.path()).unwrap();
        let again = NodeIdentity::load(dir.path()).unwrap();
        assert_eq!((first.id, first.secret), (again.id, again.secret));
        assert_ne!(first.id, first.secret);
        assert!(!format!("{first:?}").contains(&first.secret.to_string()), "a secret is not printed");
        std::fs::write(dir.path().join("client-id"), "broken").unwrap();
        assert!(NodeIdentity::load(dir.path()).is_err());
    }
}
