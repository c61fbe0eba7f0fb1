//! The event stream over HTTP, and the histories of objects. What is in the stream, and the position of a reader, is
//! `gateway/feed`.

mod acks;
mod chains;
mod cursors;
mod histories;
mod query;
mod reader;
mod route;
mod sinks;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use acks::Acks;
pub use histories::line as history_line;
pub(crate) use histories::{find_alloc, may_see, transition, unknown_alloc};
pub(crate) use route::router;
pub(crate) use sinks::gauges as sink_gauges;
pub use source::{feed, states};
