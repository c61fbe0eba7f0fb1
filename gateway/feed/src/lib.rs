//! The event stream, straight off the log: what a batch looks like in it, cursors, pages, encodings.
//!
//! What a batch looks like is a pure function of the log up to it (`entries.rs`, `body.rs`), so an event's id,
//! `index.ordinal`, is the same for ever, on any server and after any restart. A reader owns its cursor and nothing
//! else: the newest batches are held once for all readers (`tail.rs`), older ones are folded again (`replay.rs`).
//! Nothing here writes, nothing is held for a slow reader, and nothing knows HTTP: `gateway/http` serves it, the
//! simulator reads it directly.
//!
//! Read `feed.rs` first, then `entries.rs` for what is in the stream, then `stream.rs` for how it reaches a socket.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::iter_over_hash_type))]

mod access;
mod body;
mod cause;
mod direct;
mod encode;
pub mod entries;
mod feed;
mod gap;
mod lag;
mod page;
mod pool;
mod rendered;
mod replay;
mod service;
mod share;
mod storage;
mod stream;
mod tail;
mod view;
pub mod volume;

pub use access::AccessDocument;
pub use direct::{Reader, Segment};
pub use encode::Encoder;
pub use entries::Entry;
pub use feed::{Feed, FeedError, Held, STREAMS_MAX, Source};
pub use gap::GapDocument;
pub use lag::{Lag, Recent};
pub use page::{Condition, Cursor, EventFilter, Everybody, PAGE_BYTES, Page, StreamEvent, Viewer};
pub use replay::{CHECKPOINTS_MAX, PARKED_MAX};
pub use service::registration;
pub use share::{Share, subject_in_order};
pub use storage::StorageDocument;
pub use stream::{HEARTBEAT, Subscription};
pub use tail::{TAIL_BATCHES, TAIL_BYTES};
pub use view::{View, requester};
