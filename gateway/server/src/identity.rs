//! What a server is called: drawn once, then kept beside its log.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base::{Index, Uuid};
use history::History;

use crate::lost_tail::history_dir;

const SERVER: &str = "server-id";
const NUMBER: &str = "raft-number";
const SECRET: &str = "server-key";
const SUSPICION: &str = "log-is-damaged";
const FIRST_INDEX: &str = "first-index";

/// The server's own id, for as long as its data directory lives.
///
/// # Errors
/// The directory cannot be used, or the file in it holds something else.
pub(crate) fn server_id(dir: &Path) -> io::Result<Uuid> {
    kept(dir, SERVER, || Ok(Uuid::from_random(entropy()?)))
}

/// Its number among the servers of the log: another one for each log it began with.
///
/// # Errors
/// As for [`server_id`].
pub(crate) fn raft_number(dir: &Path) -> io::Result<u64> {
    // Clients read numbers as floating-point ones: 53 bits survive that. Zero means no server.
    kept(dir, NUMBER, || Ok((u64::from_le_bytes(entropy()?) >> 11).max(1)))
}

/// What secrets of the cluster are sealed for: 32 bytes in hexadecimal, for this server alone to read.
///
/// # Errors
/// As for [`server_id`].
pub(crate) fn server_secret(dir: &Path) -> io::Result<[u8; 32]> {
    kept(dir, SECRET, || Ok(Hex(entropy()?))).map(|Hex(bytes)| bytes)
}

/// Puts the log aside for examination and forgets the number that goes with it. Returns where the
/// log is now.
///
/// # Errors
/// Something cannot be renamed or removed. Called again it goes on.
pub(crate) fn begin_anew(dir: &Path) -> io::Result<PathBuf> {
    let aside = (1..).map(|nth| dir.join(format!("log.damaged-{nth}"))).find(|path| !path.exists());
    let aside = aside.expect("numbers do not end");
    // The number first: without it no server votes in the name of the one that lost its log.
    match std::fs::remove_file(dir.join(NUMBER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => sync(dir)?,
    }
    std::fs::rename(dir.join("log"), &aside)?;
    sync(dir)?;
    // What was seen of that log says nothing about the next one. Last, so that it is not lost while the log still counts.
    match std::fs::remove_dir_all(history_dir(dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => sync(dir)?,
    }
    Ok(aside)
}

/// Notes that the log was found damaged where a start may pass by, until [`trust`].
///
/// # Errors
/// The disk's.
pub(crate) fn suspect(dir: &Path, why: &str) -> io::Result<()> {
    write(dir, SUSPICION, why)
}

pub(crate) fn is_suspected(dir: &Path) -> bool {
    dir.join(SUSPICION).exists()
}

/// # Errors
/// The disk's.
pub(crate) fn trust(dir: &Path) -> io::Result<()> {
    std::fs::remove_file(dir.join(SUSPICION))?;
    sync(dir)
}

/// Where indexes go on after a repair that lost some; zero without one.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub(crate) fn first_index(dir: &Path) -> io::Result<Index> {
    match std::fs::read_to_string(dir.join(FIRST_INDEX)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Index::ZERO),
        Err(error) => Err(error),
        Ok(text) => text.trim().parse().map(Index).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{FIRST_INDEX}: expected an index"))
        }),
    }
}

/// # Errors
/// The disk's.
fn set_first_index(dir: &Path, first: Index) -> io::Result<()> {
    write(dir, FIRST_INDEX, &first.to_string())
}

/// To be called before a repair of the log loses batches up to this one, as far as there is a trace of them: the server will give
/// later indexes only, so that no position or index which somebody remembers points into new content.
///
/// # Errors
/// The disk's.
pub fn lose_up_to(data_dir: &Path, last: Index) -> io::Result<Index> {
    let dir = data_dir.join("server");
    let seen = History::has_seen(&history_dir(&dir)).map_err(io::Error::other)?;
    let first = Index(last.max(seen).0.saturating_add(UNTRACED)).max(first_index(&dir)?);
    set_first_index(&dir, first)?;
    Ok(first)
}

/// Batches that may have been acknowledged and left no trace: as many as are on their way at once, with room to spare. Each
/// one costs an empty batch of 104 bytes.
const UNTRACED: u64 = 1_000;

/// An unpredictable seed.
///
/// # Errors
/// The system has no entropy.
pub(crate) fn seed() -> io::Result<u64> {
    Ok(u64::from_le_bytes(entropy()?))
}

fn kept<T>(dir: &Path, name: &str, draw: impl FnOnce() -> io::Result<T>) -> io::Result<T>
where
    T: std::fmt::Display + std::str::FromStr,
    T::Err: std::fmt::Display,
{
    std::fs::create_dir_all(dir)?;
    let path = dir.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map_err(|error: T::Err| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let drawn = draw()?;
            write(dir, name, &drawn.to_string())?;
            Ok(drawn)
        }
        Err(error) => Err(error),
    }
}

/// All of it or nothing, whenever the power goes.
pub(crate) fn write(dir: &Path, name: &str, line: &str) -> io::Result<()> {
    let draft = dir.join(format!("{name}.new"));
    // Some of it is secret, and nobody else needs the rest.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, dir.join(name))?;
    sync(dir)
}

pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    std::fs::File::open(dir)?.sync_all()
}

/// Bytes as hexadecimal digits.
struct Hex([u8; 32]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Hex {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Hex, &'static str> {
        let error = "expected 64 hexadecimal digits";
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error);
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| error)?;
        }
        Ok(Hex(bytes))
    }
}

/// Unpredictable bytes.
///
/// # Errors
/// The system has no entropy.
pub(crate) fn entropy<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_begins_anew_keeps_its_id_and_gets_another_number() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (id, number) = (server_id(dir).unwrap(), raft_number(dir).unwrap());
        std::fs::create_dir(dir.join("log")).unwrap();
        assert_eq!((server_id(dir).unwrap(), raft_number(dir).unwrap()), (id, number));
        assert!(begin_anew(dir).unwrap().ends_with("log.damaged-1"));
        assert!(!dir.join("log").exists());
        assert_eq!(server_id(dir).unwrap(), id);
        assert_ne!(raft_number(dir).unwrap(), number);
        std::fs::create_dir(dir.join("log")).unwrap();
        assert!(begin_anew(dir).unwrap().ends_with("log.damaged-2"));
    }

    #[test]
    fn the_servers_secret_is_kept_for_it_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let drawn = server_secret(dir.path()).unwrap();
        assert_eq!(server_secret(dir.path()).unwrap(), drawn);
        let path = dir.path().join(SECRET);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(path, "zz").unwrap();
        let error = server_secret(dir.path()).unwrap_err().to_string();
        assert!(error.contains("server-key: expected 64 hexadecimal digits"), "{error}");
    }

    #[test]
    fn an_invalid_number_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NUMBER), "one").unwrap();
        let error = raft_number(dir.path()).unwrap_err();
        assert!(error.to_string().contains("raft-number: invalid digit"), "{error}");
    }
}
