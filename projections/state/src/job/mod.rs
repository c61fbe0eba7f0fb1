//! Jobs: their versions, what is wanted of them, and counters over their allocations and evaluations.

pub(crate) mod decide;
pub(crate) mod fold;
pub(crate) mod hash;
mod state;
mod view;

pub use state::{GroupSummary, JobRow, JobState, JobVersion, Jobs, VERSIONS_KEPT};
pub use view::{document, summary};
