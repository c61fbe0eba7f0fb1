//! The process that copies the output of a plugin, or of a plugin's task, into rotated files. It outlives the agent, as what
//! it copies for does; see [`executor::copy`].

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use executor::copy::{CopySpec, CopyStream, STOP_FIFO, WORD};
use executor::spec::{self, ExecutorProcesses, LogSpec, StartReport};
use plugin::launch::{exited, kill};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// How long one may take to begin.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long one may take to end, what it has to write included.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Has a process copy the streams, unless one does so already. The pipes are below `directory`, by the names of the streams.
///
/// # Errors
/// When there is none.
pub async fn ensure(program: &Path, directory: &Path, streams: &[(&str, LogSpec)]) -> Result<(), String> {
    if running(directory).is_some() {
        return Ok(());
    }
    let named = |(name, log): &(&str, LogSpec)| CopyStream { name: name.to_string(), log: log.clone() };
    let spec = CopySpec { streams: streams.iter().map(named).collect() };
    prepare(directory, &spec).map_err(|error| format!("{}: {error}", directory.display()))?;
    let output = std::fs::File::create(directory.join(spec::OUTPUT_FILE));
    let output = output.map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut command = Command::new(program);
    command.args([spec::SUBCOMMAND, WORD]).arg(directory).current_dir("/").env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output);
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let stdout = child.stdout.take().expect("its standard output is a pipe");
    let mut line = String::new();
    let answered = timeout(START_TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
    if answered.is_err() {
        child.start_kill().ok();
    }
    // Nobody waits for it here: it must outlive us. While we live, the runtime reaps it.
    drop(child);
    match serde_json::from_str(&line) {
        Ok(StartReport::Started(_)) => Ok(()),
        Ok(StartReport::Failed(why)) => Err(format!("the copying of output did not begin: {why}")),
        Err(_) => Err("the copying of output did not begin".to_string()),
    }
}

/// The same with what the last one was started with.
///
/// # Errors
/// Also when there never was one.
pub async fn ensure_again(program: &Path, directory: &Path) -> Result<(), String> {
    let read = spec::read::<CopySpec>(directory, spec::SPEC_FILE);
    let read = read.map_err(|error| format!("{}: {error}", directory.display()))?;
    let stored = read.ok_or_else(|| format!("{} is gone", directory.display()))?;
    let streams: Vec<_> = stored.streams.iter().map(|one| (one.name.as_str(), one.log.clone())).collect();
    ensure(program, directory, &streams).await
}

/// Where a stream is written to.
pub fn pipe(directory: &Path, stream: &str) -> PathBuf {
    directory.join(stream)
}

fn prepare(directory: &Path, spec: &CopySpec) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    spec::write(directory, spec::SPEC_FILE, spec)?;
    for name in spec.streams.iter().map(|stream| stream.name.as_str()).chain([STOP_FIFO]) {
        let made = mknodat(CWD, directory.join(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0);
        if made != Err(rustix::io::Errno::EXIST) {
            made?;
        }
    }
    Ok(())
}

fn running(directory: &Path) -> Option<ExecutorProcesses> {
    let found = spec::read::<ExecutorProcesses>(directory, spec::STATE_FILE).ok().flatten()?;
    found.executor.is_alive().then_some(found)
}

/// Has the process copy what has come and end, and removes its directory.
pub async fn end(directory: &Path) {
    stop(directory).await;
    std::fs::remove_dir_all(directory).ok();
}

/// The same, and what was copied stays.
pub async fn stop(directory: &Path) {
    if let Some(processes) = running(directory) {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let asked = openat(CWD, directory.join(STOP_FIFO), flags, Mode::empty());
        let patience = if asked.is_ok() { END_TIMEOUT } else { Duration::ZERO };
        drop(asked);
        if timeout(patience, exited(&processes.executor)).await.is_err() {
            kill(&processes.executor);
        }
    }
}
