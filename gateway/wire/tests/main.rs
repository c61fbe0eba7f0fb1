//! The node RPC, byte by byte.

#[path = "../../tls/tests/certificates/mod.rs"]
mod certificates;
mod messages;
mod rpc;
mod security;
