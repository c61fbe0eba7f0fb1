//! What happened to jobs.

use base::Time;
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::object::JobKey;

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobRegistered {
    pub key: JobKey,
    pub version: u64,
    pub document: Doc,
    pub submission: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobStopped {
    pub key: JobKey,
    pub version: u64,
}

/// The job and everything it owned is forgotten, but for allocations that have not ended: those stay until they have.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobPurged {
    pub key: JobKey,
}

/// Whether a version is one to go back to.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobStabilityChanged {
    pub key: JobKey,
    pub version: u64,
    pub stable: bool,
}

/// The periodic job was launched for that moment of its schedule, or by hand: the child is registered beside it.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobLaunched {
    pub key: JobKey,
    pub at: Time,
    pub child: String,
    pub forced: bool,
}

/// The count of a group was set, or a note was added on why it stays: an entry of the group's scaling history.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobScaled {
    pub key: JobKey,
    pub group: String,
    pub scaling: Doc,
}

/// A version got a name to be found by. It is kept as long as it has one.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobVersionTagged {
    pub key: JobKey,
    pub version: u64,
    pub name: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobVersionUntagged {
    pub key: JobKey,
    pub name: String,
}
