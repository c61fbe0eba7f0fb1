//! Fetches an artifact: downloads it, checks it, unpacks it, and puts it below a directory.
//!
//! All of it is done by a child of the agent: our own program, started again as `<program> artifact`. The child reads one
//! [`Request`] from its input, confines itself (`sandbox.rs`), fetches, and prints one [`Answer`]. What it fetches comes from
//! strangers, so nothing of it is ever trusted: names are resolved by the kernel below the destination ([`below`]), links
//! and devices are refused (`unpack.rs`), and there is a bound for everything that can grow ([`Limits`]).
//!
//! `snapshot.rs` is used by the agent itself, for the data that an allocation leaves to the one that replaces it on another
//! node: tasks made it, so it is as little trusted.
//!
//! What must never be here: the agent's settings and tasks. What a job says becomes a [`Request`] in `client/node`, which
//! also ends the child at its deadline.
//!
//! Read [`request`] first, then `child.rs`: what happens in which order.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod below;
mod checksum;
mod child;
mod git;
mod hg;
mod http;
mod place;
mod program;
pub mod request;
mod s3;
mod sandbox;
pub mod snapshot;
pub mod source;
mod unpack;

use std::process::ExitCode;

pub use request::{Answer, ExtraPath, Limits, Mode, Owner, Request, Rights};

/// The first argument of a child.
///
/// A program that embeds the agent calls [`main`] when its own first argument is this, before anything else.
pub const SUBCOMMAND: &str = "artifact";

/// Serves one request and returns the code to exit with: 0 when there was an answer, whatever it says.
pub fn main() -> ExitCode {
    child::main()
}

/// Why there is no artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// What the job says makes no sense: another try ends the same.
    #[error("{0}")]
    Invalid(String),
    /// It may go better another time.
    #[error("{0}")]
    Failed(String),
}

impl FetchError {
    pub(crate) fn invalid(text: impl std::fmt::Display) -> FetchError {
        FetchError::Invalid(text.to_string())
    }

    pub(crate) fn failed(text: impl std::fmt::Display) -> FetchError {
        FetchError::Failed(text.to_string())
    }
}

impl From<std::io::Error> for FetchError {
    fn from(error: std::io::Error) -> FetchError {
        FetchError::failed(error)
    }
}
