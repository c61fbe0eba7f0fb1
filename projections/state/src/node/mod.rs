//! Nodes: who they are, whether the servers are in contact with them, and how much of them is used.

pub(crate) mod fold;
pub(crate) mod hash;
mod ports;
mod state;
mod view;

pub use crate::row::{ClassRow, NodeRow};
pub use ports::PortSet;
pub(crate) use state::Class;
pub use state::{Amount, Drain, NodeCold, NodeHot, NodeLoad, Nodes, secret_hash};
pub use view::{assigned, assigned_index, document, last_drain, migrations, nomad_release};
