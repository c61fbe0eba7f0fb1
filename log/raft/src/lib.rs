//! The journal on openraft: replication, elections and what a server must remember to take part in them.
//!
//! Nothing outside of this crate names openraft, and nothing in here looks into a batch. A single server is a
//! cluster of one: it votes, wins, writes its blank entry and commits through the same code.
//! Read [`RaftJournal`] for what it offers, `teller` for the order in which it speaks, `log_store` and `machine`
//! for the two sides openraft asks for, and `log/DESIGN.md` for the reasons.

mod config;
mod gate;
mod journal;
mod log_store;
mod machine;
mod network;
mod stored;
mod teller;

pub use journal::{Member, OpenError, RaftJournal, Settings, Status};
