//! The event stream, straight off the log.
//!
//! What a batch looks like in the stream is a pure function of the log up to it (`outline.rs`, `body.rs`), so an
//! event's id, `index.ordinal`, is the same for ever, on any server and after any restart. A reader owns its cursor
//! and nothing else: the newest batches are kept once for all readers (`tail.rs`), older ones are folded again
//! (`replay.rs`). Nothing here writes, and nothing is kept per reader that is slow.
//!
//! Read `feed.rs` first, then `outline.rs` for what is told, then `stream.rs` for how it reaches a socket.

mod ask;
mod body;
mod direct;
mod encode;
mod feed;
mod outline;
mod page;
mod replay;
mod route;
mod scene;
mod stream;
mod tail;
#[cfg(test)]
mod tests;

pub use direct::{Reader, Stretch};
pub use feed::{Feed, FeedError, STREAMS_MAX, Source};
pub use outline::Head;
pub use page::Allows;
pub(crate) use route::{router, transition};
