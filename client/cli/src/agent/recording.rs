//! Data directories say whether what is in them is a recording: an agent would not run on one, and a recorder on that of an
//! agent.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, bail};

use crate::settings::RecordingSettings;

/// Holds the address of the cluster that is recorded.
const FILE: &str = "recording";

/// # Errors
/// The directory belongs to the other kind, or to the recording of another cluster.
pub(super) fn check(home: &Path, wanted: Option<&RecordingSettings>) -> anyhow::Result<()> {
    let path = home.join(FILE);
    let found = match std::fs::read_to_string(&path) {
        Ok(found) => Some(found.trim_end().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let home = home.display();
    match (wanted, found) {
        (None, None) => Ok(()),
        (None, Some(of)) => {
            bail!("{home} holds a recording of {of}: sojourn record -from {of} goes on with it")
        }
        (Some(wanted), Some(of)) if of == wanted.source => Ok(()),
        (Some(wanted), Some(of)) if !wanted.moved => bail!(
            "{home} holds a recording of {of}, and not of {}: -from-moved if the same cluster has that address now",
            wanted.source
        ),
        (Some(_), None) if path.with_file_name("server").exists() => {
            bail!("{home} holds the data of an agent: a recording begins in an empty directory")
        }
        (Some(wanted), _) => {
            let write = || {
                let mut file = File::create(&path)?;
                writeln!(file, "{}", wanted.source)?;
                file.sync_all()
            };
            write().with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str, moved: bool) -> RecordingSettings {
        RecordingSettings { source: source.to_string(), moved }
    }

    #[test]
    fn a_directory_holds_a_recording_or_an_agent_and_never_both() {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path(), None).unwrap();
        check(dir.path(), Some(&of("http://a:4646", false))).unwrap();
        check(dir.path(), Some(&of("http://a:4646", false))).unwrap();
        let refused = check(dir.path(), None).unwrap_err().to_string();
        assert!(refused.contains("holds a recording of http://a:4646"), "{refused}");
        let refused = check(dir.path(), Some(&of("http://b:4646", false))).unwrap_err().to_string();
        assert!(refused.contains("-from-moved"), "{refused}");
        check(dir.path(), Some(&of("http://b:4646", true))).unwrap();
        check(dir.path(), Some(&of("http://b:4646", false))).unwrap();
        let agent = tempfile::tempdir().unwrap();
        std::fs::create_dir(agent.path().join("server")).unwrap();
        let refused = check(agent.path(), Some(&of("http://a:4646", false))).unwrap_err().to_string();
        assert!(refused.contains("holds the data of an agent"), "{refused}");
    }
}
