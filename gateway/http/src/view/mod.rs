//! Lines of lists and answers that are made of more than one row: what `api` names and `state` knows.

pub mod eval;
pub mod job;
pub mod node;
pub mod statuses;
pub mod why;
