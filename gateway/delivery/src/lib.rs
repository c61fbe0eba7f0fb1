//! What servers and nodes send to other systems has in common: which addresses may be connected to, messages of syslog, logs
//! of OpenTelemetry, and how it goes.
//!
//! Who sends what, and when it is tried again, is decided by those who use it: sinks of the event stream
//! (`gateway/sinks`), and the output of tasks (`client/node/src/log_shipping`). No secret is kept here.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::iter_over_hash_type))]

pub mod address;
pub mod dial;
pub mod otlp;
mod reports;
pub mod syslog;

pub use address::AddressRules;
pub use reports::{Failed, Report, Reports};
