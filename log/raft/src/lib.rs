//! The journal on openraft: replication, elections and what a server must remember to take part in them.
//!
//! Nothing outside of this crate names openraft, and nothing in here looks into a batch. A single server is a
//! cluster of one: it votes, wins, writes its blank entry and commits through the same code.
//! Read [`RaftJournal`] for what it offers, [`Peers`] for what it needs, `proposals` and `notifier` for what a proposer is
//! notified of and in which order, `message` for what servers send each other, `bounds` for what of it is dropped,
//! `log_store` and `machine` for the two sides openraft asks for, and `log/DESIGN.md` for the reasons.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod bounds;
mod config;
mod driving;
mod formats;
mod images;
mod incoming;
mod journal;
mod leadership;
mod log_store;
mod machine;
mod members;
mod message;
mod network;
mod notifier;
mod open;
mod peers;
mod proposals;
mod reads;
mod recovery;
mod runtime;
mod since_image;
mod status;

pub use ::journal::store::{HistoryFile, HistoryStatus, RETENTION, Retention};
pub use config::Timings;
pub use driving::Driving;
pub use journal::{Archive, ArchivePlace, Found, Keep, OpenError, RaftJournal, Settings};
pub use members::MemberError;
pub use message::MESSAGE_BYTES_MAX;
pub use peers::{NoPeers, PeerError, Peers};
pub use recovery::{LogEnd, go_on_alone, log_end, logged_members};
pub use since_image::{TAIL, Tail};
pub use status::{Member, Progress, Status};
