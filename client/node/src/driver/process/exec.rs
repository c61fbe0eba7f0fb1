//! Commands inside a task with an executor: that runs them, and gets their streams from us.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

use executor::Exit;
use executor::spec::{self, ExecSpec, ExecutorRequest, ExecutorResponse};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::ANSWER_TIMEOUT;
use crate::driver::exec::{CommandEnds, Exec, ExecConfig, ExecError, streams};

/// # Errors
/// When the executor cannot be reached, or does not run the command.
pub async fn exec(directory: &Path, config: ExecConfig) -> Result<Exec, ExecError> {
    let (ours, theirs) = streams(config.tty).map_err(ExecError::failed)?;
    let wanted = ExecSpec { command: config.command, tty: config.tty };
    let begin = async {
        let mut executor = ask(directory, wanted).await?;
        match answer(&mut executor).await? {
            ExecutorResponse::Ready => {}
            ExecutorResponse::Failed(text) => return Err(ExecError::Refused(text)),
            other => return Err(ExecError::Failed(format!("the executor answered {other:?}"))),
        }
        hand_over(executor.get_ref(), &theirs).await.map_err(ExecError::failed)?;
        Ok(executor)
    };
    let late = |_| Err(ExecError::failed("the executor does not answer"));
    let mut executor = timeout(ANSWER_TIMEOUT, begin).await.unwrap_or_else(late)?;
    // Only the command holds them now, so that their end is its end.
    drop(theirs);
    let exit = async move {
        match answer(&mut executor).await {
            Ok(
                ExecutorResponse::Exited(Exit { error: Some(error), .. }) | ExecutorResponse::Failed(error),
            ) => Err(error),
            Ok(ExecutorResponse::Exited(exit)) => Ok(exit),
            Ok(other) => Err(format!("the executor answered {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    };
    let (stdin, stdout, stderr, terminal) = (ours.stdin, ours.stdout, ours.stderr, ours.terminal);
    Ok(Exec { stdin, stdout, stderr, terminal, exit: Box::pin(exit) })
}

async fn ask(directory: &Path, wanted: ExecSpec) -> Result<BufReader<UnixStream>, ExecError> {
    let unreachable = |error| ExecError::Failed(format!("the executor cannot be reached: {error}"));
    let (_handle, path) = spec::socket_path(directory).map_err(unreachable)?;
    let mut stream = UnixStream::connect(path).await.map_err(unreachable)?;
    let mut line = serde_json::to_vec(&ExecutorRequest::Exec(wanted)).map_err(ExecError::failed)?;
    line.push(b'\n');
    stream.write_all(&line).await.map_err(unreachable)?;
    Ok(BufReader::new(stream))
}

async fn answer(executor: &mut BufReader<UnixStream>) -> Result<ExecutorResponse, ExecError> {
    let mut line = String::new();
    executor.read_line(&mut line).await.map_err(ExecError::failed)?;
    if line.is_empty() {
        return Err(ExecError::failed("the executor of the task is gone"));
    }
    serde_json::from_str(&line).map_err(ExecError::failed)
}

/// One byte, and the streams with it.
async fn hand_over(executor: &UnixStream, CommandEnds(streams): &CommandEnds) -> std::io::Result<()> {
    let send = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let handed = streams.each_ref().map(AsFd::as_fd);
        assert!(control.push(SendAncillaryMessage::ScmRights(&handed)), "there is room for three streams");
        sendmsg(executor, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
        Ok(())
    };
    executor.async_io(Interest::WRITABLE, send).await
}
