//! Repositories of Mercurial, by the program `hg`.

use std::path::Path;
use std::time::Instant;

use crate::FetchError;
use crate::program;
use crate::source::Source;

/// Clones into `scratch/tree`.
///
/// # Errors
/// When the options make no sense, or hg fails.
pub fn fetch(source: &Source, insecure: bool, scratch: &Path, deadline: Instant) -> Result<(), FetchError> {
    let mut command = program::command("hg", scratch);
    command.env("HGPLAIN", "1").arg("clone").args(["--noninteractive", "--quiet"]);
    if insecure {
        command.arg("--insecure");
    }
    if let Some(revision) = source.option("rev") {
        command.arg(format!("--updaterev={}", checked(revision)?));
    }
    command.arg("--").arg(source.url.as_str()).arg("tree");
    program::run(command, deadline)
}

/// Revisions can be whole expressions of Mercurial, some of which read files.
fn checked(revision: &str) -> Result<&str, FetchError> {
    let is_plain = |character: char| character.is_alphanumeric() || "._-/+@#".contains(character);
    if revision.starts_with('-') || !revision.chars().all(is_plain) {
        return Err(FetchError::invalid(format!("rev: \"{revision}\" is no branch, tag or changeset")));
    }
    Ok(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_no_revisions() {
        assert_eq!(checked("v1.0"), Ok("v1.0"));
        for bad in ["-x", "file('/etc/passwd')", "a b"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}
