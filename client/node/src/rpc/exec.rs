//! `Allocations.Exec`: a command inside a task, and the frames between it and its caller.

use std::future::Future;
use std::io;
use std::time::Duration;

use api::{ExecData, ExecOutput, ExecResult, TtySize};
use executor::Exit;
use model::document::Allocation;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use wire::messages::{AllocExecRequest, ExecInputFrame, ExecStdin, ExecTtySize, StreamFrameWrapper};
use wire::{FrameReceiver, FrameSender, Frames, Opening, RemoteError, RemoteErrorKind, RpcError};

use super::Endpoints;
use crate::driver::exec::{Output, Stdin, Terminal};
use crate::driver::{Exec, ExecConfig, ExecError};
use crate::task::events::RUNNING;
use crate::task::parts::TaskParts;

/// Commands inside all tasks of this node at once; more are rejected. Each holds a few descriptors here and two
/// threads at the executor of its task.
pub const EXECS_MAX: usize = 128;

/// Output of one frame at most.
const CHUNK_BYTES: usize = 32 * 1024;

/// Pieces of input that are held for a command which does not read; then the caller waits too.
const INPUT_MAX: usize = 8;

/// How long output may still come after the command ended: a process that it started may hold the stream open.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);

/// Most output that is passed on after the end of the command. More than a pipe holds, so nothing of its own is
/// lost; less than for ever.
const AFTER_EXIT_BYTES_MAX: usize = 1024 * 1024;

impl Endpoints {
    pub(super) async fn exec(&self, opening: Opening) -> Result<(), RpcError> {
        let Ok(_place) = self.execs.try_acquire() else {
            let text = format!("this node runs {EXECS_MAX} commands already");
            return opening.refuse(RemoteError::new(RemoteErrorKind::Status(429), text)).await;
        };
        let mut frames = opening.accept().await?;
        let Some(request) = frames.receive::<AllocExecRequest>().await? else { return Ok(()) };
        match self.start_exec(request).await {
            Ok(exec) => relay(frames, exec).await,
            Err(wrapper) => super::serve::refuse(frames, wrapper).await,
        }
    }

    async fn start_exec(&self, request: AllocExecRequest) -> Result<Exec, StreamFrameWrapper> {
        let refused = |code, text: String| Err(StreamFrameWrapper::failure(code, text));
        if self.local.context.settings.disable_remote_exec {
            let text = "this node runs no commands in its tasks: client.disable_remote_exec is set";
            return refused(403, text.to_string());
        }
        let alloc = self.alloc(&request.alloc_id);
        let alloc = alloc.map_err(|error| StreamFrameWrapper::failure(404, error.message))?;
        let task = request.task;
        if task.is_empty() {
            return refused(400, "task name is not present".to_string());
        }
        if request.cmd.first().is_none_or(String::is_empty) {
            return refused(400, "command is not present".to_string());
        }
        let Some(state) = alloc.tasks.state(&task) else {
            return refused(400, format!("unknown task name \"{task}\""));
        };
        let running = alloc.tasks.running(&task).filter(|_| state.state == RUNNING);
        let Some(running) = running else { return refused(404, format!("task \"{task}\" is not running.")) };
        let config = ExecConfig { command: request.cmd.0, tty: request.tty };
        let driver = driver_of(&alloc.alloc.borrow(), &task);
        let exec = async {
            self.local.context.drivers.check_exec(&driver)?;
            running.exec(config).await
        };
        exec.await.map_err(|error| {
            let code = if matches!(error, ExecError::Refused(_)) { 400 } else { 500 };
            StreamFrameWrapper::failure(code, error.to_string())
        })
    }
}

/// The name of the driver of a task.
fn driver_of(alloc: &Allocation, task: &str) -> String {
    TaskParts::find(alloc, task).map_or(String::new(), |parts| parts.task.driver.clone())
}

/// Passes frames on until the command has ended or its caller has disconnected, which ends the command.
async fn relay(frames: Frames, exec: Exec) -> Result<(), RpcError> {
    let (mut to, from) = frames.split();
    let gone = to.peer_gone();
    let Exec { stdin, stdout, stderr, terminal, exit } = exec;
    let mut outputs = Outputs { to: &mut to, stdout: Some(stdout), stderr, after_exit: 0 };
    let ended = tokio::select! {
        ended = outputs.pass_on(exit) => ended?,
        error = take_input(from, stdin, terminal) => return error,
        () = gone.wait() => return Ok(()),
    };
    let last = match ended {
        Ok(exit) => message(&ExecOutput {
            exited: true,
            result: Some(ExecResult { exit_code: exit.code }),
            ..ExecOutput::default()
        }),
        Err(text) => StreamFrameWrapper::failure(500, text),
    };
    to.send(&last).await?;
    to.finish().await
}

