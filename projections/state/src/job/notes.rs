//! Launches, scaling history and version tags of a job. Most jobs have none of them.

use std::collections::BTreeMap;

use base::Time;
use model::Doc;
use model::document::{JobVersionTag, ScalingEvent};
use serde::{Deserialize, Serialize};

/// Lines of a group's scaling history that are remembered.
pub const SCALINGS_KEPT: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// The moment of its schedule that a periodic job was last launched for.
    pub launched: Option<Time>,
    /// Of each group, newest first.
    pub scalings: BTreeMap<String, Vec<ScalingEvent>>,
    /// Tags of versions, at most one each.
    pub tags: BTreeMap<u64, JobVersionTag>,
    /// What the job's status was when each older version was replaced, since epoch 3.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u64, String>,
}

impl Notes {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("notes hold only what msgpack can write")
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Notes> {
        Doc::try_read_from(bytes)
    }
}
