//! Commands inside a container: their streams are the connection on which the engine was asked to start them.

use bollard::container::LogOutput;
use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::super::containers::Fault;
use super::super::containers::exec::{Command, CommandStatus, attach};
use super::engine::{Call, Engine};
use crate::driver::{Exec, ExecConfig, ExecError};

/// Before each piece of output: which stream it is of, three bytes of nothing, and its length.
const HEADER_BYTES: usize = 8;

/// No piece is longer; the engine sends at most some 32 KiB.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

pub async fn exec(engine: &Engine, container: &str, config: ExecConfig) -> Result<Exec, ExecError> {
    let failed = |error: Fault| match error {
        Fault::Unreached(text) => ExecError::Failed(text),
        other => ExecError::Refused(other.to_string()),
    };
    let tty = config.tty;
    let create = json!({
        "Cmd": config.command, "AttachStdin": true, "AttachStdout": true, "AttachStderr": true, "Tty": tty
    });
    let made = engine.ask(Call::post(format!("/containers/{container}/exec")), Some(&create)).await;
    let made: Value = serde_json::from_slice(&made.map_err(failed)?).map_err(ExecError::failed)?;
    let id = made["Id"].as_str().ok_or_else(|| ExecError::failed("the engine names no command"))?.to_string();
    let mut call = Call::post(format!("/exec/{id}/start"));
    call.headers = vec![("Connection", "Upgrade".to_string()), ("Upgrade", "tcp".to_string())];
    let start = json!({"Detach": false, "Tty": tty});
    let answer = engine.stream(call, Some(&start), engine.answer_timeout).await.map_err(failed)?;
    let connection = hyper::upgrade::on(answer).await.map_err(ExecError::failed)?;
    let (output, input) = tokio::io::split(TokioIo::new(connection));
    let started = Started { engine: engine.clone(), id, container: container.to_string() };
    attach(started, Box::pin(pieces(output, tty)), input, tty)
}

/// The output, piece by piece.
fn pieces(
    output: impl AsyncRead + Send + Unpin,
    tty: bool,
) -> impl Stream<Item = std::io::Result<LogOutput>> + Send {
    stream::unfold((output, BytesMut::new()), move |(mut output, mut read)| async move {
        loop {
            if let Some(piece) = take(&mut read, tty) {
                return Some((piece, (output, read)));
            }
            match output.read_buf(&mut read).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some((Err(error), (output, read))),
            }
        }
    })
}

/// None until a whole piece was read.
fn take(read: &mut BytesMut, tty: bool) -> Option<std::io::Result<LogOutput>> {
    if tty {
        let message = read.split().freeze();
        return (!message.is_empty()).then_some(Ok(LogOutput::Console { message }));
    }
    let header: [u8; HEADER_BYTES] = read.get(..HEADER_BYTES)?.try_into().ok()?;
    let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if length > PIECE_BYTES_MAX {
        return Some(Err(std::io::Error::other("the engine sends what is no output")));
    }
    if read.len() < HEADER_BYTES + length {
        return None;
    }
    read.advance(HEADER_BYTES);
    let message: Bytes = read.split_to(length).freeze();
    Some(Ok(if header[0] == 2 { LogOutput::StdErr { message } } else { LogOutput::StdOut { message } }))
}

#[derive(Clone)]
struct Started {
    engine: Engine,
    id: String,
    container: String,
}

impl Command for Started {
    fn container(&self) -> &str {
        &self.container
    }

    async fn status(&self) -> Result<CommandStatus, String> {
        let found: Value = self
            .engine
            .read(Call::get(format!("/exec/{}/json", self.id)))
            .await
            .map_err(|error| error.to_string())?;
        Ok(CommandStatus {
            is_running: found["Running"].as_bool() == Some(true),
            exit_code: found["ExitCode"].as_i64(),
            pid: found["Pid"].as_i64(),
        })
    }

    async fn resize(&self, size: api::TtySize) -> Result<(), String> {
        let path = format!("/exec/{}/resize?h={}&w={}", self.id, size.height, size.width);
        self.engine.ask(Call::post(path), None).await.map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_taken_apart_whole_pieces_at_a_time() {
        let mut read = BytesMut::from(&b"\x01\0\0\0\0\0\0\x04out\n\x02\0\0\0\0\0\0\x04er"[..]);
        let of = |taken: Option<std::io::Result<LogOutput>>| taken.map(Result::unwrap);
        let first = of(take(&mut read, false));
        assert!(matches!(first, Some(LogOutput::StdOut { message }) if message == "out\n"));
        assert!(take(&mut read, false).is_none());
        read.extend_from_slice(b"r\n");
        assert!(
            matches!(of(take(&mut read, false)), Some(LogOutput::StdErr { message }) if message == "err\n")
        );
        let mut wrong = BytesMut::from(&b"\x01\0\0\0\xff\0\0\x04"[..]);
        assert!(take(&mut wrong, false).unwrap().is_err());
    }
}
