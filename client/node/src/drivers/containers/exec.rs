//! Commands inside a container: the streams between an engine and the agent, and how a command ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use bollard::container::LogOutput;
use executor::Exit;
use executor::process;
use futures_util::stream::{Stream, StreamExt};
use nix::sys::signal::Signal;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::driver::exec::{AgentEnds, CommandEnds, Stdin, Terminal, streams};
use crate::driver::{Exec, ExecError};

/// How often is asked whether a command has ended whose output is still open.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How soon is asked again when the output has ended: then the command has as well, but for a moment.
const LOOK_SOON: Duration = Duration::from_millis(10);

/// What a user types to end the input of a terminal: twice, because within a line the first one only sends that line.
const END_OF_FILE: &[u8] = &[4, 4];

/// What an engine says of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandStatus {
    pub is_running: bool,
    pub exit_code: Option<i64>,
    /// Of the engine's host.
    pub pid: Option<i64>,
}

/// A command that an engine has started.
pub trait Command: Clone + Send + Sync + 'static {
    /// In which container it is.
    fn container(&self) -> &str;

    fn status(&self) -> impl Future<Output = Result<CommandStatus, String>> + Send;

    /// # Errors
    /// When the engine does not do it.
    fn resize(&self, size: api::TtySize) -> impl Future<Output = Result<(), String>> + Send;
}

/// Joins the streams of a command with those of its caller.
///
/// # Errors
/// When the system has no more pipes.
pub fn attach<C: Command, E: Send>(
    command: C,
    output: impl Stream<Item = Result<LogOutput, E>> + Send + Unpin + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
    tty: bool,
) -> Result<Exec, ExecError> {
    let guard = Guard { command, has_ended: false };
    let (ours, CommandEnds([stdin, stdout, stderr])) = streams(false).map_err(ExecError::failed)?;
    tokio::spawn(feed(stdin, input, tty));
    let (done, drained) = watch::channel(false);
    tokio::spawn(async move {
        pass_on(output, stdout, stderr).await;
        done.send_replace(true);
    });
    let AgentEnds { stdin, stdout, stderr, .. } = ours;
    let Stdin::Pipe(to) = stdin else { return Err(ExecError::failed("pipes were asked for")) };
    let stdin = Stdin::Remote { to, end: if tty { END_OF_FILE } else { &[] } };
    let terminal = tty.then(|| {
        let (sizes, wanted) = watch::channel(None);
        tokio::spawn(resize(guard.command.clone(), wanted));
        Terminal::Remote(sizes)
    });
    let stderr = stderr.filter(|_| !tty);
    Ok(Exec { stdin, stdout, stderr, terminal, exit: Box::pin(guard.ended(drained)) })
}

async fn feed(stdin: OwnedFd, mut input: impl AsyncWrite + Unpin, tty: bool) {
    let Ok(mut stdin) = pipe::Receiver::from_owned_fd(stdin) else { return };
    // A command that reads no more is not an error of its caller.
    let copied = tokio::io::copy(&mut stdin, &mut input).await;
    if tty && copied.is_ok() {
        input.flush().await.ok();
        // The end of the connection would end the terminal, and the output with it.
        return std::future::pending().await;
    }
    input.shutdown().await.ok();
}

/// Passes on the output until it ends, or nobody reads it.
async fn pass_on<E>(
    mut output: impl Stream<Item = Result<LogOutput, E>> + Unpin,
    stdout: OwnedFd,
    stderr: OwnedFd,
) {
    let ends = (pipe::Sender::from_owned_fd(stdout), pipe::Sender::from_owned_fd(stderr));
    let (Ok(mut stdout), Ok(mut stderr)) = ends else { return };
    while let Some(Ok(piece)) = output.next().await {
        let written = match piece {
            LogOutput::StdErr { message } => stderr.write_all(&message).await,
            LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
                stdout.write_all(&message).await
            }
        };
        if written.is_err() {
            return;
        }
    }
}

async fn resize(command: impl Command, mut wanted: watch::Receiver<Option<api::TtySize>>) {
    while wanted.changed().await.is_ok() {
        let Some(size) = *wanted.borrow_and_update() else { continue };
        if let Err(error) = command.resize(size).await {
            tracing::debug!(%error, "a terminal was not resized");
        }
    }
}

/// Ends the command when it is dropped before that has ended by itself.
struct Guard<C: Command> {
    command: C,
    has_ended: bool,
}

impl<C: Command> Guard<C> {
    async fn ended(mut self, mut drained: watch::Receiver<bool>) -> Result<Exit, String> {
        loop {
            let found = self.command.status().await?;
            if !found.is_running {
                self.has_ended = true;
                let code = found.exit_code.ok_or("the engine does not say how the command ended")?;
                return Ok(Exit { code, ..Exit::default() });
            }
            let is_drained = *drained.borrow();
            tokio::select! {
                () = tokio::time::sleep(if is_drained { LOOK_SOON } else { LOOK_EVERY }) => {}
                _ = drained.wait_for(|drained| *drained), if !is_drained => {}
            }
        }
    }
}

impl<C: Command> Drop for Guard<C> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let command = self.command.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(command));
        }
    }
}

/// Kills a command. Engines have no way to do that, so it is done here, if the engine is on this host.
async fn end(command: impl Command) {
    let Ok(CommandStatus { is_running: true, pid: Some(pid), .. }) = command.status().await else { return };
    let Ok(pid) = i32::try_from(pid) else { return };
    let container = command.container();
    // The number is one of this host only if the process there is one of the container.
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if pid <= 1 || !groups.contains(container) {
        tracing::warn!(container, "a command that nobody waits for goes on: its engine is elsewhere");
        return;
    }
    for child in process::descendants(pid) {
        process::signal(child.pid, Signal::SIGKILL).ok();
    }
    process::signal(pid, Signal::SIGKILL).ok();
}
