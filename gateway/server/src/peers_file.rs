//! `peers.json`: what an operator writes when most servers are lost for good, to go on with one that is left.

use std::io;
use std::path::{Path, PathBuf};

use base::Uuid;
use raft::OpenError;
use serde::Deserialize;

/// In the directory of the server, as in Nomad.
const FILE: &str = "raft/peers.json";

#[derive(Debug, thiserror::Error)]
pub enum PeersFileError {
    #[error("cannot use it")]
    File(#[from] io::Error),
    #[error("expected [{{\"id\": SERVER ID, \"address\": \"HOST:PORT\"}}]: {0}")]
    Form(String),
    #[error(
        "it names {0} servers: expected this one alone, with the newest log of those that are left. Start it first; the others \
         join it when they are started without such a file"
    )]
    Several(usize),
    #[error(
        "it names server {named:?}, and this one is {own}: expected the file on the server that it names"
    )]
    Other { named: String, own: Uuid },
    #[error("a server that cannot vote cannot go on alone: expected `non_voter` to be false")]
    NonVoter,
    #[error(
        "this server has no log at {0}: expected the file on one of the servers that are left, which has one"
    )]
    NoLog(PathBuf),
    #[error(transparent)]
    Log(#[from] OpenError),
}

/// An entry of the file, in Nomad's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    id: String,
    address: String,
    #[serde(default)]
    non_voter: bool,
}

/// This server, as the file may name it, and its log.
pub(crate) struct Own<'a> {
    pub id: Uuid,
    pub number: u64,
    pub log: &'a Path,
}

/// Follows the file and removes it. Without one nothing happens.
///
/// # Errors
/// [`PeersFileError`]; then nothing was changed, or following it again does no harm.
pub(crate) fn follow(dir: &Path, own: &Own<'_>) -> Result<(), PeersFileError> {
    let path = path(dir);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let peers: Vec<Peer> =
        serde_json::from_slice(&text).map_err(|error| PeersFileError::Form(error.to_string()))?;
    let [peer] = &peers[..] else { return Err(PeersFileError::Several(peers.len())) };
    if peer.id != own.id.to_string() && peer.id != own.number.to_string() {
        return Err(PeersFileError::Other { named: peer.id.clone(), own: own.id });
    }
    if peer.non_voter {
        return Err(PeersFileError::NonVoter);
    }
    if !own.log.is_dir() {
        return Err(PeersFileError::NoLog(own.log.to_path_buf()));
    }
    let end = raft::go_on_alone(own.log, own.number, &peer.address)?;
    std::fs::remove_file(&path)?;
    std::fs::File::open(path.parent().unwrap_or(dir))?.sync_all()?;
    tracing::warn!(
        index = %end.index, term = end.term,
        "this server is the only one of its cluster now, as peers.json says: servers that are lost must not be started again"
    );
    Ok(())
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_names_this_server_alone_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("raft")).unwrap();
        let log = dir.path().join("log");
        let own = Own { id: Uuid::from(7), number: 9, log: &log };
        assert!(follow(dir.path(), &own).is_ok(), "there is no file");
        let said = |text: &str| {
            std::fs::write(path(dir.path()), text).unwrap();
            let why = follow(dir.path(), &own).unwrap_err().to_string();
            assert!(path(dir.path()).exists(), "{why}");
            why
        };
        let peer = |id: &str| format!(r#"{{"id": "{id}", "address": "10.0.0.1:4647"}}"#);
        assert!(said("{}").starts_with("expected [{\"id\""));
        assert!(said("[]").starts_with("it names 0 servers"));
        assert!(said(&format!("[{}, {}]", peer("1"), peer("2"))).starts_with("it names 2 servers"));
        assert!(said(&format!("[{}]", peer("8"))).starts_with("it names server \"8\", and this one is 0"));
        assert!(said(r#"[{"id": "9", "address": "a:1", "voter": true}]"#).contains("unknown field"));
        assert!(said(r#"[{"id": "9", "address": "a:1", "non_voter": true}]"#).contains("cannot vote"));
        let without_log = said(&format!("[{}]", peer(&own.id.to_string())));
        assert_eq!(
            without_log,
            format!(
                "this server has no log at {}: expected the file on one of the servers that are left, which has one",
                log.display()
            )
        );
    }
}
