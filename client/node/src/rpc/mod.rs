//! The servers over the wire, in both directions: [`servers`] calls them, [`serve`] answers them.

mod serve;
mod servers;

pub use serve::Endpoints;
pub use servers::WireServers;
