//! Moving what people configured from one cluster to another: between Nomad and Sojourn, or two of either.
//!
//! [`Inventory::read`] reads it from any server that speaks Nomad's API, [`Inventory::from_snapshot`] from a file that such a
//! server wrote; [`export`] writes it into a folder with a script
//! for Nomad's command line, [`import`] writes it to another server. What a cluster does by itself (allocations,
//! evaluations, deployments, nodes) is not here: the other cluster decides anew. The server that is read is never
//! written to.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod compare;
mod export;
mod import;
mod names;
mod object;
mod read;
mod script;
mod snapshot;

pub use export::{ExportError, export};
pub use import::{Change, Import, Jobs, Line, import};
pub use object::{JobCopy, Kind, Object};
pub use read::{Inventory, Note, Scope};
pub use snapshot::SnapshotError;
