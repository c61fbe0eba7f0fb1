//! Many streams over one connection, opened from both ends.
//!
//! `frame.rs` is the format, `state.rs` the machine, this file the task that owns the socket and the streams
//! that share the machine with it. Stream ids are odd from the dialer, even from the listener.

mod frame;
mod state;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};

use frame::{HEADER_LEN, Header};
pub use state::{BACKLOG_MAX, STREAMS_MAX};
use state::{OUT_HARD_MAX, State, WINDOW};

/// How often a silent connection is tried.
pub const PING_EVERY: Duration = Duration::from_secs(30);

/// How long the socket may take no byte, or a ping have no answer, before the peer counts as gone.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the socket is read in.
const READ_BUFFER: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Dialed: opens odd streams.
    Client,
    /// Was dialed: opens even streams.
    Server,
}

/// Why a connection or a stream ended, or could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MuxError {
    #[error("connection closed")]
    Closed,
    #[error("connection closed by the peer (EOF)")]
    PeerGone,
    #[error("connection failed: {0}")]
    Io(io::ErrorKind),
    #[error("peer does not answer")]
    Silent,
    #[error("peer broke the protocol: {0}")]
    Protocol(&'static str),
    #[error("peer ended the connection with code {0}")]
    GoAway(u32),
    #[error("stream closed by the peer (reset)")]
    Reset,
    #[error("peer accepts no new streams")]
    Refused,
    #[error("connection carries too many streams")]
    Busy,
    #[error("connection has used up its stream ids")]
    Exhausted,
}

impl From<MuxError> for io::Error {
    fn from(error: MuxError) -> io::Error {
        let kind = match error {
            MuxError::Closed | MuxError::PeerGone => io::ErrorKind::BrokenPipe,
            MuxError::Io(kind) => kind,
            MuxError::Silent => io::ErrorKind::TimedOut,
            MuxError::Reset | MuxError::GoAway(_) => io::ErrorKind::ConnectionReset,
            MuxError::Protocol(_) => io::ErrorKind::InvalidData,
            MuxError::Refused | MuxError::Busy | MuxError::Exhausted => io::ErrorKind::ConnectionRefused,
        };
        io::Error::new(kind, error)
    }
}

struct Shared {
    state: Mutex<State>,
    /// There is something to send.
    out: Notify,
    /// Something was sent.
    drained: Notify,
    ended: watch::Sender<bool>,
}

impl Shared {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let value = change(&mut state);
        if state.out_len() > 0 {
            self.out.notify_one();
        }
        value
    }
}

/// One multiplexed connection; clones are handles of the same.
///
/// It lives until [`Mux::close`], the peer's end or a failure: dropping handles ends nothing.
#[derive(Clone)]
pub struct Mux(Arc<Shared>);

impl Mux {
    /// Takes over `io` in a task of its own. Streams that the peer opens come out of [`Incoming`].
    pub fn start<I>(io: I, role: Role) -> (Mux, Incoming)
    where
        I: AsyncRead + AsyncWrite + Send + 'static,
    {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(role)),
            out: Notify::new(),
            drained: Notify::new(),
            ended: watch::Sender::new(false),
        });
        let (opened, incoming) = mpsc::channel(BACKLOG_MAX);
        tokio::spawn(drive(io, Arc::clone(&shared), opened));
        (Mux(shared), Incoming(incoming))
    }

    /// Opens a stream without waiting for the peer to accept it.
    ///
    /// # Errors
    /// Why the connection ended, [`MuxError::Refused`] when the peer is leaving, [`MuxError::Busy`] beyond
    /// [`BACKLOG_MAX`] unaccepted or [`STREAMS_MAX`] live streams.
    pub fn open(&self) -> Result<Stream, MuxError> {
        let id = self.0.with(State::open)?;
        Ok(Stream { id, shared: Arc::clone(&self.0) })
    }

    /// Ends the connection once everything written so far was sent.
    pub fn close(&self) {
        self.0.with(|state| state.close(MuxError::Closed));
    }

    /// Why the connection ended, if it did.
    pub fn ended(&self) -> Option<MuxError> {
        self.0.state.lock().ended()
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        let mut ended = self.0.ended.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Streams the peer opened, in order. Dropping it resets those to come.
pub struct Incoming(mpsc::Receiver<Stream>);

impl Incoming {
    /// The next stream; `None` once the connection has ended.
    pub async fn accept(&mut self) -> Option<Stream> {
        let stream = self.0.recv().await?;
        stream.shared.with(|state| state.acknowledge(stream.id));
        Some(stream)
    }
}

/// One stream: bytes both ways. Shutting it down ends this direction only; dropping it ends both.
pub struct Stream {
    id: u32,
    shared: Arc<Shared>,
}

impl Stream {
    /// True while nothing waits to be read and neither end is finished: fit to begin a new call on.
    pub fn is_quiet(&self) -> bool {
        self.shared.state.lock().is_quiet(self.id)
    }

    /// For one watcher: of several, the last to wait is woken.
    pub fn gone(&self) -> Gone {
        Gone { id: self.id, shared: Arc::clone(&self.shared) }
    }
}

/// Tells when the other end of a stream has finished or left.
pub struct Gone {
    id: u32,
    shared: Arc<Shared>,
}

impl Gone {
    /// Returns then. What was sent before may still be unread.
    pub async fn wait(&self) {
        std::future::poll_fn(|cx| self.shared.state.lock().poll_gone(self.id, cx)).await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.with(|state| state.release(self.id));
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        let data = ready!(self.shared.with(|state| state.poll_read(self.id, cx, room)))?;
        buf.put_slice(&data);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.shared.with(|state| state.poll_write(self.id, cx, data)).map_err(io::Error::from)
    }

    /// Nothing to do: the connection's task sends whatever is written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|state| state.finish(self.id));
        Poll::Ready(Ok(()))
    }
}

