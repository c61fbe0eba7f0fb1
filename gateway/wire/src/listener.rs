//! Accepts connections: counts them by address, reads their first byte, and serves them accordingly.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::Occurrences;
use parking_lot::Mutex;
use tls::RpcSecurity;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::budget::Budget;
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
    let bodies = Budget::new(limits.bodies_max);
    let port = Arc::new(Port { security, limits, bodies, refused: Occurrences::default() });
    let counts = ConnectionCounts::new(limits.connections_max);
    // Bounded by the counts.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((socket, peer)) => match counts.acquire(peer.ip(), limits.connections_per_ip) {
                Ok(slot) => {
                    let (port, handler) = (Arc::clone(&port), Arc::clone(&handler));
                    connections.spawn(async move {
                        let _slot = slot;
                        port.serve_connection(socket, peer, handler).await;
                    });
                }
                Err(why) => port.refuse(peer, &why.to_string()),
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

/// How many connections each address has, out of all that there may be.
#[derive(Clone)]
pub struct ConnectionCounts(Arc<Mutex<Counts>>);

struct Counts {
    free: usize,
    of: HashMap<IpAddr, usize>,
}

/// Why an address gets no further connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error("too many connections from this address at the same time: it has {0}")]
    OfAddress(usize),
    /// So the addresses that come later find room: one alone gets half of all, two a third each.
    #[error(
        "too many connections from this address at the same time: it has {has}, and only {free} are free for all"
    )]
    Share { has: usize, free: usize },
}

impl ConnectionCounts {
    pub fn new(max: usize) -> ConnectionCounts {
        ConnectionCounts(Arc::new(Mutex::new(Counts { free: max, of: HashMap::new() })))
    }

    /// A slot for one more connection, given back when it is dropped.
    ///
    /// # Errors
    /// The address has `max` of them (0 is no bound), or as many as are free.
    pub fn acquire(&self, ip: IpAddr, max: usize) -> Result<ConnectionSlot, TooMany> {
        let mut counts = self.0.lock();
        let (has, free) = (counts.of.get(&ip).copied().unwrap_or(0), counts.free);
        if max > 0 && has >= max {
            return Err(TooMany::OfAddress(has));
        }
        if has >= free {
            return Err(TooMany::Share { has, free });
        }
        counts.free -= 1;
        counts.of.insert(ip, has + 1);
        Ok(ConnectionSlot { ip, counts: self.clone() })
    }
}

pub struct ConnectionSlot {
    ip: IpAddr,
    counts: ConnectionCounts,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        counts.free += 1;
        if let Entry::Occupied(mut entry) = counts.of.entry(self.ip) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// What all connections of a port have in common.
struct Port {
    security: RpcSecurity,
    limits: Limits,
    bodies: Budget,
    /// Connections that were not served.
    refused: Occurrences,
}

impl Port {
    async fn serve_connection<H: Handler>(&self, socket: TcpStream, peer: SocketAddr, handler: Arc<H>) {
        let (limits, bodies) = (self.limits, self.bodies.clone());
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
            MUX_V1 | MUX_V2 => serve_mux(io, peer, handler, (limits, bodies), first).await,
            RPC | STREAMING => serve_plain(io, peer, handler, (limits, bodies), first).await,
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

async fn serve_mux<H: Handler>(
    socket: Io,
    peer: Peer,
    handler: Arc<H>,
    (limits, bodies): (Limits, Budget),
    first: u8,
) {
    let (mux, incoming) = Mux::start(socket, Role::Server);
    let (connection, kind) = match first {
        MUX_V2 => (Connection::two_way(peer, limits, bodies, mux), StreamKind::Announced),
        _ => (Connection::old_mux(peer, limits, bodies, mux), StreamKind::Calls),
    };
    let _closed = CloseOnDrop(connection.clone());
    dispatch::serve_streams(connection, incoming, handler, kind).await;
}

async fn serve_plain<H: Handler>(
    socket: Io,
    peer: Peer,
    handler: Arc<H>,
    (limits, bodies): (Limits, Budget),
    first: u8,
) {
    let connection = Connection::plain(peer, limits, bodies);
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