/// Passes the input of the caller to the command, until the caller disconnects.
async fn take_input(
    mut from: FrameReceiver,
    stdin: Stdin,
    terminal: Option<Terminal>,
) -> Result<(), RpcError> {
    let (pieces, waiting) = mpsc::channel(INPUT_MAX);
    let listen = async {
        let mut pieces = Some(pieces);
        while let Some(input) = from.receive::<ExecInputFrame>().await? {
            if let (Some(size), Some(terminal)) = (input.tty_size, &terminal)
                && let Err(error) = terminal.resize(window(size))
            {
                tracing::debug!(%error, "a terminal was not resized");
            }
            let Some(ExecStdin { data, close }) = input.stdin else { continue };
            if let Some(pieces) = &pieces
                && !data.0.is_empty()
            {
                // A command that reads no more is not an error of its caller.
                pieces.send(data.0).await.ok();
            }
            if close {
                pieces = None;
            }
        }
        Ok(())
    };
    let feed = async {
        feed(stdin, waiting).await;
        std::future::pending().await
    };
    tokio::select! {
        left = listen => left,
        never = feed => never,
    }
}

/// The nearest size that a terminal can have.
fn window(size: ExecTtySize) -> TtySize {
    let characters = |count: i64| count.clamp(0, u16::MAX.into()) as u16;
    TtySize { height: characters(size.height), width: characters(size.width) }
}

async fn feed(mut stdin: Stdin, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(piece) = waiting.recv().await {
        if stdin.write(&piece).await.is_err() {
            return;
        }
    }
    stdin.end().await.ok();
}

/// The output of a command on its way to the caller.
struct Outputs<'a> {
    to: &'a mut FrameSender,
    stdout: Option<Output>,
    stderr: Option<Output>,
    /// Bytes passed on since the command ended; before that, since it began.
    after_exit: usize,
}

impl Outputs<'_> {
    /// Passes on what comes, as fast as it is taken, and returns how the command ended.
    async fn pass_on(
        &mut self,
        exit: impl Future<Output = Result<Exit, String>>,
    ) -> Result<Result<Exit, String>, RpcError> {
        let mut exit = std::pin::pin!(exit);
        let mut ended: Option<Result<Exit, String>> = None;
        let mut deadline = Instant::now();
        let (mut out, mut err) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        loop {
            tokio::select! {
                // Output is sent before the exit.
                biased;
                read = read(&mut self.stdout, &mut out) => self.send_stdout(read, &out).await?,
                read = read(&mut self.stderr, &mut err) => self.send_stderr(read, &err).await?,
                end = &mut exit, if ended.is_none() => {
                    ended = Some(end);
                    self.after_exit = 0;
                    deadline = Instant::now() + OUTPUT_LINGER;
                }
                () = sleep_until(deadline), if ended.is_some() => self.close().await?,
            }
            if ended.is_some() && self.after_exit >= AFTER_EXIT_BYTES_MAX {
                self.close().await?;
            }
            if let Some(ended) = ended.take_if(|_| self.stdout.is_none() && self.stderr.is_none()) {
                return Ok(ended);
            }
        }
    }

    async fn send_stdout(&mut self, read: io::Result<usize>, chunk: &[u8]) -> Result<(), RpcError> {
        let data = self.piece(read, chunk);
        if data.close {
            self.stdout = None;
        }
        self.to.send(&message(&ExecOutput { stdout: Some(data), ..ExecOutput::default() })).await
    }

    async fn send_stderr(&mut self, read: io::Result<usize>, chunk: &[u8]) -> Result<(), RpcError> {
        let data = self.piece(read, chunk);
        if data.close {
            self.stderr = None;
        }
        self.to.send(&message(&ExecOutput { stderr: Some(data), ..ExecOutput::default() })).await
    }

    /// A stream that cannot be read has ended.
    fn piece(&mut self, read: io::Result<usize>, chunk: &[u8]) -> ExecData {
        let length = read.unwrap_or(0);
        self.after_exit += length;
        if length == 0 { ExecData::end() } else { ExecData::piece(&chunk[..length]) }
    }

    /// Reads no further.
    async fn close(&mut self) -> Result<(), RpcError> {
        if self.stdout.is_some() {
            self.send_stdout(Ok(0), &[]).await?;
        }
        if self.stderr.is_some() {
            self.send_stderr(Ok(0), &[]).await?;
        }
        Ok(())
    }
}

async fn read(from: &mut Option<Output>, chunk: &mut [u8]) -> io::Result<usize> {
    match from {
        Some(from) => from.read(chunk).await,
        None => std::future::pending().await,
    }
}

fn message(output: &ExecOutput) -> StreamFrameWrapper {
    StreamFrameWrapper::content(serde_json::to_vec(output).expect("output has no failing parts"))
}
