//! The leader: the only writer of the log, the controllers that act on what is committed, and the workers.
//!
//! Each is a machine without threads, clock or I/O: time comes in as a parameter, what has to be done comes out.
//! [`replica`] is a server's part in the log, [`leader`] what only a leader does, [`worker`] a scheduler. `driver` is
//! their only contact with the world: it owns the threads, reads the clock and draws seeds. The simulator drives the
//! same machines. No rule about nodes or jobs lives here: those stand in `state` and `placement`. Read [`replica`]
//! first, then [`sequencer`], [`leader`], [`worker`], then [`Control`]. [`whatif`] runs the same machines on forks of the state.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::iter_over_hash_type))]

mod driver;
pub mod lanes;
pub mod leader;
pub mod leader_client;
pub mod replica;
pub mod sequencer;
pub mod whatif;
pub mod worker;
mod written;

pub use driver::{
    Control, Inbox, Leadership, Settings, Starting, Subject, Waiter, WorkerInfo, WorkerPool, WorkerStatus,
    prepare,
};
pub use leader::broker::{self, BrokerSettings};
pub use leader::garbage::GarbageSettings;
pub use leader::heartbeats::{self, HeartbeatSettings};
pub use leader::locks::NotRenewed;
pub use leader_client::{LeaderAnswer, LeaderCall, LeaderClient};
pub use sequencer::{Receipt, SubmitError};
