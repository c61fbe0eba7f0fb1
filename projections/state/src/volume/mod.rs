//! Volumes: storage that is registered once and mounted by many, and who uses it.

mod claims;
mod expansions;
mod fold;
mod state;
mod view;

pub use claims::{Claimed, Claims};
pub use expansions::{Expansion, Expansions};
pub use state::{Document, Registered, Volumes};
pub use view::{
    MANY_WRITERS, csi_claims, csi_users, host_document, host_users, is_csi_schedulable, is_shared_by_jobs,
    is_used, mounts, sources,
};
