//! What is true: rows, the rules that decide commands, and the folds that carry events into rows.
//!
//! No clock, no chance, no I/O: time and ids arrive with the command or stand in the event. One noun, one
//! folder: `state.rs` holds its rows, `decide.rs` judges commands, `fold.rs` carries events in. All nouns
//! meet in two dispatch tables only: [`decide`] and `apply.rs`. Read [`State`] first, then `node/`.

pub mod alloc;
mod apply;
mod decide;
mod delta;
pub mod deployment;
mod digest;
pub mod eval;
mod fork;
mod gc;
pub mod image;
pub mod job;
mod kept;
pub mod named;
pub mod namespace;
pub mod node;
pub mod operator;
pub mod plan;
pub mod pool;
mod requests;
mod rows;
mod snapshot;
pub mod volume;

pub use apply::{FoldError, Moment};
pub use decide::{Context, Decision, decide};
pub use delta::Delta;
pub use gc::COLLECTED_MAX;
pub use image::{ImageError, Imager, restore};
pub use kept::Kept;
pub use requests::{REQUESTS_KEPT, Remembered};
pub use snapshot::{State, TableIndexes};
