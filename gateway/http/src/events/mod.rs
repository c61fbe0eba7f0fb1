//! The event stream over HTTP, and the history of an allocation. What is in the stream, and the position of a reader, is
//! `gateway/feed`.

mod query;
mod route;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use route::{router, transition};
pub use source::feed;
