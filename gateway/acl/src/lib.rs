//! Access control without state: the language of policies, and what a caller may do who holds some of them.
//!
//! Pure. Read [`Policy::parse`] for the language, then [`Acl`], which answers questions. Who a caller is, and which
//! policies follow from that, is found out in `http-gateway`; which ones somebody gets who logs in, in [`login`].

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod capability;
mod globs;
pub mod login;
mod merge;
mod parse;
mod policy;

pub use capability::{
    Capability, HostVolumeCapability, Level, Member, OperatorCapability, PoolCapability, Set,
    VariableCapability,
};
pub use merge::{Acl, Claims};
pub use policy::{NamedRule, NamespaceRule, OperatorRule, PathRule, Policy};
