//! The other side: what a plugin that is written in Rust needs to answer calls. `examples/plugin` is one.
//!
//! A plugin implements [`Service`]: one method that is given the name of a call and its requests, as bytes. [`one`] and
//! [`many`] make it typed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status, Streaming};

use crate::identify::API_VERSION;
use crate::launch::COOKIE;
use crate::proto::base::{Empty, PluginInfo, PluginType};
use crate::proto::go_plugin::{HEALTH, HealthResponse, SERVING};

/// The requests of one call; most calls have one.
pub type Requests = Streaming<Vec<u8>>;

/// The answers to a call; most calls have one.
pub type Answers = BoxStream<'static, Result<Vec<u8>, Status>>;

/// How long answers that are under way may take when the plugin has to end.
const LAST_ANSWERS: Duration = Duration::from_millis(100);

/// Sockets of one process id that are left, at most, before a plugin gives up.
const NAMES_MAX: usize = 1_000;

/// What a plugin answers.
pub trait Service: Send + Sync + 'static {
    /// `call` is a service and a method, like `hashicorp.nomad.plugins.drivers.proto.Driver/StartTask`.
    fn answer(&self, call: &str, requests: Requests) -> Answers;
}

/// Who the plugin is, as its answer to `BasePlugin/PluginInfo`.
pub fn info(kind: PluginType, name: &str, version: &str) -> PluginInfo {
    PluginInfo {
        kind: kind.into(),
        api_versions: vec![API_VERSION.to_string()],
        version: version.to_string(),
        name: name.to_string(),
    }
}

/// The answer to a call that has one request and one answer.
pub fn one<Q, A, F>(mut requests: Requests, answer: impl FnOnce(Q) -> F + Send + 'static) -> Answers
where
    Q: Message + Default + 'static,
    A: Message,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    let answered = async move {
        let request = first(&mut requests).await?;
        Ok(answer(request).await?.encode_to_vec())
    };
    stream::once(answered).boxed()
}

/// The answers to a call that has one request and many answers.
pub fn many<Q, A, S>(mut requests: Requests, answer: impl FnOnce(Q) -> S + Send + 'static) -> Answers
where
    Q: Message + Default + 'static,
    A: Message,
    S: Stream<Item = A> + Send + 'static,
{
    let begun = async move {
        match first(&mut requests).await {
            Ok(request) => answer(request).map(|answer| Ok(answer.encode_to_vec())).boxed(),
            Err(status) => stream::iter([Err(status)]).boxed(),
        }
    };
    stream::once(begun).flatten().boxed()
}

/// A call that the plugin does not have.
pub fn unimplemented(call: &str) -> Answers {
    stream::iter([Err(Status::unimplemented(format!("no call {call}")))]).boxed()
}

async fn first<Q: Message + Default>(requests: &mut Requests) -> Result<Q, Status> {
    let request = requests.message().await?.ok_or_else(|| Status::invalid_argument("no request"))?;
    Q::decode(request.as_slice()).map_err(|error| Status::invalid_argument(error.to_string()))
}

/// Answers until the agent asks the plugin to end. A program that is no child of an agent says so and does nothing.
///
/// # Errors
/// When there is no agent, or no socket can be made.
pub async fn serve(service: impl Service) -> io::Result<()> {
    if std::env::var(COOKIE.0).as_deref() != Ok(COOKIE.1) {
        return Err(io::Error::other(
            "this is a plugin: put it into plugin_dir of an agent, which starts it",
        ));
    }
    let directory = std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").map(PathBuf::from);
    let (socket, listener) = bind(&directory.unwrap_or_else(std::env::temp_dir))?;
    let mut stdout = io::stdout();
    writeln!(stdout, "1|2|unix|{}|grpc|", socket.0.display())?;
    stdout.flush()?;
    let (service, (end, mut ended)) = (Arc::new(service), watch::channel(false));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let (service, end) = (Arc::clone(&service), end.clone());
                let answer = hyper::service::service_fn(move |request| {
                    let (service, end) = (Arc::clone(&service), end.clone());
                    async move { Ok::<_, std::convert::Infallible>(answer(service, end, request).await) }
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), answer));
            }
            _ = ended.wait_for(|ended| *ended) => break,
        }
    }
    tokio::time::sleep(LAST_ANSWERS).await;
    Ok(())
}

/// Removed at the end.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A plugin that was killed leaves its socket, and another one may get its process id.
fn bind(directory: &Path) -> io::Result<(Socket, UnixListener)> {
    let mut taken = io::Error::from(io::ErrorKind::AddrInUse);
    for nth in 0..NAMES_MAX {
        let socket = directory.join(format!("plugin-{}-{nth}", std::process::id()));
        match UnixListener::bind(&socket) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken = error,
            bound => return Ok((Socket(socket), bound?)),
        }
    }
    Err(taken)
}

type HttpRequest = tonic::codegen::http::Request<hyper::body::Incoming>;
type HttpResponse = tonic::codegen::http::Response<tonic::body::Body>;

async fn answer(service: Arc<impl Service>, end: watch::Sender<bool>, request: HttpRequest) -> HttpResponse {
    let call = request.uri().path().trim_start_matches('/').to_string();
    let answering = tower::service_fn(move |request: Request<Requests>| -> BoxFuture<'static, _> {
        let requests = request.into_inner();
        let answers = match call.as_str() {
            "plugin.GRPCController/Shutdown" => {
                let end = end.clone();
                one(requests, move |_: Empty| async move {
                    end.send_replace(true);
                    Ok(Empty {})
                })
            }
            call if call.starts_with(HEALTH) => {
                one(requests, |_: Empty| async { Ok(HealthResponse { status: SERVING }) })
            }
            call => service.answer(call, requests),
        };
        Box::pin(async move { Ok(Response::new(answers)) })
    });
    tonic::server::Grpc::new(Raw).streaming(answering, request).await
}

/// Messages as bytes.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining()).to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_a_killed_plugin_left_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let (first, listener) = bind(home.path()).unwrap();
        let left = first.0.clone();
        drop(listener);
        std::mem::forget(first);
        assert!(left.exists());
        let (second, _listener) = bind(home.path()).unwrap();
        assert!(second.0 != left && second.0.exists());
    }
}
