//! The node RPC, byte by byte.

mod messages;
mod rpc;
