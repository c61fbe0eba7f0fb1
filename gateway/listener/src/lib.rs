//! The listener for HTTP: how many connections it accepts, and how long a request may take to arrive.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;
use wire::{CallerAddress, ConnectionCounts, FORWARDED_FOR};

/// Connections at the same time: every read that a server lets wait, and as many streams and calls besides. Further ones
/// wait in the system's accept queue.
pub const CONNECTIONS_MAX: usize = 16_384;

/// How long the head of a request may take, from the connection or the answer before it: an idle connection ends then,
/// and so does one that never completes its request.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause after a connection could not be accepted: the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answer to one connection too many of an address.
const TOO_MANY: &str =
    "too many connections from this address at the same time (limits.http_max_conns_per_client)\n";

/// How long sending the 429 may take.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections that wait to be accepted, as far as the system allows (`net.core.somaxconn`). One more gets no answer
/// and tries again a second later: thousands of nodes come at the same time when a server returns.
const BACKLOG: u32 = 4_096;

/// # Errors
/// The address cannot be used: another program listens there, mostly.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stopping` is true, and then until every answer that was begun is sent. An address has at most
/// `connections_per_ip` connections; 0 is no bound.
pub async fn serve(
    listener: TcpListener,
    router: axum::Router,
    header_timeout: Duration,
    connections_per_ip: usize,
    mut stopping: watch::Receiver<bool>,
) {
    let (slots, counts) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), ConnectionCounts::default());
    loop {
        let next_connection = async {
            let slot = slots.clone().acquire_owned().await.expect("nobody closes the semaphore");
            (slot, listener.accept().await)
        };
        // A dropped sender is a server that is gone.
        let (slot, accepted) = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            accepted = next_connection => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match counts.acquire(peer.ip(), connections_per_ip) {
                Some(counted) => {
                    let (router, stopping) = (router.clone(), stopping.clone());
                    let serving = serve_connection(stream, peer.ip(), router, header_timeout, stopping);
                    tokio::spawn(async move {
                        let _until_it_ends = (slot, counted);
                        serving.await;
                    });
                }
                None => {
                    tokio::spawn(async move {
                        let _until_it_ends = slot;
                        reject(stream).await;
                    });
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _all = slots.acquire_many(CONNECTIONS_MAX as u32).await;
}

/// Answers 429 without reading the request first. Then reads on for a moment: closing a socket with unread bytes resets
/// the connection, and the answer with it.
async fn reject(mut stream: TcpStream) {
    let answer = format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{TOO_MANY}",
        TOO_MANY.len()
    );
    let write = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        std::io::Result::Ok(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(REJECT_TIMEOUT, write).await {
        tracing::debug!(%error, "a connection was rejected");
    }
}

async fn serve_connection(
    stream: TcpStream,
    caller: IpAddr,
    router: axum::Router,
    header_timeout: Duration,
    stopping: watch::Receiver<bool>,
) {
    // Small answers go out at once.
    if stream.set_nodelay(true).is_ok() {
        serve_stream(stream, Peer::Caller(caller), router, header_timeout, stopping).await;
    }
}

/// Who is at the other end of a stream.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// Who makes the requests.
    Caller(IpAddr),
    /// An agent of the cluster, which passes requests on and says in [`FORWARDED_FOR`] where they came from.
    Agent(IpAddr),
}

impl Peer {
    fn caller_of<B>(self, request: &Request<B>) -> IpAddr {
        let named = || request.headers().get(FORWARDED_FOR)?.to_str().ok()?.parse().ok();
        match self {
            Peer::Caller(address) => address,
            Peer::Agent(address) => named().unwrap_or(address),
        }
    }
}

/// Serves the requests that come over one stream of bytes, until it or `stopping` ends it.
pub async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: axum::Router,
    header_timeout: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_timeout);
    let service = TowerToHyperService::new(router.map_request(move |request| with_caller(request, peer)));
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

fn with_caller<B>(mut request: Request<B>, peer: Peer) -> Request<B> {
    let caller = CallerAddress(Some(peer.caller_of(&request).to_canonical()));
    request.extensions_mut().insert(caller);
    request
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    struct TestServer {
        address: std::net::SocketAddr,
        stop: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    async fn start(header_timeout: Duration) -> TestServer {
        start_with(header_timeout, 0).await
    }

    async fn start_with(header_timeout: Duration, connections_per_ip: usize) -> TestServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let router = axum::Router::new().route("/", get(async || "hello"));
        TestServer {
            address,
            stop,
            task: tokio::spawn(serve(listener, router, header_timeout, connections_per_ip, stopping)),
        }
    }

    async fn all_of(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    #[tokio::test]
    async fn a_request_that_never_ends_is_closed() {
        let server = start(Duration::from_millis(50)).await;
        let mut slow = TcpStream::connect(server.address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow").await.unwrap();
        let answer = all_of(&mut slow).await;
        assert!(!answer.contains("hello"), "{answer}");
        let mut quick = TcpStream::connect(server.address).await.unwrap();
        quick.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(all_of(&mut quick).await.ends_with("hello"));
    }

    #[tokio::test]
    async fn one_connection_too_many_of_an_address_gets_429() {
        let server = start_with(HEADER_TIMEOUT, 2).await;
        let ask = async || {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut some = [0; 12];
            stream.read_exact(&mut some).await.unwrap();
            (stream, String::from_utf8(some.to_vec()).unwrap())
        };
        let (first, second, third) = (ask().await, ask().await, ask().await);
        assert_eq!([&*first.1, &second.1, &third.1], ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"]);
        drop(first);
        let freed = async { while ask().await.1 != "HTTP/1.1 200" {} };
        tokio::time::timeout(LIMIT, freed).await.expect("a closed connection makes room");
    }

    #[tokio::test]
    async fn only_agents_say_where_a_request_came_from() {
        let address: IpAddr = [10, 0, 0, 1].into();
        let cases = [
            (Peer::Caller(address), "10.9.9.9", "10.0.0.1"),
            (Peer::Agent(address), "10.9.9.9", "10.9.9.9"),
            (Peer::Agent(address), "nowhere", "10.0.0.1"),
            (Peer::Caller("::ffff:10.0.0.2".parse().unwrap()), "", "10.0.0.2"),
        ];
        for (peer, header, expected) in cases {
            let shown = async |request: axum::extract::Request| {
                let caller = *request.extensions().get::<CallerAddress>().unwrap();
                caller.0.unwrap().to_string()
            };
            let router = axum::Router::new().route("/", get(shown));
            let (mut caller, server) = tokio::io::duplex(4_096);
            let (_stop, stopping) = watch::channel(false);
            let serving = tokio::spawn(serve_stream(server, peer, router, HEADER_TIMEOUT, stopping));
            let request = format!(
                "GET / HTTP/1.1\r\nHost: x\r\n{FORWARDED_FOR}: {header}\r\nConnection: close\r\n\r\n"
            );
            caller.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            tokio::time::timeout(LIMIT, caller.read_to_string(&mut answer)).await.unwrap().unwrap();
            assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
            serving.await.unwrap();
        }
    }

    #[tokio::test]
    async fn idle_connections_do_not_delay_the_end() {
        let server = start(HEADER_TIMEOUT).await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 15];
        idle.read_exact(&mut some).await.unwrap();
        server.stop.send_replace(true);
        tokio::time::timeout(LIMIT, server.task).await.unwrap().unwrap();
    }
}
