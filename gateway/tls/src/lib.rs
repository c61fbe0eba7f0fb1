//! Who is at the other end of a connection: TLS by certificates of a CA, and by the keys that servers share.
//!
//! [`AgentTls`] is the `tls` block of an agent's configuration at work, [`SharedKeys`] proves servers to each other where
//! there are no certificates, [`RpcSecurity`] is what a connection of the node RPC may use of both. [`client`] is the side
//! of those who call the HTTP API, [`authority`] makes certificates. Nothing here knows what is sent afterwards.
//!
//! What must never be here: a way to accept a peer whose proof failed. Who goes without a proof is [`PeerIdentity::Unproven`].
//!
//! Read `agent.rs` next.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod accept;
mod agent;
pub mod authority;
pub mod client;
mod files;
mod policy;
mod roles;
mod rpc;
mod shared_keys;
mod verifier;

pub use accept::end;
pub use agent::{AgentTls, TlsSettings};
pub use files::TlsError;
pub use policy::{MinVersion, cipher_suites};
pub use roles::{PeerIdentity, Role};
pub use rpc::{RpcSecurity, Way};
pub use rustls::{CipherSuite, ClientConfig};
pub use shared_keys::SharedKeys;
pub use tokio_rustls::TlsStream;
