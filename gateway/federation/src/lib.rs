//! What a region takes over from other regions, without a connection to them.
//!
//! Pure: a [`Follower`] says what it needs next, is given what came of that, and says what it needs then. `server` drives
//! it over connections, the simulator over links that are cut. Its state is its position in one list: all else follows from what is here
//! and what the authoritative region answers, so that a new leader, and a region that was cut off, catch up with
//! their first reading. [`rollouts`] is the same for jobs that are in several regions. Read `follower.rs` first.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod compare;
mod follower;
mod logins;
pub mod rollouts;

pub use compare::List;
pub use follower::{Answer, Failure, Follower, Need, Outcome, Submitted};
pub use logins::changed as logins_changed;
