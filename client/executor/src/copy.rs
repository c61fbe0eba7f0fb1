//! A process that copies what comes through pipes with names into rotated files, for tasks whose driver is a program of its
//! own: it writes to a pipe as long as the task lives, whether or not there is an agent.
//!
//! It is our own program, like an executor, and ends when the agent opens and closes its [`STOP_FIFO`].

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, openat};
use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;
use crate::rotate::Rotator;
use crate::spec::{self, ExecutorProcesses, LogSpec, StartReport};
use crate::supervisor::{copy_all, report};

/// The argument before the directory.
pub const WORD: &str = "copy";

/// What ends the process.
pub const STOP_FIFO: &str = "stop";

/// How long output may still come when the process has to end: somebody may hold the pipe open.
const LINGER: Duration = Duration::from_secs(2);

/// The content of [`spec::SPEC_FILE`] in the directory of such a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopySpec {
    pub streams: Vec<CopyStream>,
}

/// One stream: the pipe has the name of the stream, in the same directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyStream {
    pub name: String,
    pub log: LogSpec,
}

/// Copies until it has to end.
///
/// # Errors
/// When there is nothing to copy from or to.
pub fn run(directory: &Path) -> io::Result<()> {
    // Fails only for a process that leads its session already, which is what is wanted.
    rustix::process::setsid().ok();
    let spec: CopySpec = spec::read(directory, spec::SPEC_FILE)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no spec"))?;
    let (done, drained) = mpsc::channel();
    let mut held = Vec::new();
    for stream in &spec.streams {
        let path = directory.join(&stream.name);
        let to = Rotator::open(stream.log.clone())?;
        // Without waiting for somebody who writes; then with one end held here, so that it does not end between two of them.
        let from = openat(CWD, &path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        held.push(openat(CWD, &path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?);
        fcntl_setfl(&from, OFlags::empty())?;
        let done = done.clone();
        std::thread::Builder::new().spawn(move || {
            copy_all(std::fs::File::from(from), to);
            done.send(()).ok();
        })?;
    }
    let own = ProcessIdentity::of(std::process::id() as i32)?;
    let state = ExecutorProcesses { executor: own.clone(), task: own };
    spec::write(directory, spec::STATE_FILE, &state)?;
    report(&StartReport::Started(state));
    // Opened when the agent opens it, and at its end when the agent has closed it.
    std::fs::File::open(directory.join(STOP_FIFO))?.read_to_end(&mut Vec::new())?;
    drop(held);
    let deadline = Instant::now() + LINGER;
    for _ in &spec.streams {
        drained.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    }
    Ok(())
}
