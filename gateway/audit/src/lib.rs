//! Who asked for what, from where, and what came of it: one entry before a request is carried out and one after it, in the
//! form of Nomad Enterprise.
//!
//! Each entry is linked to the one before it by a hash ([`chain`]), so that a line that was changed, removed or added is
//! found by [`verify`]. Where the entries go is in [`sink`]; which requests need none is in [`filter`]. What a caller is and
//! what a request is belongs to the HTTP gateway.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod chain;
mod entry;
mod filter;
mod sink;

pub use chain::{Link, Verified, VerifyError, verify};
pub use entry::{Auth, Entry, NodeMeta, Payload, Request, RequestMeta, Response, Stage, Subject};
pub use filter::{Filter, FilterError};
pub use sink::{Audit, AuditSettings, Sink};
