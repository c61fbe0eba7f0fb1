//! How a connection begins: its first bytes, and TLS where one of them asks for it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tls::{PeerIdentity, RpcSecurity, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::frames::Io;
use crate::protocol::{KEYED_TLS, MUX_V2, TLS};

/// A connection whose peer is known as well as it wants to be.
pub(crate) struct Accepted {
    pub io: Io,
    pub identity: PeerIdentity,
    /// What it carries.
    pub first: u8,
}

/// Why a connection is not served. Whoever dialed sees only that it ends.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The other end left, or said nothing sensible.
    Ended(io::Error),
    /// It has not proved itself, or offered to in a way that this end does not have.
    Security(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Ended(error) => error.fmt(f),
            Refused::Security(why) => f.write_str(why),
        }
    }
}

/// Reads the first bytes of a connection that was accepted.
pub(crate) async fn accept(mut socket: TcpStream, security: &RpcSecurity) -> Result<Accepted, Refused> {
    let first = socket.read_u8().await.map_err(Refused::Ended)?;
    let way = match first {
        TLS => security.accept_certificates(),
        KEYED_TLS => security.accept_keys(),
        _ => security.accept_plain(),
    };
    let way = way.map_err(|why| Refused::Security(why.to_string()))?;
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "an rpc connection keeps its delay");
    }
    let failed = |error: io::Error| Refused::Security(format!("the TLS handshake failed: {error}"));
    let (mut io, identity): (Io, _) = match way {
        Way::Certificates(tls, _) => {
            let (stream, identity) = tls.accept_rpc(socket).await.map_err(failed)?;
            (Box::new(stream), identity)
        }
        Way::Keys(keys, _) => {
            let (stream, identity) = keys.accept(socket).await.map_err(failed)?;
            (Box::new(stream), identity)
        }
        Way::Plain => return Ok(Accepted { io: Box::new(socket), identity: PeerIdentity::Unproven, first }),
    };
    let first = io.read_u8().await.map_err(Refused::Ended)?;
    Ok(Accepted { io, identity, first })
}

/// Connects, and proves each end to the other as far as they can.
pub(crate) async fn connect(addr: SocketAddr, security: &RpcSecurity) -> io::Result<(Io, PeerIdentity)> {
    let (way, next) = security.dialing();
    let connected = connect_by(addr, way).await;
    match next {
        Some(next) if connected.is_err() => connect_by(addr, next).await,
        _ => connected,
    }
}

async fn connect_by(addr: SocketAddr, way: Way<'_>) -> io::Result<(Io, PeerIdentity)> {
    let mut socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    let (mut io, identity): (Io, _) = match way {
        Way::Certificates(tls, Some(region)) => {
            socket.write_u8(TLS).await?;
            let stream = tls.connect_rpc_of(region, socket).await.map_err(handshake)?;
            (Box::new(stream), PeerIdentity::ForeignServer)
        }
        Way::Certificates(tls, None) => {
            socket.write_u8(TLS).await?;
            let (stream, identity) = tls.connect_rpc(socket).await.map_err(handshake)?;
            (Box::new(stream), identity)
        }
        Way::Keys(keys, Some(region)) => {
            socket.write_u8(KEYED_TLS).await?;
            let stream = keys.connect_to(region, socket).await.map_err(handshake)?;
            (Box::new(stream), PeerIdentity::ForeignServer)
        }
        Way::Keys(keys, None) => {
            socket.write_u8(KEYED_TLS).await?;
            (Box::new(keys.connect(socket).await.map_err(handshake)?), PeerIdentity::Server)
        }
        Way::Plain => (Box::new(socket), PeerIdentity::Unproven),
    };
    io.write_u8(MUX_V2).await?;
    io.flush().await?;
    Ok((io, identity))
}

fn handshake(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the TLS handshake failed: {error}"))
}
