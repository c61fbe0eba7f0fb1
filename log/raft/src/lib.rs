//! The journal on openraft: replication, elections and what a server must remember to take part in them.
//!
//! Nothing outside of this crate names openraft, and nothing in here looks into a batch. A single server is a
//! cluster of one: it votes, wins, writes its blank entry and commits through the same code.
//! Read [`RaftJournal`] for what it offers, [`Peers`] for what it needs, `gate` and `teller` for what a proposer is
//! told and in which order, `message` for what servers say to each other, `log_store` and `machine` for the two sides
//! openraft asks for, and `log/DESIGN.md` for the reasons.

mod answer;
mod config;
mod driving;
mod gate;
mod images;
mod journal;
mod leadership;
mod ledger;
mod log_store;
mod machine;
mod members;
mod message;
mod network;
mod open;
mod peers;
mod reads;
mod runtime;
mod status;
mod stored;
mod teller;

pub use ::journal::store::{RETENTION, Retention};
pub use config::Timings;
pub use driving::Driving;
pub use journal::{Found, OpenError, RaftJournal, Settings};
pub use ledger::{TAIL, Tail};
pub use members::MemberError;
pub use message::MESSAGE_BYTES_MAX;
pub use peers::{NoPeers, PeerError, Peers};
pub use status::{Member, Progress, Status};
