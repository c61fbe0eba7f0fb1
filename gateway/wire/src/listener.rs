//! Accepts connections: counts them by address, reads their first byte, and serves them accordingly.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::Occurrences;
use parking_lot::Mutex;
use tls::RpcSecurity;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection::Peer;
use crate::dispatch::{self, Handler, StreamKind};
use crate::frames::Io;
use crate::protocol::{KEYED_TLS, MUX_V1, MUX_V2, RAFT, RPC, STREAMING, TLS};
use crate::secure::{self, Accepted, Refused};
use crate::yamux::{Mux, Role};
use crate::{Connection, Limits};

/// Pause after the system refused to accept: it is out of descriptors, and asking at once will not help.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves node RPC on a port, for ever. Dropping the future ends every connection.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    security: RpcSecurity,
    handler: Arc<H>,
    limits: Limits,
) {
    let port = Arc::new(Port { security, limits, refused: Occurrences::default() });
    let counts = ConnectionCounts::default();
    // Bounded by the connections of each address, and by descriptors.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((socket, peer)) => match counts.acquire(peer.ip(), limits.connections_per_ip) {
                Some(slot) => {
                    let (port, handler) = (Arc::clone(&port), Arc::clone(&handler));
                    connections.spawn(async move {
                        let _slot = slot;
                        port.serve_connection(socket, peer, handler).await;
                    });
                }
                None => tracing::warn!(%peer, max = limits.connections_per_ip, "too many rpc connections"),
            },
            Err(error) => {
                tracing::error!(%error, "cannot accept rpc connections");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The address that a request came from, which stands in its extensions; unset where it came over no network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerAddress(pub Option<IpAddr>);

/// The header in which an agent that passes a request on says where it came from.
pub const FORWARDED_FOR: &str = "x-forwarded-for";

/// How many connections each address has.
#[derive(Clone, Default)]
pub struct ConnectionCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl ConnectionCounts {
    /// A slot for one more connection, given back when it is dropped. `None` when the address has `max` of them; 0 is
    /// no bound.
    pub fn acquire(&self, ip: IpAddr, max: usize) -> Option<ConnectionSlot> {
        let mut counts = self.0.lock();
        let count = counts.entry(ip).or_default();
        if max > 0 && *count >= max {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot { ip, counts: self.clone() })
    }
}

pub struct ConnectionSlot {
    ip: IpAddr,
    counts: ConnectionCounts,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(count) = counts.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.ip);
            }
        }
    }
}

/// What all connections of a port have in common.
struct Port {
    security: RpcSecurity,
    limits: Limits,
    /// Connections that were not served.
    refused: Occurrences,
}

impl Port {
    async fn serve_connection<H: Handler>(&self, socket: TcpStream, peer: SocketAddr, handler: Arc<H>) {
        let limits = self.limits;
        let accepted = match timeout(limits.handshake, secure::accept(socket, &self.security)).await {
            Ok(Ok(accepted)) => accepted,
            Ok(Err(Refused::Ended(error))) => {
                tracing::debug!(%peer, %error, "rpc connection ended before it began");
                return;
            }
            Ok(Err(why @ Refused::Security(_))) => return self.refuse(peer, &why.to_string()),
            Err(_elapsed) => {
                return self
                    .refuse(peer, &format!("it did not say what it is within {:?}", limits.handshake));
            }
        };
        let Accepted { io, identity, first } = accepted;
        let peer = Peer { address: peer, identity };
        match first {
            MUX_V1 | MUX_V2 => serve_mux(io, peer, handler, limits, first).await,
            RPC | STREAMING => serve_plain(io, peer, handler, limits, first).await,
            TLS | KEYED_TLS => self.refuse(peer.address, "it wants TLS within TLS"),
            RAFT => self.refuse(peer.address, "it wants raft, which this port does not serve"),
            other => self.refuse(peer.address, &format!("unknown first byte {other:#04x}")),
        }
    }

    fn refuse(&self, peer: SocketAddr, why: &str) {
        if let Some(count) = self.refused.add() {
            tracing::warn!(%peer, count, "rpc connection refused: {why}");
        }
    }
}

async fn serve_mux<H: Handler>(socket: Io, peer: Peer, handler: Arc<H>, limits: Limits, first: u8) {
    let (mux, incoming) = Mux::start(socket, Role::Server);
    let (connection, kind) = match first {
        MUX_V2 => (Connection::two_way(peer, limits, mux), StreamKind::Announced),
        _ => (Connection::old_mux(peer, limits, mux), StreamKind::Calls),
    };
    let _closed = CloseOnDrop(connection.clone());
    dispatch::serve_streams(connection, incoming, handler, kind).await;
}

async fn serve_plain<H: Handler>(socket: Io, peer: Peer, handler: Arc<H>, limits: Limits, first: u8) {
    let connection = Connection::plain(peer, limits);
    let _closed = CloseOnDrop(connection.clone());
    let serving = async {
        match first {
            RPC => dispatch::answer_calls(socket, &connection, &*handler).await,
            _ => dispatch::answer_stream(socket, &connection, &*handler).await,
        }
    };
    tokio::select! {
        outcome = serving => dispatch::log_end(&connection, outcome),
        () = connection.closed() => {}
    }
}

/// Everyone who holds a handle has to see that the connection is no longer served.
struct CloseOnDrop(Connection);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
