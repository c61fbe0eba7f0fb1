//! Composition: opens the log, the state, the loops and the speakers, and decides nothing.

pub mod rpc;
mod sessions;

pub use sessions::Sessions;
