//! Lines of lists and answers that are made of more than one row: what `api` names and `state` knows.

pub(crate) mod decisions;
pub(crate) mod eval;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod nodes_seen;
pub(crate) mod statuses;
pub(crate) mod variable;
pub(crate) mod volume;
pub(crate) mod why;
