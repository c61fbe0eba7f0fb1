//! Jobs: their versions, what is wanted of them, and counters over their allocations and evaluations.

mod children;
pub(crate) mod fold;
pub(crate) mod hash;
mod notes;
mod state;
mod view;

pub use crate::row::JobRow;
pub use children::ChildrenSummary;
pub use notes::{Notes, SCALINGS_KEPT};
pub use state::{GroupSummary, JobState, JobVersion, Jobs, VERSIONS_KEPT};
pub use view::{document, summary};
