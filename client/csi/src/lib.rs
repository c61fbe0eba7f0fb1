//! A client of storage plugins: the Container Storage Interface, version 1, as its public description says it.
//!
//! Calls and their messages live here, how long they may take, when they are tried again and how they fail. No word of
//! allocations, nodes or servers, and nothing is mounted: the crate `node` does that. Begin with [`Plugin`].

mod calls;
mod capability;
mod error;
pub mod messages;
mod plugin;

pub use capability::{ControllerCapabilities, NodeCapabilities, access_mode, capability};
pub use error::CsiError;
pub use messages::Secrets;
pub use plugin::{Description, Patience, Plugin};
pub use tonic::Code;
