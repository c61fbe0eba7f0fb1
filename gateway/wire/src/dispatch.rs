//! Answers the calls that arrive on streams.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::frames::{self, Duplex, Opening};
use crate::protocol::{NO_BODY, RPC, RequestHeader, ResponseHeader, STREAMING};
use crate::values::Values;
use crate::yamux::{Incoming, Stream};
use crate::{Connection, HEADER_MAX, RemoteError, RpcError};

/// Answers calls. Its futures are dropped when the caller hangs up or the connection ends, so what must not
/// stop half-way belongs in a task of its own.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call: an encoded request in, an encoded response out.
    ///
    /// The handler rejects unknown methods.
    fn call(
        &self,
        connection: &Connection,
        method: &str,
        body: Bytes,
    ) -> impl Future<Output = Result<Vec<u8>, RemoteError>> + Send;

    /// Answers one streaming call, which ends when the future does. Its error goes to the log.
    fn stream(
        &self,
        connection: &Connection,
        method: &str,
        opening: Opening,
    ) -> impl Future<Output = Result<(), RpcError>> + Send;
}

/// How the streams of a connection say what they carry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StreamKind {
    /// By a first byte each.
    Announced,
    /// Not at all: calls only.
    Calls,
}

/// Answers every stream the peer opens, until the connection ends; what is still being answered ends with it.
pub(crate) async fn serve_streams<H: Handler>(
    connection: Connection,
    mut incoming: Incoming,
    handler: Arc<H>,
    kind: StreamKind,
) {
    // Bounded by the streams a connection may have.
    let mut answering = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = incoming.accept() => stream,
            Some(_) = answering.join_next() => continue,
        };
        let Some(stream) = stream else { return };
        let (connection, handler) = (connection.clone(), Arc::clone(&handler));
        answering.spawn(async move {
            let outcome = serve_stream(stream, &connection, &*handler, kind).await;
            log_end(&connection, outcome);
        });
    }
}

pub(crate) fn log_end(connection: &Connection, outcome: Result<(), RpcError>) {
    match outcome {
        Ok(()) => {}
        // The other end leaving is how most streams end.
        Err(RpcError::Io(error)) => tracing::debug!(peer = %connection.peer(), %error, "rpc stream ended"),
        Err(error) => tracing::warn!(peer = %connection.peer(), %error, "rpc stream failed"),
    }
}

async fn serve_stream<H: Handler>(
    mut stream: Stream,
    connection: &Connection,
    handler: &H,
    kind: StreamKind,
) -> Result<(), RpcError> {
    let first = match kind {
        StreamKind::Announced => stream.read_u8().await?,
        StreamKind::Calls => RPC,
    };
    match first {
        RPC => answer_calls(stream, connection, handler).await,
        STREAMING => answer_stream(stream, connection, handler).await,
        _ => Err(RpcError::Protocol("unknown kind of stream")),
    }
}

/// Answers call after call, one at a time, until the peer ends the stream.
pub(crate) async fn answer_calls<S, H>(io: S, connection: &Connection, handler: &H) -> Result<(), RpcError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    let (body_max, body_wait) = (connection.limits().body_max, connection.limits().body_wait);
    let mut values = Values::new(io);
    while let Some(header) = values.read(HEADER_MAX).await? {
        let header: RequestHeader = msgpack::from_slice(&header)?;
        let read = values.expect_within(body_max, connection.bodies());
        let late = |_| Err(RpcError::BodyLate(body_wait));
        let body = match timeout(body_wait, read).await.unwrap_or_else(late) {
            Err(error @ (RpcError::TooLarge { .. } | RpcError::Busy | RpcError::BodyLate(_))) => {
                // The rest of the body cannot be skipped cheaply, so the stream ends with the error.
                reply(&mut values, header, Err(error.to_string().into()), body_max).await?;
                return Err(error);
            }
            body => body?,
        };
        let answer = tokio::select! {
            answer = contained(handler.call(connection, &header.service_method, body)) => {
                answer.unwrap_or_else(|| Err(failed(connection, &header.service_method)))
            }
            () = values.hung_up() => return Ok(()),
        };
        reply(&mut values, header, answer, body_max).await?;
    }
    Ok(())
}

/// `None` if the call panics: that ends the call, and nothing else.
async fn contained<T>(call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

fn failed(connection: &Connection, method: &str) -> RemoteError {
    tracing::error!(peer = %connection.peer(), method, "a call panicked");
    RemoteError::other("the server failed while it answered: its log says how")
}

async fn reply<S: AsyncWrite + Unpin>(
    values: &mut Values<S>,
    request: RequestHeader,
    answer: Result<Vec<u8>, RemoteError>,
    body_max: usize,
) -> Result<(), RpcError> {
    let (error, body) = match answer {
        Ok(body) if body.len() <= body_max => (String::new(), body),
        Ok(body) => (RpcError::TooLarge { least: body.len() as u64, max: body_max }.to_string(), Vec::new()),
        Err(error) => (error.to_string(), Vec::new()),
    };
    let body = if error.is_empty() { &body[..] } else { &NO_BODY };
    let RequestHeader { service_method, seq } = request;
    let header = msgpack::to_vec(&ResponseHeader { service_method, seq, error })?;
    values.write(&[&header, body]).await
}

pub(crate) async fn answer_stream<S, H>(io: S, connection: &Connection, handler: &H) -> Result<(), RpcError>
where
    S: Duplex + 'static,
    H: Handler,
{
    let (method, opening) = frames::requested(Values::new(io)).await?;
    handler.stream(connection, &method, opening).await
}
