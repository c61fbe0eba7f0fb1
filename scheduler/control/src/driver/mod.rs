//! The threads, the clock and the entropy around the machines: a running server's [`Control`].
//!
//! One thread has the [`Replica`](crate::replica::Replica), one waits for the deadlines of the
//! [`Leader`](crate::leader::Leader), one keeps images, and each worker has its own. Nothing here judges or counts.

mod at_work;
mod changes;
mod clock;
mod control;
mod forward;
mod images;
mod inbox;
mod recent;
mod shared;
mod threads;
mod timings;
mod workers;

pub use changes::{Subject, Waiter};
pub use control::{Control, Settings, Starting, prepare};
pub use inbox::Inbox;
pub use shared::Leadership;
pub use workers::{WorkerInfo, WorkerPool, WorkerStatus};
