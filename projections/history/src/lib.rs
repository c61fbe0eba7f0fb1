//! What was true: which events an allocation appears in, and its life read back from them.
//!
//! The log is the only truth here. The index beside it is derived: it may lag, and it may be thrown away at any
//! time, because it is rebuilt from the log. Never here: a decision, a row of current state, a clock that anything
//! depends on. Read [`History`] first, then `entries.rs` for what is indexed and `transition.rs` for what is shown.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod entries;
mod follow;
mod history;
mod index;
mod transition;

pub use history::{History, HistoryError};
pub use transition::{Transition, View};
