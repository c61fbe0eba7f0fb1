//! Nodes: what they say of themselves, whether they are ready for work, and how they are drained.

mod class;
pub(crate) mod decide;
pub(crate) mod drain;

pub(crate) use class::computed_class;
