use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tls::{PeerIdentity, RpcSecurity};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::budget::Budget;
use crate::dispatch::{self, Handler, StreamKind};
use crate::frames::{self, Frames};
use crate::protocol::{RPC, RequestHeader, ResponseHeader, STREAMING};
use crate::secure;
use crate::values::Values;
use crate::yamux::{Mux, Role, Stream};
use crate::{HEADER_MAX, Limits, RemoteError, RpcError};

/// A connection to a peer, seen from either end; clones are handles of the same.
///
/// It stays open until [`Connection::close`], the peer's end or a failure: dropping handles ends nothing,
/// because the peer may still be calling.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    peer: SocketAddr,
    identity: PeerIdentity,
    limits: Limits,
    /// What requests that arrive here may hold before they are complete.
    bodies: Budget,
    transport: Transport,
    /// Streams between two calls, the last used one last.
    idle: Mutex<Vec<Values<Stream>>>,
    seq: AtomicU64,
}

enum Transport {
    /// Both ends may call.
    TwoWay(Mux),
    /// Multiplexed the old way: only the dialer calls.
    OldMux(Mux),
    /// Not multiplexed: true once it has ended.
    Plain(watch::Sender<bool>),
}

/// Connects to a server with the multiplexed protocol.
///
/// Calls that the server makes over this connection are answered by `handler`, in tasks of their own, for as
/// long as the connection lives.
///
/// # Errors
/// [`RpcError::Dial`] when there is no answer within `wait`, or one end does not accept what the other proves.
pub async fn dial<H: Handler>(
    addr: SocketAddr,
    security: &RpcSecurity,
    handler: Arc<H>,
    limits: Limits,
    wait: Duration,
) -> Result<Connection, RpcError> {
    let late = |_| Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time"));
    let connected = timeout(wait, secure::connect(addr, security)).await.unwrap_or_else(late);
    let (socket, identity) = connected.map_err(|source| RpcError::Dial { addr, source })?;
    let (mux, incoming) = Mux::start(socket, Role::Client);
    let bodies = Budget::new(limits.bodies_max);
    let connection = Connection::two_way(Peer { address: addr, identity }, limits, bodies, mux);
    tokio::spawn(dispatch::serve_streams(connection.clone(), incoming, handler, StreamKind::Announced));
    Ok(connection)
}

/// The other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    pub identity: PeerIdentity,
}

impl Connection {
    pub(crate) fn two_way(peer: Peer, limits: Limits, bodies: Budget, mux: Mux) -> Connection {
        Connection::new(peer, limits, bodies, Transport::TwoWay(mux))
    }

    pub(crate) fn old_mux(peer: Peer, limits: Limits, bodies: Budget, mux: Mux) -> Connection {
        Connection::new(peer, limits, bodies, Transport::OldMux(mux))
    }

    pub(crate) fn plain(peer: Peer, limits: Limits, bodies: Budget) -> Connection {
        Connection::new(peer, limits, bodies, Transport::Plain(watch::Sender::new(false)))
    }

    fn new(peer: Peer, limits: Limits, bodies: Budget, transport: Transport) -> Connection {
        let Peer { address: peer, identity } = peer;
        let (idle, seq) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        Connection(Arc::new(Inner { peer, identity, limits, bodies, transport, idle, seq }))
    }

    /// Calls a method at the peer and waits for its answer.
    ///
    /// # Errors
    /// [`RpcError::Remote`] when the peer answered with an error, [`RpcError::Timeout`] after `wait`,
    /// [`RpcError::OneWay`] when the peer takes no calls on this connection; otherwise the connection failed
    /// and the call may or may not have had its effect.
    pub async fn call<Req, Resp>(&self, method: &str, request: &Req, wait: Duration) -> Result<Resp, RpcError>
    where
        Req: Serialize + ?Sized,
        Resp: DeserializeOwned,
    {
        let body = msgpack::to_vec(request)?;
        let reply = self.call_raw(method, &body, wait).await?;
        Ok(msgpack::from_slice(&reply)?)
    }

    /// [`Connection::call`] with bodies as they are on the wire, for passing calls on.
    ///
    /// # Errors
    /// As for [`Connection::call`], and [`RpcError::TooLarge`] for a body beyond the limit.
    pub async fn call_raw(&self, method: &str, body: &[u8], wait: Duration) -> Result<Bytes, RpcError> {
        let late = |_| Err(RpcError::Timeout { method: method.to_string(), after: wait });
        timeout(wait, self.exchange(method, body)).await.unwrap_or_else(late)
    }

