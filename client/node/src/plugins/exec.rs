//! A command inside a task of a plugin: its streams over one call.

use std::os::fd::OwnedFd;

use executor::Exit;
use futures_util::stream;
use plugin::proto::driver as proto;
use plugin::{CallError, Caller};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tonic::Streaming;

use crate::driver::exec::{AgentEnds, CommandEnds, Stdin, Terminal, streams};
use crate::driver::{Exec, ExecConfig, ExecError};

/// Messages that wait for the plugin.
const MESSAGES_MAX: usize = 16;

/// Input that is sent at once.
const CHUNK_BYTES: usize = 32 * 1024;

/// What a user types to end the input of a terminal: twice, because within a line the first one only sends that line.
const END_OF_FILE: &[u8] = &[4, 4];

/// Runs a command.
///
/// # Errors
/// When the plugin does not.
pub async fn exec(caller: &Caller, task_id: &str, config: ExecConfig) -> Result<Exec, ExecError> {
    let (to_plugin, waiting) = mpsc::channel(MESSAGES_MAX);
    let setup = proto::ExecSetup { task_id: task_id.to_string(), command: config.command, tty: config.tty };
    let first = proto::ExecRequest { setup: Some(setup), ..Default::default() };
    to_plugin.send(first).await.map_err(ExecError::failed)?;
    let requests =
        stream::unfold(waiting, |mut waiting| async move { Some((waiting.recv().await?, waiting)) });
    let answers = caller.exchange(proto::SERVICE, "ExecTaskStreaming", requests).await.map_err(failed)?;
    let (ours, CommandEnds([stdin, stdout, stderr])) = streams(false).map_err(ExecError::failed)?;
    tokio::spawn(feed(stdin, to_plugin.clone(), config.tty));
    let terminal = config.tty.then(|| {
        let (sizes, wanted) = watch::channel(None);
        tokio::spawn(resize(wanted, to_plugin));
        Terminal::Remote(sizes)
    });
    let (ended, exit) = oneshot::channel();
    tokio::spawn(pass_on(answers, stdout, stderr, ended));
    let AgentEnds { stdin, stdout, stderr, .. } = ours;
    let Stdin::Pipe(to) = stdin else { return Err(ExecError::failed("pipes were asked for")) };
    let stdin = Stdin::Remote { to, end: if config.tty { END_OF_FILE } else { &[] } };
    let exit = Box::pin(async { exit.await.unwrap_or_else(|_| Err("the command was given up".to_string())) });
    Ok(Exec { stdin, stdout, stderr: stderr.filter(|_| !config.tty), terminal, exit })
}

fn failed(error: CallError) -> ExecError {
    match error {
        CallError::NotFound(text) | CallError::Unimplemented(text) => ExecError::Refused(text),
        other => ExecError::failed(other),
    }
}

async fn feed(stdin: OwnedFd, to_plugin: mpsc::Sender<proto::ExecRequest>, tty: bool) {
    let Ok(mut stdin) = pipe::Receiver::from_owned_fd(stdin) else { return };
    let input = |io| proto::ExecRequest { stdin: Some(io), ..Default::default() };
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = stdin.read(&mut chunk).await {
        let data = proto::ExecIo { data: chunk[..length].to_vec(), close: false };
        if to_plugin.send(input(data)).await.is_err() {
            return;
        }
    }
    // The input of a terminal ends by what is typed.
    if !tty {
        to_plugin.send(input(proto::ExecIo { data: Vec::new(), close: true })).await.ok();
    }
    to_plugin.closed().await;
}

async fn resize(
    mut wanted: watch::Receiver<Option<api::TtySize>>,
    to_plugin: mpsc::Sender<proto::ExecRequest>,
) {
    while wanted.changed().await.is_ok() {
        let Some(size) = *wanted.borrow_and_update() else { continue };
        let size = proto::TerminalSize { height: size.height.into(), width: size.width.into() };
        let request = proto::ExecRequest { tty_size: Some(size), ..Default::default() };
        if to_plugin.send(request).await.is_err() {
            return;
        }
    }
}

/// Passes on output until the command has ended, or nobody waits for it any more, which ends the call.
async fn pass_on(
    mut answers: Streaming<proto::ExecResponse>,
    stdout: OwnedFd,
    stderr: OwnedFd,
    mut ended: oneshot::Sender<Result<Exit, String>>,
) {
    let copying = copy(&mut answers, stdout, stderr);
    let exit = tokio::select! {
        exit = copying => exit,
        () = ended.closed() => return,
    };
    ended.send(exit).ok();
}

async fn copy(
    answers: &mut Streaming<proto::ExecResponse>,
    stdout: OwnedFd,
    stderr: OwnedFd,
) -> Result<Exit, String> {
    let sender = |fd| pipe::Sender::from_owned_fd(fd).map_err(|error| error.to_string());
    let (mut stdout, mut stderr) = (Some(sender(stdout)?), Some(sender(stderr)?));
    while let Some(answer) = answers.message().await.map_err(|error| CallError::from(error).to_string())? {
        write(&mut stdout, answer.stdout).await;
        write(&mut stderr, answer.stderr).await;
        if answer.exited {
            let result = answer.result.unwrap_or_default();
            return Ok(Exit {
                code: result.exit_code.into(),
                signal: result.signal.into(),
                oom_killed: result.oom_killed,
                error: None,
            });
        }
    }
    Err("the plugin does not say how the command ended".to_string())
}

/// A stream that nobody reads, or that the plugin has closed, is closed.
async fn write(to: &mut Option<pipe::Sender>, piece: Option<proto::ExecIo>) {
    let (Some(open), Some(piece)) = (to.as_mut(), piece) else { return };
    if open.write_all(&piece.data).await.is_err() || piece.close {
        *to = None;
    }
}
