//! Nodes: who they are, whether they are heard, and how much of them is taken.

pub(crate) mod fold;
pub(crate) mod hash;
mod ports;
mod state;
mod view;

pub use crate::row::{ClassRow, NodeRow};
pub use ports::PortSet;
pub(crate) use state::Class;
pub use state::{Amount, Drain, NodeCold, NodeHot, NodeLoad, Nodes, secret_hash};
pub use view::{assigned, document, last_drain};
