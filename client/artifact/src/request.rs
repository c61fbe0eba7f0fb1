//! What the agent and the child exchange: one line of JSON each way. They are of the same release, so nothing here is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What to fetch, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// As the job has it, its variables replaced.
    pub source: String,
    pub options: BTreeMap<String, String>,
    /// Of requests to the first host; others get none of them.
    pub headers: BTreeMap<String, String>,
    pub mode: Mode,
    /// Certificates are not checked.
    pub insecure: bool,
    /// No name of the artifact leads out of this directory.
    pub root: PathBuf,
    /// Below `root`.
    pub destination: PathBuf,
    /// Where what is not finished yet is kept; on the file system of `root`.
    pub scratch: PathBuf,
    /// Besides `root` and `scratch`, what may be written to.
    pub writable: Vec<PathBuf>,
    /// Whose the files become; `None` for the agent's own.
    pub owner: Option<Owner>,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Archives and repositories are unpacked into the destination, other files are put there.
    Any,
    /// The destination is the file.
    File,
    /// The destination is the directory.
    Dir,
}

impl Mode {
    /// As job files call it.
    pub fn parse(text: &str) -> Option<Mode> {
        match text {
            "" | "any" => Some(Mode::Any),
            "file" => Some(Mode::File),
            "dir" => Some(Mode::Dir),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// What the owner, the group and others may do with a file, in the bits of `chmod`.
pub type Rights = u32;

/// What one artifact may cost. Whatever exceeds a limit fails, and leaves no file that is cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub http_read_timeout: Duration,
    /// Bytes of one download.
    pub http_max_size: u64,
    pub gcs_timeout: Duration,
    pub git_timeout: Duration,
    pub hg_timeout: Duration,
    pub s3_timeout: Duration,
    /// Files and directories of one archive; 0 for no limit.
    pub decompression_file_count_limit: u64,
    /// Bytes of one archive when it is unpacked; 0 for no limit.
    pub decompression_size_limit: u64,
    /// What was fetched is not searched for links that lead out.
    pub disable_artifact_inspection: bool,
    /// The child may touch whatever its user may.
    pub disable_filesystem_isolation: bool,
    /// What it may touch besides what it needs.
    #[serde(default)]
    pub extra_paths: Vec<ExtraPath>,
}

/// A path of the host that children may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraPath {
    pub path: PathBuf,
    /// With all that is in it.
    pub is_directory: bool,
    pub read: bool,
    pub write: bool,
    /// Files and directories are made in it, and removed.
    pub create: bool,
    pub execute: bool,
}

impl FromStr for ExtraPath {
    type Err = &'static str;

    /// `KIND:MODE:PATH`, as `d:rx:/opt/bin`.
    fn from_str(text: &str) -> Result<ExtraPath, Self::Err> {
        const EXPECTED: &str = "expected KIND:MODE:PATH, with f or d for a file or directory, some of r, w, c and x, and a path that begins with /";
        let mut parts = text.splitn(3, ':');
        let (Some(kind), Some(mode), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(EXPECTED);
        };
        let known = matches!(kind, "f" | "d") && mode.chars().all(|letter| "rwcx".contains(letter));
        if !known || !path.starts_with('/') {
            return Err(EXPECTED);
        }
        let has = |letter| mode.contains(letter);
        Ok(ExtraPath {
            path: PathBuf::from(path),
            is_directory: kind == "d",
            read: has('r'),
            write: has('w'),
            create: has('c'),
            execute: has('x'),
        })
    }
}

impl Limits {
    /// Those of Nomad, if the operator says nothing.
    pub fn usual() -> Limits {
        let half_an_hour = Duration::from_secs(30 * 60);
        Limits {
            http_read_timeout: half_an_hour,
            http_max_size: 100 * 1000 * 1000 * 1000,
            gcs_timeout: half_an_hour,
            git_timeout: half_an_hour,
            hg_timeout: half_an_hour,
            s3_timeout: half_an_hour,
            decompression_file_count_limit: 4096,
            decompression_size_limit: 100 * 1000 * 1000 * 1000,
            disable_artifact_inspection: false,
            disable_filesystem_isolation: false,
            extra_paths: Vec::new(),
        }
    }

    /// When a child is ended that has not answered: a minute after the longest of the timeouts, which end it from inside.
    pub fn deadline(&self) -> Duration {
        let all =
            [self.http_read_timeout, self.gcs_timeout, self.git_timeout, self.hg_timeout, self.s3_timeout];
        all.into_iter().max().unwrap_or_default().max(Duration::from_secs(30 * 60)) + Duration::from_secs(60)
    }
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// `None` when the artifact is there.
    pub error: Option<String>,
    /// Another try may go better.
    pub recoverable: bool,
    /// What confined the child, and what did not.
    pub confinement: Confinement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// By all that this release knows of.
    Full,
    /// The kernel is too old for a part of it.
    Partial,
    /// The kernel has no Landlock, or has it switched off.
    Missing,
    /// The operator wants none.
    Disabled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_a_minute_after_the_longest_timeout_and_at_least_half_an_hour() {
        let short = Duration::from_secs(1);
        let all_short = Limits {
            http_read_timeout: short,
            gcs_timeout: short,
            git_timeout: short,
            hg_timeout: short,
            s3_timeout: short,
            ..Limits::usual()
        };
        assert_eq!(all_short.deadline(), Duration::from_secs(31 * 60));
        let long = Limits { git_timeout: Duration::from_secs(7200), ..all_short };
        assert_eq!(long.deadline(), Duration::from_secs(7260));
    }
}
