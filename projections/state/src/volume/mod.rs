//! Volumes: storage that is registered once and mounted by many, and who uses it.

pub(crate) mod decide;
mod fold;
mod state;
mod view;

pub use state::{Document, Registered, Volumes};
pub use view::{csi_users, host_document, is_csi_schedulable, mounts, sources};
