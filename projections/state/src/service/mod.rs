//! Services: the addresses that allocations can be reached at, by name.

mod fold;
mod state;

pub use state::{Registered, SHARDS, Services};
pub(crate) use state::{Shard, shard_of};
