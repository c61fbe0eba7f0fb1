use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsStream};

/// The handshake of a connection that was accepted. The caller bounds how long it takes.
///
/// Where it fails the other end reads why: what it has sent meanwhile is read first, because closing a socket with unread
/// bytes resets the connection, and the reason with it.
pub(crate) async fn accept<S>(config: Arc<ServerConfig>, stream: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match TlsAcceptor::from(config).accept(stream).into_fallible().await {
        Ok(stream) => Ok(TlsStream::Server(stream)),
        Err((error, mut stream)) => {
            let mut unread = [0; 1024];
            if stream.shutdown().await.is_ok() {
                while let Ok(1..) = stream.read(&mut unread).await {}
            }
            Err(error)
        }
    }
}
