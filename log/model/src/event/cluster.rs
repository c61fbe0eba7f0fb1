//! What happened to the cluster as a whole: its configuration, node pools, namespaces, volumes, a restored state.

use base::{Index, Time, Uuid};
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::object::VolumeKey;
use crate::operator::{Autopilot, SchedulerRules};

/// The cluster began.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ClusterFounded {
    pub cluster: Uuid,
}

/// Every server knows this epoch: from the next batch on it is the cluster's.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EpochRaised {
    pub epoch: u16,
}

/// A server has dropped the oldest part of its history, or an older part can be read again: its archive was away.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct HistoryDropped {
    /// Its name.
    pub server: String,
    /// The oldest batch that can still be read there, and when that was decided.
    pub oldest: Index,
    pub time: Time,
}

/// A pool of nodes was made or changed, by an operator or by the first node in it.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodePoolUpserted {
    pub name: String,
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodePoolDeleted {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NamespaceUpserted {
    pub name: String,
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NamespaceDeleted {
    pub name: String,
}

/// A volume became known, or is described anew.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VolumeRegistered {
    pub volume: VolumeKey,
    pub document: Doc,
}

/// The volume is forgotten.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VolumeDeregistered {
    pub volume: VolumeKey,
}

/// How the leader looks after the servers from here on.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AutopilotConfigured {
    pub rules: Autopilot,
}

/// How the scheduler works from here on.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct SchedulerConfigured {
    pub rules: SchedulerRules,
}

/// A piece of a state that an operator puts in place of what is there. Number 0 begins anew.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct StateChunkGiven {
    pub restore: Uuid,
    pub number: u32,
    pub bytes: Vec<u8>,
}

/// The pieces are complete: from here on their state is what is true. `image` is the index it was saved at.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct StateRestored {
    pub restore: Uuid,
    pub chunks: u32,
    pub image: Index,
}
