//! The node RPC: calls between node agents and servers, over one TCP connection, in both directions.
//!
//! From the outside in: `listener` reads a connection's first byte, [`yamux`] makes many streams of it,
//! `dispatch` answers the calls on each, [`Connection`] makes calls the other way, [`messages`] are what
//! calls carry. Nothing here knows what a call means: the [`Handler`] does. What the peer of a connection has proved
//! to be comes from `secure`, and what that allows is the handler's business too. There is no raft on this port; it is
//! rejected by name.
//!
//! Read `connection.rs` next.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod budget;
mod connection;
mod dispatch;
mod error;
mod frames;
mod limits;
mod listener;
pub mod messages;
mod migration;
pub mod payload;
mod protocol;
mod secure;
mod values;
pub mod yamux;

pub use bytes::Bytes;
pub use connection::{Connection, dial};
pub use dispatch::Handler;
pub use error::{RemoteError, RemoteErrorKind, RpcError};
pub use frames::{FrameReceiver, FrameSender, Frames, Opening, PeerGone};
pub use limits::{HEADER_MAX, Limits, STREAM_VALUE_MAX};
pub use listener::{CallerAddress, ConnectionCounts, ConnectionSlot, FORWARDED_FOR, TooMany, serve};
pub use migration::{is_migrate_token, migrate_token};
pub use tls::{PeerIdentity, RpcSecurity};
