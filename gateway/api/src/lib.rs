//! Nomad's public HTTP API (v1), beside its documents: list stubs, requests, answers and query options.
//!
//! Field names, nulls and texts are promises to clients that we did not write. Documents (jobs, nodes,
//! allocations, evaluations, deployments) live in `model::document`. Nothing here reads state, judges a
//! request or knows a status code: the server fills these in, `sdk` reads them. Read [`query`] next.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod acl;
pub mod agent;
pub mod alloc;
pub mod children;
pub mod cursor;
pub mod diff;
pub mod eval;
pub mod event;
pub mod exec;
pub mod explain;
pub mod fork;
pub mod history;
pub mod identity;
pub mod job;
pub mod keyring;
pub mod login;
pub mod node;
pub mod operator;
pub mod plan;
pub mod query;
pub mod scaling;
pub mod search;
pub mod service;
pub mod sink;
pub mod space;
pub mod statuses;
pub mod variable;
pub mod volume;

pub use acl::*;
pub use agent::*;
pub use alloc::*;
pub use children::*;
pub use cursor::*;
pub use eval::*;
pub use event::*;
pub use exec::*;
pub use explain::*;
pub use fork::*;
pub use history::*;
pub use identity::*;
pub use job::*;
pub use keyring::*;
pub use login::*;
pub use node::*;
pub use operator::*;
pub use plan::*;
pub use query::*;
pub use scaling::*;
pub use search::*;
pub use service::*;
pub use sink::*;
pub use space::*;
pub use statuses::*;
pub use variable::*;
pub use volume::*;
