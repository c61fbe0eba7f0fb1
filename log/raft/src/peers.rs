//! The way to other servers, whatever carries it.

use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Carries messages to other servers. What arrives there goes to [`crate::RaftJournal::answer`].
///
/// Messages may be lost, late, repeated and in any order: consensus bears it, at the price of time. They have at
/// most [`crate::MESSAGE_BYTES_MAX`] bytes, and so have answers. The carrier guarantees who sent them.
pub trait Peers: Send + Sync + 'static {
    /// Carries one message to a server and brings its answer back. Gives up after `patience`; the caller does too.
    fn call(
        &self,
        node: u64,
        address: &str,
        message: Bytes,
        patience: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>>;
}

/// For a cluster of one server: there are no others.
#[derive(Clone, Copy, Debug)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn call(&self, _: u64, _: &str, _: Bytes, _: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        Box::pin(ready(Err(PeerError::Unreachable("this server has no peers".into()))))
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The server is not reachable. Trying again at once is of no use.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the server did not answer within {0:?}")]
    TimedOut(Duration),
    /// The server has read the message and does not act on it.
    #[error("the server refuses the message: {0}")]
    Refused(String),
}
