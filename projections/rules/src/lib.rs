//! What may happen: each command is judged on the state, and becomes events or a rejection.
//!
//! Rules run once, on the leader, so they may change from release to release: what they decided stands in the log as
//! events, and folding those (`state`) needs no rule. No clock, no randomness, no I/O: time and seed come in a
//! [`Context`]. Rules never change a state; a [`fork`] shows what a command would lead to.
//!
//! Read [`decide`] first, the table of all commands, then `node/decide.rs` as an example of rules.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod acl;
mod alloc;
mod claim;
pub mod cursor;
mod decide;
mod decision;
pub mod deployment;
pub mod erasure;
mod eval;
mod expansion;
pub mod fork;
mod gc;
mod job;
mod keyring;
pub mod leftovers;
mod namespace;
mod node;
mod operator;
mod plan;
mod pool;
mod recording;
pub mod service;
pub mod sink;
pub mod variable;
mod volume;

pub use claim::external_id;
pub use decide::decide;
pub use decision::{Context, Decision, repeated};
pub use gc::{COLLECTED_MAX, due as job_due};
pub use job::decide::{JOB_COUNT_MAX, check_counts};
pub use volume::{
    check_csi as check_csi_volume, check_host as check_host_volume, described_anew as csi_volume_anew,
};
