//! First bytes, and the small maps before every message.

use serde::{Deserialize, Serialize};

/// Calls, without multiplexing when it is a connection's first byte.
pub(crate) const RPC: u8 = 0x01;
pub(crate) const RAFT: u8 = 0x02;
/// Multiplexed; every stream carries calls.
pub(crate) const MUX_V1: u8 = 0x03;
/// TLS by certificates; another first byte follows inside.
pub(crate) const TLS: u8 = 0x04;
/// One streaming call.
pub(crate) const STREAMING: u8 = 0x05;
/// Multiplexed; every stream begins with [`RPC`] or [`STREAMING`].
pub(crate) const MUX_V2: u8 = 0x06;
/// Ours: TLS by the keys that servers share. As after [`TLS`], another first byte follows inside.
pub(crate) const KEYED_TLS: u8 = 0x53;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct RequestHeader {
    pub service_method: String,
    pub seq: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct ResponseHeader {
    pub service_method: String,
    pub seq: u64,
    /// Empty when the call went well. A body follows in any case.
    pub error: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct StreamHeader {
    pub method: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct StreamAck {
    /// Empty when the stream is open.
    pub error: String,
}

/// What follows a response header whose error is set: an empty map.
pub(crate) const NO_BODY: [u8; 1] = [0x80];
