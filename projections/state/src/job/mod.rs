//! Jobs: their versions, what is wanted of them, and counters over their allocations and evaluations.

pub(crate) mod children;
pub(crate) mod decide;
pub(crate) mod fold;
pub(crate) mod hash;
mod notes;
pub(crate) mod scale;
mod state;
pub(crate) mod tags;
mod view;

pub use children::{ChildrenSummary, PAYLOAD_MAX};
pub use notes::{Notes, SCALINGS_KEPT};
pub use state::{GroupSummary, JobRow, JobState, JobVersion, Jobs, VERSIONS_KEPT};
pub use tags::TAGS_MAX;
pub use view::{document, summary};
