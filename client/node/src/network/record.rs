//! What is written down of the network of an allocation, before anything is made and until everything is gone: an agent
//! that dies in between leaves nothing that the next one does not know.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use model::document::DNSConfig;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rules::Forward;

/// A file of its own an allocation. Fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub alloc_id: String,
    pub attachment: Attachment,
    /// Everything was made.
    pub complete: bool,
    /// The driver that has made the namespace and has to remove it; empty for the agent.
    pub driver: String,
    pub status: Status,
}

/// How the namespace is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// It has a loopback.
    #[default]
    Loopback,
    Bridge(Port),
    Plugins(Box<Chain>),
}

/// A port of the built-in bridge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    pub bridge: String,
    pub interface: String,
    pub address: Ipv4Addr,
    #[serde(default)]
    pub address_v6: Option<Ipv6Addr>,
    #[serde(default)]
    pub forwards: Vec<Forward>,
    /// Who reaches it; all others do not.
    #[serde(default)]
    pub isolated: Option<String>,
}

/// What plugins were called with, and what they have said: they are called with the same to undo it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chain {
    /// The list of plugins.
    pub config: Value,
    pub version: String,
    pub interface: String,
    pub args: String,
    /// What plugins get that ask for it by name.
    pub capabilities: BTreeMap<String, Value>,
    pub result: Value,
}

/// Where the allocation is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    pub interface: String,
    pub address: String,
    pub address_v6: String,
    /// What plugins say of name servers.
    pub dns: Option<DNSConfig>,
}

impl Record {
    pub fn port(&self) -> Option<&Port> {
        match &self.attachment {
            Attachment::Bridge(port) => Some(port),
            Attachment::Loopback | Attachment::Plugins(_) => None,
        }
    }
}

/// All records of a directory, by allocation. What cannot be read is logged and counts as nothing.
pub fn load(directory: &Path) -> BTreeMap<String, Record> {
    let mut records = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice::<Record>(&bytes)?));
        match read {
            Ok(record) => drop(records.insert(record.alloc_id.clone(), record)),
            Err(error) => tracing::error!(path = %path.display(), %error, "a network was not read"),
        }
    }
    records
}

/// Writes a record whole or not at all.
pub fn save(directory: &Path, record: &Record) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let draft = directory.join(format!("{}.new", record.alloc_id));
    std::fs::write(&draft, serde_json::to_vec(record)?)?;
    std::fs::rename(draft, path(directory, &record.alloc_id))
}

pub fn exists(directory: &Path, alloc_id: &str) -> bool {
    path(directory, alloc_id).exists()
}

pub fn forget(directory: &Path, alloc_id: &str) -> io::Result<()> {
    match std::fs::remove_file(path(directory, alloc_id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn path(directory: &Path, alloc_id: &str) -> PathBuf {
    directory.join(format!("{alloc_id}.json"))
}
