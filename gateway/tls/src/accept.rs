use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsStream};

/// The handshake of a connection that was accepted. The caller bounds how long it takes.
///
/// Where it fails the other end reads why.
pub(crate) async fn accept<S>(config: Arc<ServerConfig>, stream: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match TlsAcceptor::from(config).accept(stream).into_fallible().await {
        Ok(stream) => Ok(TlsStream::Server(stream)),
        Err((error, stream)) => {
            // Whatever comes of that, why it was refused is what counts.
            let _ended = end(stream).await;
            Err(error)
        }
    }
}

/// Ends a connection so that the other end reads what was written last: what it has sent meanwhile is read first, because
/// closing a socket with unread bytes resets the connection, and the answer with it. The caller bounds how long that takes.
///
/// # Errors
/// The connection was cut.
pub async fn end(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
