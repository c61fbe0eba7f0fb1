//! The servers over the wire, in both directions: [`WireServers`] calls them, [`Endpoints`] answers them.

mod exec;
mod serve;
mod servers;
mod storage;

pub use serve::Endpoints;
pub use servers::WireServers;
