//! Services of provider nomad by their names, for programs that ask the DNS.
//!
//! [`names`] says what a name asks for, `answer.rs` makes answers of what is known, both without I/O; `directory.rs`
//! follows the servers, `listener.rs` receives questions over UDP and TCP, and [`recursion`] passes on those for others.
//!
//! A name that nobody asks for costs one subscription of the node: that to the names of services. Who asks for a service
//! has its instances followed from then on, so that no question waits for the servers but the first.

mod answer;
mod directory;
mod listener;
pub mod names;
pub mod recursion;

use std::net::SocketAddr;
use std::time::Duration;

pub(crate) use listener::Listener;

/// The `dns` block of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    pub address: SocketAddr,
    /// Lowercase, without a dot at its end; see [`names::check_domain`].
    pub domain: String,
    /// How long others may remember an answer.
    pub ttl: Duration,
    /// Who is asked what is not about services; with nobody it is refused. At most [`recursion::RECURSORS_MAX`].
    pub recursors: Vec<SocketAddr>,
}
