//! Repositories of git, by the program `git`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::FetchError;
use crate::program;
use crate::source::Source;

/// Over what git may fetch, submodules included: no files of the node, and no commands.
const PROTOCOLS: &str = "http:https:ssh:git";

/// Clones into `scratch/tree`.
///
/// # Errors
/// When the options make no sense, or git fails.
pub fn fetch(source: &Source, insecure: bool, scratch: &Path, deadline: Instant) -> Result<(), FetchError> {
    let revision = source.option("ref").map(checked).transpose()?;
    let depth = source.option("depth").map(depth).transpose()?;
    let ssh = ssh_command(source, insecure, scratch)?;
    let git = |arguments: &[&str], directory: &Path| {
        let mut command = command(directory, insecure, ssh.as_deref());
        command.args(arguments);
        program::run(command, deadline)
    };
    let (url, tree) = (source.url.as_str(), scratch.join("tree"));
    let depth_flag = depth.map(|depth| format!("--depth={depth}"));
    match (&depth_flag, revision) {
        (None, _) => git(&["clone", "--quiet", "--", url, "tree"], scratch)?,
        (Some(depth), None) => git(&["clone", "--quiet", depth, "--", url, "tree"], scratch)?,
        (Some(depth), Some(revision)) if !is_commit(revision) => {
            let branch = format!("--branch={revision}");
            git(&["clone", "--quiet", depth, &branch, "--", url, "tree"], scratch)?;
        }
        // A commit has no name that a shallow clone could ask for.
        (Some(depth), Some(revision)) => {
            git(&["init", "--quiet", "tree"], scratch)?;
            git(&["remote", "add", "origin", url], &tree)?;
            git(&["fetch", "--quiet", depth, "origin", revision], &tree)?;
            git(&["checkout", "--quiet", "FETCH_HEAD", "--"], &tree)?;
        }
    }
    if let (None, Some(revision)) = (&depth_flag, revision) {
        git(&["checkout", "--quiet", revision, "--"], &tree)?;
    }
    let shallow = depth.is_some().then_some("--depth=1");
    let submodules = ["submodule", "--quiet", "update", "--init", "--recursive"];
    let arguments: Vec<&str> = submodules.into_iter().chain(shallow).collect();
    git(&arguments, &tree)
}

fn command(directory: &Path, insecure: bool, ssh: Option<&str>) -> Command {
    let mut command = program::command("git", directory);
    // Commands that somebody else could have configured for a repository.
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    command.args(["-c", "advice.detachedHead=false"]);
    command.env("GIT_ALLOW_PROTOCOL", PROTOCOLS).env("GIT_TERMINAL_PROMPT", "0");
    if insecure {
        command.env("GIT_SSL_NO_VERIFY", "true");
    }
    if let Some(ssh) = ssh {
        command.env("GIT_SSH_COMMAND", ssh);
    }
    command
}

/// Names of branches, tags and commits; never an option.
fn checked(revision: &str) -> Result<&str, FetchError> {
    let is_plain = |character: char| character.is_alphanumeric() || "._-/+@#".contains(character);
    if revision.starts_with('-') || revision.contains("..") || !revision.chars().all(is_plain) {
        return Err(FetchError::invalid(format!("ref: \"{revision}\" is no branch, tag or commit")));
    }
    Ok(revision)
}

fn depth(text: &str) -> Result<u32, FetchError> {
    let depth = text.parse().ok().filter(|depth| *depth > 0);
    depth.ok_or_else(|| FetchError::invalid(format!("depth: \"{text}\" is no number of commits")))
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// How git is to call ssh. The key of the job is written where only this child can read it.
fn ssh_command(source: &Source, insecure: bool, scratch: &Path) -> Result<Option<String>, FetchError> {
    let mut ssh = "ssh -o BatchMode=yes".to_string();
    if let Some(key) = source.option("sshkey") {
        let wrong = || FetchError::invalid("sshkey: expected a private key in base64");
        let key = STANDARD.decode(key.replace(' ', "+")).map_err(|_| wrong())?;
        let path = scratch.join("sshkey");
        let mut file = File::create_new(&path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(&key)?;
        // Directories of allocations have no names that a shell would read otherwise.
        ssh.push_str(&format!(" -i '{}' -o IdentitiesOnly=yes", path.display()));
        if path.to_string_lossy().contains('\'') {
            return Err(FetchError::failed("sshkey: the directory of the task has a quote in its name"));
        }
    } else if !insecure {
        return Ok(None);
    }
    if insecure {
        ssh.push_str(" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null");
    }
    Ok(Some(ssh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_git_cannot_be_smuggled_in() {
        for good in ["main", "v1.2.3", "feature/x", "a/b#1", "1234567890123456789012345678901234567890"] {
            assert_eq!(checked(good), Ok(good));
        }
        for bad in ["--upload-pack=id", "-x", "a b", "a..b", "x\ny", "a;id", "a:b"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-1", "x", "1 --upload-pack=id"] {
            assert!(depth(bad).is_err(), "{bad}");
        }
    }
}
