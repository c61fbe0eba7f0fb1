//! Programs of the operator, each started for one thing: plugins that make volumes, and that fetch secrets.
//!
//! What they are called with and what they answer is their callers' business.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

/// Longest answer. A variable has at most 64 KiB.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// How much of a message of a program that fails is kept.
const MESSAGE_BYTES_MAX: u64 = 1 << 10;

/// How a program ended, and the beginning of what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("not done within {} s", .0.as_secs())]
    Late(Duration),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whether the name of a plugin cannot lead out of the directory of plugins.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// Whether the path is a file that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end. Dropped before it is done, or when its time is over, it kills the program.
pub(crate) async fn run(mut command: Command, within: Duration) -> Result<Ran, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let ran = async {
        let (output, errors) = tokio::join!(read(output, ANSWER_BYTES_MAX), read(errors, MESSAGE_BYTES_MAX));
        Ok(Ran { status: child.wait().await?, output, errors })
    };
    timeout(within, ran).await.map_err(|_| RunError::Late(within))?
}

/// What comes, up to a bound; the rest is read and thrown away, so that nobody is stuck writing.
async fn read(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(bytes_max).read_to_end(&mut kept).await.ok();
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await.ok();
    }
    kept
}