/// Serves the socket until one of its three duties ends it.
async fn drive<I>(io: I, shared: Arc<Shared>, opened: mpsc::Sender<Stream>)
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = tokio::io::split(io);
    let why = tokio::select! {
        why = read_frames(reader, &shared, opened) => why,
        why = write_frames(writer, &shared) => why,
        why = keep_alive(&shared) => why,
    };
    shared.state.lock().end(why);
    shared.ended.send_replace(true);
    tracing::debug!(%why, "rpc connection ended");
}

async fn read_frames<R: AsyncRead + Unpin>(
    reader: R,
    shared: &Arc<Shared>,
    opened: mpsc::Sender<Stream>,
) -> MuxError {
    let mut reader = BufReader::with_capacity(READ_BUFFER, reader);
    let mut body = Vec::new();
    loop {
        match read_frame(&mut reader, &mut body, shared, &opened).await {
            Ok(()) => {}
            Err(why @ MuxError::Protocol(_)) => {
                // The writer says so to the peer, then ends the connection.
                shared.with(|state| state.close(why));
                return std::future::pending().await;
            }
            Err(why) => return why,
        }
        while shared.state.lock().out_len() > OUT_HARD_MAX {
            shared.drained.notified().await;
        }
    }
}

async fn read_frame<R: AsyncRead + Unpin>(
    reader: &mut R,
    body: &mut Vec<u8>,
    shared: &Arc<Shared>,
    opened: &mpsc::Sender<Stream>,
) -> Result<(), MuxError> {
    let mut header = [0; HEADER_LEN];
    reader.read_exact(&mut header).await.map_err(lost)?;
    let header = Header::decode(header)?;
    if header.body_len() > WINDOW {
        return Err(MuxError::Protocol("frame larger than any window"));
    }
    body.resize(header.body_len() as usize, 0);
    reader.read_exact(body).await.map_err(lost)?;
    if let Some(id) = shared.with(|state| state.receive(header, body))? {
        // Full: the stream is dropped here, which ends it for the peer too.
        let _ = opened.try_send(Stream { id, shared: Arc::clone(shared) });
    }
    Ok(())
}

fn lost(error: io::Error) -> MuxError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => MuxError::PeerGone,
        kind => MuxError::Io(kind),
    }
}

async fn write_frames<W: AsyncWrite + Unpin>(mut writer: W, shared: &Shared) -> MuxError {
    loop {
        let (chunk, closing) = shared.state.lock().take_out();
        if chunk.is_empty() {
            if let Some(why) = closing {
                let _ = timeout(WRITE_TIMEOUT, writer.shutdown()).await;
                return why;
            }
            shared.out.notified().await;
            continue;
        }
        if let Err(why) = write_chunk(&mut writer, chunk).await {
            return why;
        }
        shared.drained.notify_one();
        shared.state.lock().drained();
    }
}

/// The time limit is for any progress, so that a slow line is not taken for a dead one.
async fn write_chunk<W: AsyncWrite + Unpin>(writer: &mut W, mut chunk: BytesMut) -> Result<(), MuxError> {
    let bounded = |result: Result<io::Result<usize>, _>| match result {
        Ok(Ok(0)) => Err(MuxError::PeerGone),
        Ok(Ok(length)) => Ok(length),
        Ok(Err(error)) => Err(MuxError::Io(error.kind())),
        Err(_elapsed) => Err(MuxError::Silent),
    };
    while !chunk.is_empty() {
        bounded(timeout(WRITE_TIMEOUT, writer.write_buf(&mut chunk)).await)?;
    }
    // What TLS has taken may still wait for the socket.
    match timeout(WRITE_TIMEOUT, writer.flush()).await {
        Ok(flushed) => flushed.map_err(|error| MuxError::Io(error.kind())),
        Err(_elapsed) => Err(MuxError::Silent),
    }
}

async fn keep_alive(shared: &Shared) -> MuxError {
    loop {
        sleep(PING_EVERY).await;
        let ping = shared.with(State::ping);
        sleep(WRITE_TIMEOUT).await;
        if !shared.state.lock().was_answered(ping) {
            return MuxError::Silent;
        }
    }
}

#[cfg(test)]
mod tests;
