//! The listener for HTTP: how many connections it accepts, and how long a request may take to arrive and an answer to
//! be read; and how a request is passed on to another agent.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use tls::AgentTls;
use tokio::io::AsyncWriteExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;
use wire::{CallerAddress, ConnectionCounts, FORWARDED_FOR};

mod passing;
mod reading;

pub use passing::{PassError, pass_on};

use reading::Reading;

/// Connections at the same time: every read that a server lets wait, and as many streams and calls besides. Further ones
/// wait in the system's accept queue. An address never has more of them than are free.
pub const CONNECTIONS_MAX: usize = 16_384;

/// How long the head of a request may take, from the connection or the answer before it: an idle connection ends then,
/// and so does one that never completes its request.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a caller may read nothing of what waits for it: longer than somebody looks at a page of a log, and short
/// enough that callers who never read do not use up the connections.
pub const READ_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long the TLS handshake of a connection may take, unless it is set otherwise.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The first byte of a TLS handshake. No request of HTTP begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The answer to a request without TLS where TLS is asked for, as Go's servers give it.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

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

/// How connections are accepted.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Set where TLS is asked for.
    pub tls: Option<Arc<AgentTls>>,
    pub handshake_timeout: Duration,
    pub timeouts: Timeouts,
    pub per_address: AddressLimit,
}

/// How many connections an address may have at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLimit {
    /// 0 is no bound.
    pub max: usize,
    /// Addresses that carry the connections of many callers. The bound does not count for them; that no address has more
    /// than are free does.
    pub proxies: Vec<IpNet>,
}

impl AddressLimit {
    /// What Nomad allows an address.
    pub const MAX: usize = 100;

    /// Without a bound.
    pub const NONE: AddressLimit = AddressLimit { max: 0, proxies: Vec::new() };

    /// 0 is no bound.
    fn of(&self, ip: IpAddr) -> usize {
        let ip = ip.to_canonical();
        if self.proxies.iter().any(|network| network.contains(&ip)) { 0 } else { self.max }
    }
}

/// Callers of this host, a proxy among them, can use up what they like of it anyway.
impl Default for AddressLimit {
    fn default() -> AddressLimit {
        let proxies = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        AddressLimit { max: AddressLimit::MAX, proxies: proxies.map(IpNet::from).to_vec() }
    }
}

impl Connections {
    /// `tls` counts if it is meant for HTTP.
    pub fn new(tls: Option<Arc<AgentTls>>, per_address: AddressLimit) -> Connections {
        Connections {
            tls: tls.filter(|tls| tls.serves_http()),
            handshake_timeout: HANDSHAKE_TIMEOUT,
            timeouts: Timeouts::default(),
            per_address,
        }
    }
}

/// Serves until `stopping` is true, and then until every answer that was begun is sent.
pub async fn serve(
    listener: TcpListener,
    router: axum::Router,
    connections: Connections,
    mut stopping: watch::Receiver<bool>,
) {
    let connections = Arc::new(connections);
    let (slots, counts) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), ConnectionCounts::new(CONNECTIONS_MAX));
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
            Ok((stream, peer)) => match counts.acquire(peer.ip(), connections.per_address.of(peer.ip())) {
                Ok(counted) => {
                    let (router, stopping) = (router.clone(), stopping.clone());
                    let serving = serve_connection(stream, peer.ip(), router, connections.clone(), stopping);
                    tokio::spawn(async move {
                        let _until_it_ends = (slot, counted);
                        serving.await;
                    });
                }
                Err(_) => {
                    let connections = connections.clone();
                    tokio::spawn(async move {
                        let _until_it_ends = slot;
                        reject(stream, &connections).await;
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

/// Answers 429 without reading the request first.
async fn reject(stream: TcpStream, connections: &Connections) {
    let answer = format!(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{TOO_MANY}",
        TOO_MANY.len()
    );
    let reject = async {
        match &connections.tls {
            Some(tls) => answer_and_end(tls.accept_https(stream).await?, answer.as_bytes()).await,
            None => answer_and_end(stream, answer.as_bytes()).await,
        }
    };
    if let Ok(Err(error)) = tokio::time::timeout(REJECT_TIMEOUT, reject).await {
        tracing::debug!(%error, "a connection was rejected");
    }
}

async fn answer_and_end(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> io::Result<()> {
    stream.write_all(answer).await?;
    tls::end(stream).await
}

async fn serve_connection(
    stream: TcpStream,
    caller: IpAddr,
    router: axum::Router,
    connections: Arc<Connections>,
    stopping: watch::Receiver<bool>,
) {
    // Small answers go out at once.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let (peer, timeouts) = (Peer::Caller(caller), connections.timeouts);
    let Some(tls) = &connections.tls else {
        return serve_stream(stream, peer, router, timeouts, stopping).await;
    };
    match tokio::time::timeout(connections.handshake_timeout, handshake(stream, tls)).await {
        Ok(Ok(Some(stream))) => serve_stream(stream, peer, router, timeouts, stopping).await,
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::debug!(%caller, %error, "the TLS handshake of a connection failed"),
        Err(_elapsed) => tracing::debug!(%caller, "the TLS handshake of a connection took too long"),
    }
}

/// `None` for a caller who does not use TLS, and who has read so.
async fn handshake(stream: TcpStream, tls: &AgentTls) -> io::Result<Option<tls::TlsStream<TcpStream>>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0] != TLS_HANDSHAKE {
        answer_and_end(stream, NOT_TLS).await?;
        return Ok(None);
    }
    tls.accept_https(stream).await.map(Some)
}

/// How long the other end of a stream may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the head of a request: see [`HEADER_TIMEOUT`].
    pub header: Duration,
    /// To read anything of what waits for it: see [`READ_TIMEOUT`].
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { header: HEADER_TIMEOUT, read: READ_TIMEOUT }
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
    timeouts: Timeouts,
    mut stopping: watch::Receiver<bool>,
) {
    // Not the builder that also knows HTTP/2: before that sees the first bytes, no timer of its runs.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(timeouts.header);
    let stream = Reading::new(stream, peer, timeouts.read);
    let service = TowerToHyperService::new(router.map_request(move |request| with_caller(request, peer)));
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = std::pin::pin!(connection);
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
mod tests;
