//! Job files to documents, in HCL version 2 or JSON; what a document means when it leaves things open; what is
//! wrong with it; and what this release does not execute yet.
//!
//! Pure: no file, clock, network or randomness. Files named by a job file come from the caller ([`Files`]). Text from
//! untrusted sources is bounded in size, depth and work before anything else is done with it.
//!
//! Read [`parse`] for files, then [`canonicalize`] and [`validate`] for what servers do with the result.
//! [`config`] reads agent configuration files with the same parser.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

mod accepted;
mod canonical;
pub mod config;
mod decode;
mod diagnostic;
mod eval;
mod hcl;
mod identities;
mod imply;
mod outline;
mod parse;
mod regions;
mod support;
mod validate;
mod variables;

pub use accepted::{Accepted, accepted};
pub use canonical::{DEFAULT_PRIORITY, apply_defaults, canonicalize, client_form};
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics, Source, Span, nearest};
pub use eval::{BUDGET, Files, NoFiles, RESULT_MAX};
pub use hcl::{NESTING_MAX, SOURCE_MAX};
pub use identities::{ImpliedIdentities, ImpliedIdentity, imply_identities, missing_vault_identities};
pub use imply::{imply_constraints, imply_service_discovery};
pub use model::cron::next_launch;
pub use outline::{Part, outline};
pub use parse::{Parsed, parse, parse_json};
pub use regions::in_region;
pub use support::{Effect, Finding, NoNodes, Nodes, findings};
pub use validate::{FieldError, PRIORITY_MAX, Validation, validate};
pub use variables::{ENVIRONMENT_PREFIX, Variables};
