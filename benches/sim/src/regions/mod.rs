//! The third layer: several regions, each a whole cluster of the first layer with its own log, leaders and nodes, and links between
//! them that are cut, slow and forgetful.
//!
//! Each server has the followers of `federation` that a real one has; what they need goes over the links or to the
//! leader of their own region. Read `world.rs` first, then `tasks.rs` for what servers do because of other regions, and `calm.rs`
//! for what must hold in the end.

mod calm;
mod clients;
mod equal;
mod link;
mod objects;
mod options;
mod order;
mod rollouts;
mod source;
mod spread;
mod tasks;
mod world;

pub use world::run;
