//! The documents of Nomad's API: jobs, nodes, allocations and what hangs on them.
//!
//! One definition serves job files, the HTTP API, the node RPC and the log. Field names in JSON are the
//! API's own. An `Option` is `None` where the sender left the field out; [`shape`] explains the types
//! that are written differently from Rust's. Read [`job`] first.

pub mod acl;
pub mod alloc;
pub mod consul;
pub mod eval;
pub mod explain;
pub mod fork;
pub mod input;
pub mod job;
pub mod login;
pub mod namespace;
pub mod node;
pub mod pool;
pub mod resource;
pub mod scaling;
pub mod service;
pub mod shape;
pub mod sizes;
pub mod task;
mod timestamp;
pub mod volume;

pub use acl::*;
pub use alloc::*;
pub use consul::*;
pub use eval::*;
pub use explain::*;
pub use fork::*;
pub use job::*;
pub use login::*;
pub use namespace::*;
pub use node::*;
pub use pool::*;
pub use resource::*;
pub use scaling::*;
pub use service::*;
pub use shape::{Bytes, Duration, List, Map, Timestamp};
pub use task::*;
pub use volume::*;
