//! The engine's own API over its socket: one connection a request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use http_body_util::{BodyExt, BodyStream, Either, Full, StreamBody};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::super::containers::Fault;

/// The oldest version of the API that has all that is asked for; newer engines accept it too.
const API: &str = "/v4.0.0/libpod";

/// What is said of an engine that does not answer.
pub const NO_ENGINE: &str = "Failed to connect to podman";

/// Of answers that are read as a whole.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

type Pieces = BoxStream<'static, std::io::Result<hyper::body::Frame<Bytes>>>;
type Body = Either<Full<Bytes>, StreamBody<Pieces>>;

/// One engine; it may come and go.
#[derive(Clone, Debug)]
pub struct Engine {
    pub socket: PathBuf,
    pub answer_timeout: Duration,
}

/// A request and what is to be known of it.
#[derive(Debug)]
pub struct Call<'a> {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(&'a str, String)>,
}

impl<'a> Call<'a> {
    pub fn get(path: impl Into<String>) -> Call<'a> {
        Call { method: Method::GET, path: path.into(), headers: Vec::new() }
    }

    pub fn post(path: impl Into<String>) -> Call<'a> {
        Call { method: Method::POST, path: path.into(), headers: Vec::new() }
    }

    pub fn delete(path: impl Into<String>) -> Call<'a> {
        Call { method: Method::DELETE, path: path.into(), headers: Vec::new() }
    }
}

/// For a query: everything else but what needs no escape.
pub fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn unreachable(error: impl std::fmt::Display) -> Fault {
    Fault::Unreached(format!("{NO_ENGINE}: {error}"))
}

impl Engine {
    /// Sends a request; an answer that says no is a fault. `patience` is how long the engine may take to begin an answer.
    async fn send(
        &self,
        call: Call<'_>,
        body: Body,
        patience: Duration,
    ) -> Result<Response<Incoming>, Fault> {
        let asked = async {
            let stream = UnixStream::connect(&self.socket).await.map_err(unreachable)?;
            let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
            let (mut sender, connection) = handshake.await.map_err(unreachable)?;
            tokio::spawn(connection.with_upgrades());
            let mut request = Request::builder().method(call.method).uri(format!("{API}{}", call.path));
            request = request.header("Host", "d");
            for (name, value) in call.headers {
                request = request.header(name, value);
            }
            let request = request.body(body).map_err(unreachable)?;
            sender.send_request(request).await.map_err(unreachable)
        };
        let late = |_| unreachable("it did not answer in time");
        let answer = timeout(patience, asked).await.map_err(late)??;
        let status = answer.status().as_u16();
        if status < 300 {
            return Ok(answer);
        }
        let bytes = timeout(self.answer_timeout, whole(answer)).await.map_err(late)??;
        let said = serde_json::from_slice::<Value>(&bytes).ok();
        let said = said.as_ref().and_then(|said| said["message"].as_str()).map(str::to_string);
        let said = said.unwrap_or_else(|| String::from_utf8_lossy(&bytes).trim().to_string());
        Err(match status {
            404 => Fault::Missing(said),
            304 | 409 => Fault::Conflict(said),
            _ => Fault::Failed(said),
        })
    }

    /// An answer as it comes.
    ///
    /// # Errors
    /// When the engine does not answer, or says no.
    pub async fn stream(
        &self,
        call: Call<'_>,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Fault> {
        let mut call = call;
        let bytes = match body {
            Some(body) => {
                call.headers.push(("Content-Type", "application/json".to_string()));
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        self.send(call, Either::Left(Full::new(bytes)), patience).await
    }

    /// # Errors
    /// When the engine does not answer in time, or says no.
    pub async fn ask(&self, call: Call<'_>, body: Option<&Value>) -> Result<Bytes, Fault> {
        self.ask_for(call, body, self.answer_timeout).await
    }

    /// The same, for requests that take their time.
    ///
    /// # Errors
    /// As [`Engine::ask`].
    pub async fn ask_for(
        &self,
        call: Call<'_>,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Bytes, Fault> {
        let answer = self.stream(call, body, patience).await?;
        let late = |_| unreachable("it did not answer in time");
        timeout(patience, whole(answer)).await.map_err(late)?
    }

    /// # Errors
    /// As [`Engine::ask`], and when the answer is not what was expected.
    pub async fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Fault> {
        let bytes = self.ask(call, None).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Fault::Failed(format!("the engine's answer cannot be read: {error}")))
    }

    /// Sends a file.
    ///
    /// # Errors
    /// When it cannot be read, or the engine does not take it.
    pub async fn upload(&self, call: Call<'_>, file: &Path, patience: Duration) -> Result<Bytes, Fault> {
        let file = tokio::fs::File::open(file).await.map_err(|error| Fault::Failed(error.to_string()))?;
        let pieces = tokio_util::io::ReaderStream::new(file).map(|piece| piece.map(hyper::body::Frame::data));
        let answer = self.send(call, Either::Right(StreamBody::new(pieces.boxed())), patience).await?;
        let late = |_| unreachable("it did not answer in time");
        timeout(self.answer_timeout, whole(answer)).await.map_err(late)?
    }
}

async fn whole(answer: Response<Incoming>) -> Result<Bytes, Fault> {
    let limited = http_body_util::Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
    limited.collect().await.map(|all| all.to_bytes()).map_err(unreachable)
}

/// The lines of an answer as they come.
pub fn lines(answer: Response<Incoming>) -> impl Stream<Item = Result<String, Fault>> + Send {
    let pieces = BodyStream::new(answer.into_body()).filter_map(|frame| async {
        match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(std::io::Error::other(error))),
        }
    });
    let reader = tokio_util::io::StreamReader::new(Box::pin(pieces));
    let lines = tokio::io::AsyncBufReadExt::lines(reader);
    futures_util::stream::unfold(lines, |mut lines| async move {
        let line = lines.next_line().await.map_err(unreachable).transpose()?;
        Some((line, lines))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(escaped("a/b:1 {}~"), "a%2Fb%3A1%20%7B%7D~");
    }
}
