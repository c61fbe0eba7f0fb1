//! The shared vocabulary: objects and their states, commands, events, rejections and documents.
//!
//! Nothing here decides or does anything. Read [`object`] for the states things can be in, [`event`] for what
//! can happen to them, [`document`] for what users write and read.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod batch;
mod claim;
mod codec;
pub mod command;
pub mod cron;
mod cursor;
mod digest;
pub mod document;
mod erasure;
pub mod event;
pub mod image;
mod keyring;
mod leftovers;
mod login;
pub mod object;
mod operator;
mod partial;
mod recording;
mod rejection;
mod report;
mod rollout;
mod service;
mod sink;
mod template;
mod variable;

pub use batch::{Batch, CommandRecord, EPOCH, FIRST_EPOCH, LoggedEvent};
pub use claim::CsiClaim;
pub use command::{Command, CommandKind, Reply, Request};
pub use cursor::{EventCursorSettings, EventPosition, SPLIT_CURSOR_EPOCH, SetEventCursor};
pub use digest::Digest;
pub use erasure::{KEY_TREE_EPOCH, KeyTreeCommand, auth_method_secrets, token_secrets};
pub use event::{Doc, Event, Subject, Topic};
pub use image::{Chunk, ChunkId, Image};
pub use keyring::{SealedData, SealedKey, SigningAlgorithm, TokenSecret};
pub use login::IssueLoginToken;
pub use object::{
    AGENT_MAX, Actor, Algorithm, AllocId, Caller, ClientStatus, DeploymentId, DeploymentStatus, Desired,
    DrainStatus, Eligibility, EvalId, EvalStatus, JobKey, JobStatus, JobType,
};
pub use object::{NodeId, NodeStatus, RequestId, Trigger, VolumeKey, VolumeKind};
pub use operator::{Autopilot, Preempting, SchedulerRules};
pub use recording::{OBSERVED_MAX, Observation, Observe, ObservedKey};
pub use rejection::{Rejection, RejectionKind};
pub use report::Report;
pub use service::{RegisterService, Service, ServiceEnd, ServiceKey};
pub use sink::{
    EventSinkSettings, EventSinkTarget, KAFKA_SINK_EPOCH, OTLP_TRACES_EPOCH, OtlpSignal, ParkEventSink,
    SetEventSink, SyslogTransport, cursor_of_sink, sink_of_cursor,
};
pub use template::{Given, GivenToTask, Template};
pub use variable::{SealedItems, VariableKey, VariableLock};
