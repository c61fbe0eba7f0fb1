//! What is true: rows, and the folds that carry events into rows.
//!
//! No clock, no randomness, no I/O: times and ids stand in the events. Nothing here rejects anything: whether a
//! command may happen is judged in the crate `rules`. One folder for each kind of object (nodes, jobs, ...):
//! `state.rs` holds its rows, `fold.rs` carries events in, `view.rs` shows it as Nomad's API does. All of them meet
//! in one dispatch table, `apply.rs`. Read [`State`] first, then `node/`.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod acl;
pub mod alloc;
mod apply;
pub mod cursor;
mod delta;
pub mod deployment;
mod digest;
mod domain;
mod dropped_history;
pub mod erasure;
pub mod eval;
mod forgotten;
mod fork;
pub mod image;
pub mod job;
pub mod keyring;
mod lazy_doc;
mod moment;
pub mod names;
pub mod namespace;
pub mod node;
pub mod operator;
pub mod pool;
mod recording;
mod requests;
mod row;
mod rows;
pub mod service;
pub mod sink;
mod snapshot;
pub mod variable;
pub mod volume;

pub use apply::FoldError;
pub use delta::Delta;
pub use dropped_history::DroppedHistory;
pub use image::{ImageError, Imager, restore};
pub use lazy_doc::LazyDoc;
pub use moment::Moment;
pub use recording::Recording;
pub use requests::{REQUESTS_KEPT, Remembered};
pub use snapshot::{State, TableIndexes};
