//! Which calls only servers may make, and whether a connection is one of a server.

use std::net::IpAddr;

use base::Occurrences;
use wire::messages::method as node_rpc;
use wire::{Connection, PeerIdentity, RemoteError, RpcSecurity};

use crate::server_connections::method;

/// What a caller reads that has not proved itself where it could.
const NOT_PROVED: &str = "only servers may call this, and this connection is not one of a server";

/// What a server of another region reads.
const FOREIGN: &str =
    "only servers of this region may call this, and this connection is one of another region";

/// What a server reads where servers cannot prove themselves.
const NO_PROOF: &str =
    "servers on other hosts must prove themselves: set server.encrypt or tls.rpc on every server";

/// Lets servers call each other, and nobody else.
#[derive(Debug)]
pub(crate) struct ServerCalls {
    security: RpcSecurity,
    refused: Occurrences,
}

impl ServerCalls {
    pub(crate) fn new(security: RpcSecurity) -> ServerCalls {
        ServerCalls { security, refused: Occurrences::default() }
    }

    /// Whether a call may be answered. Those that nodes and others make always may, as far as this goes.
    ///
    /// # Errors
    /// For the caller.
    pub(crate) fn allow(&self, connection: &Connection, method: &str) -> Result<(), RemoteError> {
        if !method.starts_with(method::OF_SERVERS) || method == node_rpc::HTTP {
            return Ok(());
        }
        if method == method::ROLLOUT && connection.identity() == PeerIdentity::ForeignServer {
            return Ok(());
        }
        let can_prove = self.security.servers_can_prove_themselves();
        let Err(why) = judge(connection.identity(), connection.peer().ip(), can_prove) else { return Ok(()) };
        if let Some(count) = self.refused.add() {
            tracing::warn!(peer = %connection.peer(), method, count, "a call is refused: {why}");
        }
        Err(RemoteError::other(why))
    }
}

/// Whether a peer is a server, as far as it and this server can know.
fn judge(identity: PeerIdentity, address: IpAddr, can_prove: bool) -> Result<(), &'static str> {
    match (identity, can_prove) {
        (PeerIdentity::Server, _) => Ok(()),
        (PeerIdentity::ForeignServer, _) => Err(FOREIGN),
        (PeerIdentity::Unproven | PeerIdentity::Client, true) => Err(NOT_PROVED),
        // Whoever is on this host may read and write what the server keeps, or so its owner must expect.
        (_, false) if address.to_canonical().is_loopback() => Ok(()),
        (_, false) => Err(NO_PROOF),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_only_where_nothing_can_be_proved() {
        let (here, elsewhere): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [10, 0, 0, 1].into());
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        for (identity, address, can_prove, expected) in [
            (PeerIdentity::Server, elsewhere, true, Ok(())),
            (PeerIdentity::ForeignServer, elsewhere, true, Err(FOREIGN)),
            (PeerIdentity::ForeignServer, here, false, Err(FOREIGN)),
            (PeerIdentity::Client, here, true, Err(NOT_PROVED)),
            (PeerIdentity::Unproven, here, true, Err(NOT_PROVED)),
            (PeerIdentity::Unproven, here, false, Ok(())),
            (PeerIdentity::Unproven, mapped, false, Ok(())),
            (PeerIdentity::Unproven, elsewhere, false, Err(NO_PROOF)),
            (PeerIdentity::Client, elsewhere, false, Err(NO_PROOF)),
        ] {
            assert_eq!(judge(identity, address, can_prove), expected, "{identity:?} {address} {can_prove}");
        }
    }
}
