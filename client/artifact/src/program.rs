//! Programs that fetch repositories.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::FetchError;

/// How much of what a program says is kept for the message.
const SAID_MAX: usize = 2048;

/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs a program to its end. Whatever it leaves behind is of the child's process group, which the agent ends.
///
/// # Errors
/// When there is no such program, it fails, or it is not done at `deadline`; with the last of what it has said.
pub fn run(mut command: Command, deadline: Instant) -> Result<(), FetchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| FetchError::failed(format!("{name}: {error}")))?;
    let said = child.stderr.take().map(|pipe| std::thread::spawn(move || last_of(pipe)));
    let status =
        wait(&mut child, deadline).map_err(|error| FetchError::failed(format!("{name}: {error}")))?;
    match status {
        // Its own children may hold the pipe for longer.
        None => Err(FetchError::failed(format!("{name}: not done in time, and ended"))),
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
            Err(FetchError::failed(format!("{name} failed ({status}): {}", said.trim())))
        }
    }
}

fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<Option<std::process::ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn last_of(mut pipe: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = pipe.read(&mut piece) {
        kept.extend_from_slice(&piece[..length]);
        let surplus = kept.len().saturating_sub(SAID_MAX);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// A command of a program that takes its own options from nobody but us.
pub fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory);
    command
}
