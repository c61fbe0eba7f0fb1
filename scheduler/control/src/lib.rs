//! The leader's loops: the sequencer, the broker, the workers, the heartbeats, the deployments and
//! the drains.
//!
//! Each is a machine without a clock of its own: it is told the time and says when it wants to be called
//! again. Only `driver.rs` reads the clock, draws seeds and owns threads. No rule about nodes or jobs lives
//! here: those stand in `state` and `placement`. Read [`sequencer`] first, then [`broker`], then [`Control`].

mod ask;
pub mod broker;
pub mod deployments;
pub mod drains;
mod driver;
pub mod heartbeats;
pub mod images;
mod inbox;
pub mod lanes;
pub mod launches;
mod moments;
pub mod sequencer;
pub mod upstream;
mod worker;

pub use driver::{Control, Leadership, Settings, Starting, prepare};
pub use inbox::Inbox;
pub use sequencer::{Receipt, SubmitError};
pub use upstream::{LeaderAnswer, LeaderCall, Upstream};
pub use worker::{WorkerInfo, WorkerStatus};
