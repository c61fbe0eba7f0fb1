//! A typed client of the v1 contract, for the `sojourn` program and for yours.
//!
//! One method a call, grouped by noun; each read answers with the index it is valid for, so that the next
//! one can block until something changed. Nothing here retries, prints or reads the environment: the caller
//! decides. Read [`Client`] first, then [`stream`] for logs and events.

mod agent;
mod allocs;
mod client;
mod deployments;
mod error;
mod evals;
mod exec;
mod explain;
mod jobs;
mod nodes;
mod operator;
mod pools;
pub mod stream;

pub use agent::ApiRequest;
pub use allocs::{LogRequest, LogSource};
pub use client::{Answer, Builder, Client, Query};
pub use error::Error;
pub use exec::{ExecEvent, ExecReader, ExecRequest, ExecWriter};
pub use operator::RaftPeer;
pub use reqwest::Response;
pub use stream::{EventQuery, Events, Frames, Message, Subscription};
