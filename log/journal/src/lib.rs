//! The log: how a batch is written down, where it is kept, and the narrow port everyone else sees.
//!
//! Never here: what an event means, consensus, an async runtime. Nothing is decided and nothing is folded.
//! Read [`port`] for what the leader's loops use, [`frame`] for the bytes of a batch, [`store`] for the files
//! under it, and `log/DESIGN.md` for the reasons.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod frame;
mod memory;
pub mod port;
mod registry;
pub mod store;
mod upcasts;

pub use frame::{EncodedBatch, FrameError, decode, encode};
pub use memory::{HELD_MAX, MemoryJournal};
pub use port::{
    Freshness, IndexCallback, Journal, KeepError, NotLeading, ProposeError, ReadError, Sink, first_batch,
};
