//! The door for HTTP: how many may come in, and how long somebody may take to say what they want.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Connections at the same time: every read that may wait, and as many streams and calls besides. One more waits to be
/// let in, with the system's own queue behind it.
pub const CONNECTIONS_MAX: usize = 2 * http_gateway::WAITING_READS_MAX;

/// How long the head of a request may take, from the connection or the answer before it: an idle connection ends then,
/// and so does one that only pretends to ask.
pub const HEAD_PATIENCE: Duration = Duration::from_secs(60);

/// After a connection could not be taken, for want of descriptors.
const AGAIN: Duration = Duration::from_millis(100);

/// Serves until told to stop, and then until every answer that was begun is given.
pub async fn serve(
    listener: TcpListener,
    router: axum::Router,
    patience: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let come_in = async {
            let seat = seats.clone().acquire_owned().await.expect("nobody closes the semaphore");
            (seat, listener.accept().await)
        };
        // A dropped sender is a server that is gone.
        let (seat, accepted) = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            came = come_in => came,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(talk(stream, router.clone(), patience, stopping.clone(), seat));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
    drop(listener);
    let _all = seats.acquire_many(CONNECTIONS_MAX as u32).await;
}

async fn talk(
    stream: TcpStream,
    router: axum::Router,
    patience: Duration,
    mut stopping: watch::Receiver<bool>,
    _seat: OwnedSemaphorePermit,
) {
    // Small answers go out at once.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(patience);
    let service = TowerToHyperService::new(router);
    let mut connection =
        std::pin::pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = stopping.wait_for(|stop| *stop) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    struct Open {
        address: std::net::SocketAddr,
        stop: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    async fn open(patience: Duration) -> Open {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let router = axum::Router::new().route("/", get(async || "hello"));
        Open { address, stop, task: tokio::spawn(serve(listener, router, patience, stopping)) }
    }

    async fn all_of(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    #[tokio::test]
    async fn who_never_finishes_a_request_is_shown_out() {
        let open = open(Duration::from_millis(50)).await;
        let mut slow = TcpStream::connect(open.address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow").await.unwrap();
        let said = all_of(&mut slow).await;
        assert!(!said.contains("hello"), "{said}");
        let mut quick = TcpStream::connect(open.address).await.unwrap();
        quick.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(all_of(&mut quick).await.ends_with("hello"));
    }

    #[tokio::test]
    async fn idle_connections_do_not_keep_the_door_open() {
        let open = open(HEAD_PATIENCE).await;
        let mut idle = TcpStream::connect(open.address).await.unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 15];
        idle.read_exact(&mut some).await.unwrap();
        open.stop.send_replace(true);
        tokio::time::timeout(LIMIT, open.task).await.unwrap().unwrap();
    }
}
