//! Status descriptions. Clients compare some of them, so they are the same as Nomad's.

pub use state::alloc::endings::{MIGRATING, NOT_NEEDED, RESCHEDULED, UPDATING};

pub const ORIGINAL_BACK: &str = "alloc not needed due to disconnected client reconnect";
pub const LOST: &str = "alloc is lost since its node is down";
pub const TAINTED: &str = "alloc not needed as node is tainted";

pub const BLOCKED: &str = "created to place remaining allocations";
pub const CONFLICTS: &str = "created due to placement conflicts";
pub const RESCHEDULE_LATER: &str = "created for delayed rescheduling";
pub const DISCONNECT_TIMEOUT: &str = "created for delayed disconnect timeout";
/// Not in Nomad: it has no such evaluation any more.
pub const ROLLING: &str = "created to continue a rolling update";
