use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::yamux::MuxError;

/// Why a call or a stream did not work.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    #[error("connect to {addr}: {source}")]
    Dial { addr: SocketAddr, source: io::Error },
    /// The connection or the stream under the call ended.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no answer to {method} within {after:?}")]
    Timeout { method: String, after: Duration },
    /// The peer's own words, which are part of Nomad's node RPC: callers look for phrases in them.
    #[error("{0}")]
    Remote(String),
    #[error("message of at least {least} bytes exceeds the limit of {max}")]
    TooLarge { least: u64, max: usize },
    #[error(transparent)]
    Codec(#[from] msgpack::Error),
    #[error("peer broke the protocol: {0}")]
    Protocol(&'static str),
    #[error("peer's connection carries no calls towards it")]
    OneWay,
}

impl From<MuxError> for RpcError {
    fn from(error: MuxError) -> RpcError {
        RpcError::Io(error.into())
    }
}
