//! A command that is run inside a task: its three streams, its terminal if it has one, and its exit.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use executor::Exit;
use futures_util::future::BoxFuture;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{SpecialCodeIndex, Winsize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::RunningTask;

/// What to run.
#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// On a terminal of its own.
    pub tty: bool,
}

/// Why a command was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The request is wrong.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

impl ExecError {
    pub fn failed(error: impl std::fmt::Display) -> ExecError {
        ExecError::Failed(error.to_string())
    }
}

pub type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A command that runs. Dropping `exit` ends it with all it has started.
pub struct Exec {
    pub stdin: Stdin,
    pub stdout: Output,
    /// A terminal has but one output.
    pub stderr: Option<Output>,
    pub terminal: Option<Terminal>,
    /// How it ended, or why that is not known.
    pub exit: BoxFuture<'static, Result<Exit, String>>,
}

/// What a command has written and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutput {
    /// The first [`OUTPUT_BYTES_MAX`] bytes, as of `stderr`.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Exit,
}

/// Output of a command that is kept by [`run_once`]; the rest is read and thrown away.
pub const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

/// Runs a command inside a task to its end, without input.
///
/// # Errors
/// When it cannot be run, or has not ended after `timeout`, which ends it.
pub async fn run_once(
    task: &dyn RunningTask,
    command: Vec<String>,
    timeout: Duration,
) -> Result<ExecOutput, ExecError> {
    let run = async {
        let Exec { stdin, stdout, stderr, terminal: _, exit } =
            task.exec(ExecConfig { command, tty: false }).await?;
        drop(stdin);
        let stderr = async {
            match stderr {
                Some(stderr) => collect(stderr).await,
                None => Ok(Vec::new()),
            }
        };
        let (stdout, stderr, exit) = tokio::join!(collect(stdout), stderr, exit);
        let exit = exit.map_err(ExecError::Failed)?;
        Ok(ExecOutput {
            stdout: stdout.map_err(ExecError::failed)?,
            stderr: stderr.map_err(ExecError::failed)?,
            exit,
        })
    };
    match tokio::time::timeout(timeout, run).await {
        Ok(output) => output,
        Err(_) => Err(ExecError::failed("the command did not end in time")),
    }
}

async fn collect(mut from: Output) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut from).take(OUTPUT_BYTES_MAX).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}

/// Where a command reads from.
pub enum Stdin {
    Pipe(pipe::Sender),
    Terminal(pipe::Sender),
    /// A command that is run by somebody else, and what ends its input before the pipe is closed.
    Remote {
        to: pipe::Sender,
        end: &'static [u8],
    },
    /// Nobody reads what is written.
    Discarded,
}

impl Stdin {
    /// Waits while the command does not read.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub async fn write(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Stdin::Pipe(to) | Stdin::Terminal(to) | Stdin::Remote { to, .. } => to.write_all(data).await,
            Stdin::Discarded => Ok(()),
        }
    }

    /// Nothing more comes. A terminal gets the character that a user would type.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub async fn end(self) -> io::Result<()> {
        match self {
            Stdin::Terminal(mut terminal) => {
                let code = end_of_file(&terminal)?;
                terminal.write_all(&code).await
            }
            Stdin::Remote { mut to, end } => to.write_all(end).await,
            Stdin::Pipe(_) | Stdin::Discarded => Ok(()),
        }
    }
}

/// The ends of a command's streams that the command gets.
pub struct CommandEnds(pub [OwnedFd; 3]);

/// The ends that the agent has.
pub struct AgentEnds {
    pub stdin: Stdin,
    pub stdout: Output,
    pub stderr: Option<Output>,
    pub terminal: Option<Terminal>,
}

/// # Errors
/// When the system has no more of them.
pub fn streams(tty: bool) -> io::Result<(AgentEnds, CommandEnds)> {
    if tty { terminal() } else { pipes() }
}

fn pipes() -> io::Result<(AgentEnds, CommandEnds)> {
    let ((stdin, to), (from_out, stdout), (from_err, stderr)) = (io::pipe()?, io::pipe()?, io::pipe()?);
    let receiver =
        |pipe: io::PipeReader| Ok::<Output, io::Error>(Box::new(pipe::Receiver::from_owned_fd(pipe.into())?));
    let ours = AgentEnds {
        stdin: Stdin::Pipe(pipe::Sender::from_owned_fd(to.into())?),
        stdout: receiver(from_out)?,
        stderr: Some(receiver(from_err)?),
        terminal: None,
    };
    Ok((ours, CommandEnds([stdin.into(), stdout.into(), stderr.into()])))
}

fn terminal() -> io::Result<(AgentEnds, CommandEnds)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, flags)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    // A terminal is read and written like a pipe; that its reading fails at the end is an end all the same.
    let ours = AgentEnds {
        stdin: Stdin::Terminal(pipe::Sender::from_owned_fd_unchecked(master.try_clone()?)?),
        stdout: Box::new(pipe::Receiver::from_owned_fd_unchecked(master.try_clone()?)?),
        stderr: None,
        terminal: Some(Terminal::Here(master)),
    };
    Ok((ours, CommandEnds([slave.try_clone()?, slave.try_clone()?, slave])))
}

/// A command's terminal, to change its size. One that is here is closed for the command when all ends of the agent are
/// dropped.
pub enum Terminal {
    Here(OwnedFd),
    /// Somebody else has it, and takes over each new size.
    Remote(watch::Sender<Option<api::TtySize>>),
}

impl Terminal {
    /// Sets the size of the command's window.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resize(&self, size: api::TtySize) -> io::Result<()> {
        match self {
            Terminal::Here(terminal) => {
                let size = Winsize { ws_row: size.height, ws_col: size.width, ws_xpixel: 0, ws_ypixel: 0 };
                Ok(rustix::termios::tcsetwinsize(terminal, size)?)
            }
            Terminal::Remote(sizes) => {
                sizes.send_replace(Some(size));
                Ok(())
            }
        }
    }
}

/// The end of input on a terminal: twice, because within a line the first one only sends that line.
fn end_of_file(terminal: &impl AsFd) -> io::Result<[u8; 2]> {
    let settings = rustix::termios::tcgetattr(terminal)?;
    Ok([settings.special_codes[SpecialCodeIndex::VEOF]; 2])
}
