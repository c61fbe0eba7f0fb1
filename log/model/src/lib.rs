//! The words of the field: nouns, commands, events, rejections and documents.
//!
//! Nothing here decides or does anything. Read [`noun`] for the states things can be in, [`event`] for what
//! can happen to them, [`document`] for what users write and read.

pub mod batch;
mod codec;
pub mod command;
pub mod cron;
mod digest;
pub mod document;
pub mod event;
pub mod image;
pub mod noun;
mod operator;
mod rejection;
mod report;
mod sparse;
mod template;

pub use batch::{Batch, CommandRecord, LoggedEvent};
pub use command::{Command, CommandKind, Reply, Request};
pub use digest::Digest;
pub use event::{Doc, Event, Subject, Topic};
pub use image::{Chunk, ChunkId, Image};
pub use noun::{
    Actor, Algorithm, AllocId, ClientStatus, DeploymentId, DeploymentStatus, Desired, DrainStatus,
    Eligibility, EvalId, EvalStatus, JobKey, JobStatus, JobType,
};
pub use noun::{NodeId, NodeStatus, RequestId, Trigger, VolumeKey, VolumeKind};
pub use operator::{Autopilot, Preempting, SchedulerRules};
pub use rejection::{Kind, Rejection};
pub use report::Report;
pub use template::{Given, GivenToTask, Template};
