use std::time::Duration;

/// Largest header of a call or stream: two short fields.
pub const HEADER_MAX: usize = 64 * 1024;

/// Largest single message of a streaming call. File frames carry 64 KiB of content, terminal frames less.
pub const STREAM_VALUE_MAX: usize = 4 * 1024 * 1024;

/// What one end grants to its peers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a new connection may take to say what it is.
    pub handshake: Duration,
    /// How long the body of a request may take after its header.
    pub body_wait: Duration,
    /// Connections at the same time; further ones are closed at once. An address never has more of them than are free.
    pub connections_max: usize,
    /// Connections from one address; further ones are closed at once. 0 is no bound.
    pub connections_per_ip: usize,
    /// Largest request or response body in bytes. A larger request is refused with an error, a larger
    /// response never leaves.
    pub body_max: usize,
    /// What all requests that are not complete yet may hold together, in bytes. A request beyond it is refused.
    pub bodies_max: usize,
    /// Streams kept open for the next call on one connection; more are closed after their call.
    pub idle_streams_max: usize,
}

impl Limits {
    /// The protocol's customary numbers for a server.
    pub const SERVER: Limits = Limits {
        handshake: Duration::from_secs(5),
        body_wait: Duration::from_secs(60),
        // One a node and as many besides, in a cluster of 10,000 nodes and three servers that lost two of them.
        connections_max: 20_000,
        connections_per_ip: 100,
        body_max: 64 * 1024 * 1024,
        // Eight of the largest.
        bodies_max: 512 * 1024 * 1024,
        idle_streams_max: 64,
    };

    /// The protocol's customary numbers for a node.
    pub const NODE: Limits = Limits { idle_streams_max: 2, ..Limits::SERVER };
}
