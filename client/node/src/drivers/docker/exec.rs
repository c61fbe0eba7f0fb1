//! Commands inside a container.

use std::os::fd::OwnedFd;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, ResizeExecOptions, StartExecOptions, StartExecResults};
use executor::Exit;
use executor::process;
use futures_util::stream::{Stream, StreamExt};
use nix::sys::signal::Signal;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::engine::{self, Engine};
use crate::driver::exec::{AgentEnds, CommandEnds, Stdin, Terminal, streams};
use crate::driver::{Exec, ExecConfig, ExecError};

/// How often is asked whether a command has ended whose output is still open.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How soon is asked again when the output has ended: then the command has as well, but for a moment.
const LOOK_SOON: Duration = Duration::from_millis(10);

/// What a user types to end the input of a terminal: twice, because within a line the first one only sends that line.
const END_OF_FILE: &[u8] = &[4, 4];

pub async fn exec(engine: &Engine, container: &str, config: ExecConfig) -> Result<Exec, ExecError> {
    let failed = |error: bollard::errors::Error| match engine::status(&error) {
        Some(_) => ExecError::Refused(engine::text(&error)),
        None => ExecError::Failed(engine::text(&error)),
    };
    let client = engine.client().await.map_err(failed)?;
    let options = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(config.tty),
        cmd: Some(config.command),
        ..CreateExecOptions::default()
    };
    let id = client.create_exec(container, options).await.map_err(failed)?.id;
    let options = StartExecOptions { detach: false, tty: config.tty, output_capacity: None };
    let started = client.start_exec(&id, Some(options)).await.map_err(failed)?;
    let StartExecResults::Attached { output, input } = started else {
        return Err(ExecError::failed("the engine did not attach to the command"));
    };
    let command = Command { client, id, container: container.to_string(), has_ended: false };
    let (ours, CommandEnds([stdin, stdout, stderr])) = streams(false).map_err(ExecError::failed)?;
    tokio::spawn(feed(stdin, input, config.tty));
    let (done, drained) = watch::channel(false);
    tokio::spawn(async move {
        pass_on(output, stdout, stderr).await;
        done.send_replace(true);
    });
    let AgentEnds { stdin, stdout, stderr, .. } = ours;
    let Stdin::Pipe(to) = stdin else { return Err(ExecError::failed("pipes were asked for")) };
    let stdin = Stdin::Remote { to, end: if config.tty { END_OF_FILE } else { &[] } };
    let terminal = config.tty.then(|| {
        let (sizes, wanted) = watch::channel(None);
        tokio::spawn(resize(command.client.clone(), command.id.clone(), wanted));
        Terminal::Remote(sizes)
    });
    let stderr = stderr.filter(|_| !config.tty);
    Ok(Exec { stdin, stdout, stderr, terminal, exit: Box::pin(command.ended(drained)) })
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
async fn pass_on(
    mut output: impl Stream<Item = Result<LogOutput, bollard::errors::Error>> + Unpin,
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

async fn resize(client: Docker, id: String, mut wanted: watch::Receiver<Option<api::TtySize>>) {
    while wanted.changed().await.is_ok() {
        let Some(size) = *wanted.borrow_and_update() else { continue };
        let options = ResizeExecOptions { height: size.height, width: size.width };
        if let Err(error) = client.resize_exec(&id, options).await {
            tracing::debug!(%error, "a terminal was not resized");
        }
    }
}

/// A command that was started. It is ended when this is dropped before it has ended by itself.
struct Command {
    client: Docker,
    id: String,
    container: String,
    has_ended: bool,
}

impl Command {
    async fn ended(mut self, mut drained: watch::Receiver<bool>) -> Result<Exit, String> {
        loop {
            let found = self.client.inspect_exec(&self.id).await.map_err(|error| engine::text(&error))?;
            if found.running != Some(true) {
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

impl Drop for Command {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let (client, id, container) = (self.client.clone(), self.id.clone(), self.container.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end(client, id, container));
        }
    }
}

/// Kills a command. The engine has no way to do that, so it is done here, if the engine is on this host.
async fn end(client: Docker, id: String, container: String) {
    let Ok(found) = client.inspect_exec(&id).await else { return };
    let (Some(true), Some(pid)) = (found.running, found.pid) else { return };
    let Ok(pid) = i32::try_from(pid) else { return };
    // The number is one of this host only if the process there is one of the container.
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if pid <= 1 || !groups.contains(&container) {
        tracing::warn!(container, "a command that nobody waits for goes on: its engine is elsewhere");
        return;
    }
    for child in process::descendants(pid) {
        process::signal(child.pid, Signal::SIGKILL).ok();
    }
    process::signal(pid, Signal::SIGKILL).ok();
}