    /// Opens a streaming call; the method's own messages follow.
    ///
    /// # Errors
    /// As for [`Connection::call`].
    pub async fn open_stream(&self, method: &str, wait: Duration) -> Result<Frames, RpcError> {
        let late = |_| Err(RpcError::Timeout { method: method.to_string(), after: wait });
        let open = async {
            let mut stream = self.two_way_mux()?.open()?;
            stream.write_u8(STREAMING).await?;
            frames::request(Values::new(stream), method).await
        };
        timeout(wait, open).await.unwrap_or_else(late)
    }

    /// Where the peer called from, or was dialed at.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// What the peer has proved to be, for the whole life of the connection.
    pub fn identity(&self) -> PeerIdentity {
        self.0.identity
    }

    /// True when calls can be made towards the peer.
    pub fn takes_calls(&self) -> bool {
        self.two_way_mux().is_ok() && !self.is_closed()
    }

    /// True for handles of the same connection.
    pub fn is_same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn is_closed(&self) -> bool {
        match &self.0.transport {
            Transport::TwoWay(mux) | Transport::OldMux(mux) => mux.ended().is_some(),
            Transport::Plain(ended) => *ended.borrow(),
        }
    }

    /// Waits until the connection has ended, for whatever reason.
    pub async fn closed(&self) {
        match &self.0.transport {
            Transport::TwoWay(mux) | Transport::OldMux(mux) => mux.closed().await,
            Transport::Plain(ended) => {
                // The sender lives in `self`, so waiting cannot fail.
                let _ = ended.subscribe().wait_for(|ended| *ended).await;
            }
        }
    }

    /// Ends the connection: calls in both directions fail from here on.
    pub fn close(&self) {
        match &self.0.transport {
            Transport::TwoWay(mux) | Transport::OldMux(mux) => mux.close(),
            Transport::Plain(ended) => {
                ended.send_replace(true);
            }
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn bodies(&self) -> &Budget {
        &self.0.bodies
    }

    fn two_way_mux(&self) -> Result<&Mux, RpcError> {
        match &self.0.transport {
            Transport::TwoWay(mux) => Ok(mux),
            Transport::OldMux(_) | Transport::Plain(_) => Err(RpcError::OneWay),
        }
    }

    /// One call on one stream. A stream returns to the pool only from a complete exchange.
    async fn exchange(&self, method: &str, body: &[u8]) -> Result<Bytes, RpcError> {
        let max = self.0.limits.body_max;
        if body.len() > max {
            return Err(RpcError::TooLarge { least: body.len() as u64, max });
        }
        let (mut values, first) = self.take_stream()?;
        let seq = self.0.seq.fetch_add(1, Ordering::Relaxed);
        let header = msgpack::to_vec(&RequestHeader { service_method: method.to_string(), seq })?;
        let written = values.write(&[first, &header, body]).await;
        let reply = read_reply(&mut values, seq, max).await;
        let (error, reply) = match (written, reply) {
            // A peer that rejects a call half-way sends the reason before it stops reading.
            (_, Ok(reply)) => reply,
            (Err(error), Err(_)) | (Ok(()), Err(error)) => return Err(error),
        };
        self.put_back(values);
        if error.is_empty() { Ok(reply) } else { Err(RemoteError::read(&error).into()) }
    }

    /// An idle stream, or a new one with the byte that has to come first on it.
    fn take_stream(&self) -> Result<(Values<Stream>, &'static [u8]), RpcError> {
        let mux = self.two_way_mux()?;
        let mut idle = self.0.idle.lock();
        while let Some(values) = idle.pop() {
            if is_reusable(&values) {
                return Ok((values, &[]));
            }
        }
        Ok((Values::new(mux.open()?), &[RPC]))
    }

    fn put_back(&self, values: Values<Stream>) {
        let mut idle = self.0.idle.lock();
        if is_reusable(&values) && idle.len() < self.0.limits.idle_streams_max {
            idle.push(values);
        }
    }
}

fn is_reusable(values: &Values<Stream>) -> bool {
    values.is_drained() && values.io().is_quiet()
}

async fn read_reply(
    values: &mut Values<Stream>,
    seq: u64,
    body_max: usize,
) -> Result<(String, Bytes), RpcError> {
    let header: ResponseHeader = msgpack::from_slice(&values.expect(HEADER_MAX).await?)?;
    if header.seq != seq {
        return Err(RpcError::Protocol("answer to another call"));
    }
    let body = values.expect(body_max).await?;
    Ok((header.error, body))
}
