//! Streaming calls: a handshake, then messages of the method's own, both ways, until either end stops.

use std::io::Cursor;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tls::TlsStream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::TcpStream;

use crate::protocol::{StreamAck, StreamHeader};
use crate::values::Values;
use crate::yamux::{Gone, Stream};
use crate::{HEADER_MAX, RemoteError, RpcError, STREAM_VALUE_MAX};

/// What carries a streaming call.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {
    /// Resolves when the peer has left, where that is known before everything it sent was read.
    fn gone(&self) -> Option<Gone> {
        None
    }
}

impl Duplex for Stream {
    fn gone(&self) -> Option<Gone> {
        Some(Stream::gone(self))
    }
}

impl Duplex for TcpStream {}
impl Duplex for TlsStream<TcpStream> {}
impl Duplex for DuplexStream {}

pub(crate) type Io = Box<dyn Duplex>;

impl Duplex for Io {
    fn gone(&self) -> Option<Gone> {
        (**self).gone()
    }
}

/// An open streaming call. Dropping it ends both directions.
pub struct Frames {
    receiver: FrameReceiver,
    sender: FrameSender,
}

/// The receiving half of a streaming call.
pub struct FrameReceiver(Values<ReadHalf<Io>>);

/// The sending half of a streaming call.
pub struct FrameSender {
    io: WriteHalf<Io>,
    gone: Option<Gone>,
}

/// Resolves when the peer of a streaming call has finished or left.
pub struct PeerGone(Option<Gone>);

impl PeerGone {
    /// Returns then, also while what the peer sent before is still unread: for those who cannot read on. Never on a
    /// connection that is not multiplexed, where only reading shows it.
    pub async fn wait(&self) {
        match &self.0 {
            Some(gone) => gone.wait().await,
            None => std::future::pending().await,
        }
    }
}

impl Frames {
    fn new<S: Duplex + 'static>(values: Values<S>) -> Frames {
        let gone = values.io().gone();
        let (values, io) = values.map_io(|io| Box::new(io) as Io).divide(tokio::io::split);
        Frames { receiver: FrameReceiver(values), sender: FrameSender { io, gone } }
    }

    /// Both ends of a streaming call within one process. `bytes_max` of them may be under way in each direction.
    pub fn pair(bytes_max: usize) -> (Frames, Frames) {
        let (one, other) = tokio::io::duplex(bytes_max);
        (Frames::new(Values::new(one)), Frames::new(Values::new(other)))
    }

    /// See [`FrameSender::send`].
    ///
    /// # Errors
    /// When the peer has left.
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), RpcError> {
        self.sender.send(message).await
    }

    /// See [`FrameReceiver::receive`].
    ///
    /// # Errors
    /// As there.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RpcError> {
        self.receiver.receive().await
    }

    /// The bytes under the messages, for a method that speaks another protocol.
    pub fn into_io(self) -> impl AsyncRead + AsyncWrite + Send + Unpin + 'static {
        let (read_ahead, reader) = self.receiver.0.into_parts();
        tokio::io::join(Cursor::new(read_ahead).chain(reader), self.sender.io)
    }

    /// Both halves, for sending and receiving at the same time.
    pub fn split(self) -> (FrameSender, FrameReceiver) {
        (self.sender, self.receiver)
    }
}

impl FrameReceiver {
    /// The next message; `None` when the peer has finished.
    ///
    /// # Errors
    /// When the connection failed, the message is larger than [`STREAM_VALUE_MAX`] or of another shape.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RpcError> {
        match self.receive_raw().await? {
            Some(bytes) => Ok(Some(msgpack::from_slice(&bytes)?)),
            None => Ok(None),
        }
    }

    /// The next message as it is on the wire, for passing it on. Safe to cancel.
    ///
    /// # Errors
    /// As for [`FrameReceiver::receive`].
    pub async fn receive_raw(&mut self) -> Result<Option<Bytes>, RpcError> {
        self.0.read(STREAM_VALUE_MAX).await
    }
}

impl FrameSender {
    /// Sends a message; waits while the peer does not keep up.
    ///
    /// # Errors
    /// When the peer has left.
    pub async fn send<T: Serialize + ?Sized>(&mut self, message: &T) -> Result<(), RpcError> {
        self.send_raw(&msgpack::to_vec(message)?).await
    }

    /// Sends one encoded message.
    ///
    /// # Errors
    /// When the peer has left.
    pub async fn send_raw(&mut self, message: &[u8]) -> Result<(), RpcError> {
        self.io.write_all(message).await?;
        Ok(self.io.flush().await?)
    }

    /// No more messages from this end; the peer may go on.
    ///
    /// # Errors
    /// When the connection failed.
    pub async fn finish(&mut self) -> Result<(), RpcError> {
        Ok(self.io.shutdown().await?)
    }

    /// Resolves when the peer has left. To be called once.
    pub fn peer_gone(&mut self) -> PeerGone {
        PeerGone(self.gone.take())
    }
}

/// A streaming call that the peer asked for, not yet accepted. Dropping it ends the stream without an answer.
pub struct Opening(Frames);

impl Opening {
    /// Accepts it.
    ///
    /// # Errors
    /// When the peer has left.
    pub async fn accept(mut self) -> Result<Frames, RpcError> {
        self.0.send(&StreamAck::default()).await?;
        Ok(self.0)
    }

    /// Rejects it with a reason that the peer's caller sees.
    ///
    /// # Errors
    /// When the peer has left.
    pub async fn refuse(mut self, reason: impl Into<RemoteError>) -> Result<(), RpcError> {
        self.0.send(&StreamAck { error: reason.into().to_string() }).await?;
        self.0.sender.finish().await
    }
}

/// Asks for a streaming call over a fresh stream.
pub(crate) async fn request<S>(mut values: Values<S>, method: &str) -> Result<Frames, RpcError>
where
    S: Duplex + 'static,
{
    let header = msgpack::to_vec(&StreamHeader { method: method.to_string() })?;
    values.write(&[&header]).await?;
    let ack: StreamAck = msgpack::from_slice(&values.expect(HEADER_MAX).await?)?;
    if ack.error.is_empty() { Ok(Frames::new(values)) } else { Err(RemoteError::read(&ack.error).into()) }
}

/// Reads what streaming call the peer asks for.
pub(crate) async fn requested<S>(mut values: Values<S>) -> Result<(String, Opening), RpcError>
where
    S: Duplex + 'static,
{
    let header: StreamHeader = msgpack::from_slice(&values.expect(HEADER_MAX).await?)?;
    Ok((header.method, Opening(Frames::new(values))))
}
