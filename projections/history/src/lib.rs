//! What was true: any past state, which events an allocation or another object appears in, and its life read back from them.
//!
//! The log is the only truth here. The index beside it is derived: it may lag, and it may be thrown away at any
//! time, because it is rebuilt from the log. Never here: a decision, a row of current state, a clock that anything
//! depends on. Read [`History`] first, then `entries.rs` for what is indexed, `transition.rs` and
//! `line.rs` for what is shown, `causes/` for what led to what, `spans/` for how long it took, and `moments/` for states.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod causes;
mod entries;
mod follow;
mod history;
mod index;
mod job_documents;
mod label;
mod line;
mod moments;
mod object;
mod spans;
mod transition;
mod yielding;

pub use causes::{
    CHAIN_DEPTH_MAX, CHAIN_FACTS_MAX, Chain, Direction, Fact, Facts, How, Link, Root, Scope, Start,
};
pub use entries::Position;
pub use history::{History, HistoryError, Life, LogPage, Story};
pub use index::EVENTS_MAX;
pub use line::Line;
pub use moments::{IMAGES_MAX, MEMORY, States, Verified};
pub use object::Object;
pub use spans::{Span, SpanId, TraceId, Traced, Traces, Value};
pub use transition::{Placement, Transition, View};
