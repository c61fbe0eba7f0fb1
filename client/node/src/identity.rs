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
use sha2::{Digest, Sha512};

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
    /// Reads the identity of an earlier agent, or generates and stores one. `of_host`: a new id follows from the host, so that
    /// a node whose disk was lost is the same node. Two agents on one host must not ask for that.
    ///
    /// # Errors
    /// When the files cannot be read or written, or hold no UUID: a node must not register as another one by
    /// accident.
    pub fn load(state_dir: &Path, of_host: bool) -> io::Result<NodeIdentity> {
        let new_node = || if of_host { id_of_host() } else { new_id() };
        Ok(NodeIdentity {
            id: load_or_create(&state_dir.join("client-id"), new_node)?,
            secret: load_or_create(&state_dir.join("secret-id"), new_id)?,
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
pub fn node_id(state_dir: &Path, of_host: bool) -> io::Result<Uuid> {
    std::fs::create_dir_all(state_dir)?;
    Ok(NodeIdentity::load(state_dir, of_host)?.id)
}

/// By chance where the host does not say who it is.
fn id_of_host() -> Uuid {
    host_uuid(Path::new("/")).and_then(|text| hashed(&text)).unwrap_or_else(|| {
        tracing::warn!("this host has no UUID: the id of the node is one by chance");
        new_id()
    })
}

/// The host's own UUID as its board says it, which only root may read, or as its system does.
fn host_uuid(root: &Path) -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let of_board = read("sys/class/dmi/id/product_uuid").map(|text| text.trim().to_lowercase());
    of_board.filter(|text| is_uuid(text)).or_else(|| {
        let id = read("etc/machine-id")?.trim().to_lowercase();
        let parts = [id.get(..8)?, id.get(8..12)?, id.get(12..16)?, id.get(16..20)?, id.get(20..)?];
        Some(parts.join("-")).filter(|text| is_uuid(text))
    })
}

fn is_uuid(text: &str) -> bool {
    text.parse::<Uuid>().is_ok_and(|id| id.to_string() == text)
}

/// As Nomad makes an id of that of a host, so that a node stays the same one when it changes over.
fn hashed(host: &str) -> Option<Uuid> {
    let digest = Sha512::digest(host);
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).parse().ok()
}

fn new_id() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the host has entropy");
    Uuid::from_random(bytes)
}

fn load_or_create(path: &Path, new: impl FnOnce() -> Uuid) -> io::Result<Uuid> {
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().to_lowercase().parse().map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = new();
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
        let first = NodeIdentity::load(dir.path(), false).unwrap();
        let again = NodeIdentity::load(dir.path(), false).unwrap();
        assert_eq!((first.id, first.secret), (again.id, again.secret));
        assert_ne!(first.id, first.secret);
        assert!(!format!("{first:?}").contains(&first.secret.to_string()), "a secret is not printed");
        std::fs::write(dir.path().join("client-id"), "broken").unwrap();
        assert!(NodeIdentity::load(dir.path(), false).is_err());
    }

    /// The hash is a published one: of SHA-512, the first half of which Nomad writes as a UUID.
    #[test]
    fn a_new_node_can_have_an_id_that_follows_from_its_host() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(host_uuid(root.path()), None);
        std::fs::create_dir_all(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/machine-id"), "0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(host_uuid(root.path()).as_deref(), Some("01234567-89ab-cdef-0123-456789abcdef"));
        let dmi = root.path().join("sys/class/dmi/id");
        std::fs::create_dir_all(&dmi).unwrap();
        std::fs::write(dmi.join("product_uuid"), "Not Specified\n").unwrap();
        assert_eq!(host_uuid(root.path()).as_deref(), Some("01234567-89ab-cdef-0123-456789abcdef"));
        std::fs::write(dmi.join("product_uuid"), "C20AD4D7-6F12-4F2B-9C3E-0A1B2C3D4E5F\n").unwrap();
        let uuid = host_uuid(root.path()).unwrap();
        assert_eq!(uuid, "c20ad4d7-6f12-4f2b-9c3e-0a1b2c3d4e5f");
        assert_eq!(hashed(&uuid).unwrap().to_string(), "2dadc228-7e18-ffe9-90c5-79b641ea45ec");

        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = NodeIdentity::load(one.path(), true).unwrap();
        let same = NodeIdentity::load(other.path(), true).unwrap();
        assert_eq!(first.id == same.id, host_uuid(Path::new("/")).is_some());
        assert_ne!(first.secret, same.secret);
        assert_eq!(NodeIdentity::load(one.path(), false).unwrap().id, first.id, "what is stored wins");
    }
}
