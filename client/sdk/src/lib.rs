//! A typed client of Nomad's API (v1), for the `sojourn` program and for yours.
//!
//! One method a call, grouped by noun; each read answers with the index it is valid for, so that the next
//! one can block until something changed. Nothing here retries, prints or reads the environment: the caller
//! decides. Read [`Client`] first, then [`stream`] for logs and events.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod acl;
mod agent;
mod allocs;
mod client;
mod cursors;
mod deployments;
mod error;
mod evals;
mod exec;
mod explain;
mod fetch;
mod files;
mod history;
mod jobs;
mod login;
mod namespaces;
mod nodes;
mod operator;
mod pools;
mod scaling;
mod services;
mod sinks;
mod storage;
pub mod stream;
mod variable;
mod volumes;

pub use agent::ApiRequest;
pub use allocs::{AllocCheckStatus, LogRequest, LogSource};
pub use client::{Answer, Builder, Client, Query};
pub use error::Error;
pub use exec::{ActionRequest, ExecEvent, ExecReader, ExecRequest, ExecWriter};
pub use fetch::fetch;
pub use files::{FileBody, FileRequest};
pub use nodes::NodeMeta;
pub use operator::{KeyChange, RaftPeer};
pub use reqwest::Response;
pub use services::{NamespaceServices, ServiceInstance, ServiceStub};
pub use stream::{EventQuery, Events, Frames, Message, Subscription};
pub use tls::client::ClientOptions as TlsOptions;
pub use variable::VariableChange;
pub use volumes::HostVolumeAnswer;
