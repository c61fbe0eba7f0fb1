//! What is known of a job besides its versions. Most jobs have nothing of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Time;
use model::Doc;
use model::document::{JobVersionTag, ScalingEvent};
use model::event::{JobLaunched, JobScaled, JobVersionTagged, JobVersionUntagged};
use serde::{Deserialize, Serialize};

use super::state::{JobRow, JobState, Jobs};
use crate::apply::Moment;

/// Lines of a group's scaling history that are remembered.
pub const SCALINGS_KEPT: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// The moment of its schedule that a periodic job was last launched for.
    pub launched: Option<Time>,
    /// Of each group, newest first.
    pub scalings: BTreeMap<String, Vec<ScalingEvent>>,
    /// Names of versions, at most one each.
    pub tags: BTreeMap<u64, JobVersionTag>,
}

impl Notes {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("notes hold only what msgpack can write")
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Notes> {
        Doc::try_read_from(bytes)
    }
}

impl JobState {
    /// What the version was named.
    pub fn tag(&self, version: u64) -> Option<&JobVersionTag> {
        self.notes.as_ref()?.tags.get(&version)
    }

    /// The version of that name.
    pub fn tagged(&self, name: &str) -> Option<u64> {
        let tags = &self.notes.as_ref()?.tags;
        tags.iter().find(|(_, tag)| tag.name == name).map(|(version, _)| *version)
    }

    /// How the group was scaled, newest first.
    pub fn scalings(&self, group: &str) -> &[ScalingEvent] {
        self.notes.as_ref().and_then(|notes| notes.scalings.get(group)).map_or(&[], Vec::as_slice)
    }

    /// The moment a periodic job was last launched for; before the first time, when its newest version came.
    pub fn last_launch(&self) -> Time {
        let submitted = self.current().submitted;
        self.notes.as_ref().and_then(|notes| notes.launched).map_or(submitted, |at| at.max(submitted))
    }

    fn notes_mut(&mut self) -> &mut Notes {
        Arc::make_mut(self.notes.get_or_insert_default())
    }
}

impl Jobs {
    pub(crate) fn launched(&mut self, at: Moment, event: &JobLaunched) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let notes = job.notes_mut();
        notes.launched = notes.launched.max(Some(event.at));
        row
    }

    pub(crate) fn scaled(&mut self, at: Moment, event: &JobScaled) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let (time, create_index) = (at.time.0.max(0).unsigned_abs(), at.index.0);
        let scaling = ScalingEvent { time, create_index, ..event.scaling.read() };
        let history = job.notes_mut().scalings.entry(event.group.clone()).or_default();
        history.insert(0, scaling);
        history.truncate(SCALINGS_KEPT);
        row
    }

    pub(crate) fn version_tagged(&mut self, at: Moment, event: &JobVersionTagged) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        let tag = JobVersionTag {
            name: event.name.clone(),
            description: event.description.clone(),
            tagged_time: at.time.0,
        };
        job.notes_mut().tags.insert(event.version, tag);
        row
    }

    pub(crate) fn version_untagged(&mut self, at: Moment, event: &JobVersionUntagged) -> JobRow {
        let (row, job) = self.noted(at, &event.key);
        job.notes_mut().tags.retain(|_, tag| tag.name != event.name);
        job.drop_old_versions();
        row
    }

    fn noted(&mut self, at: Moment, key: &model::JobKey) -> (JobRow, &mut JobState) {
        let row = self.known(key);
        let job = self.get_mut(row);
        job.modified = at.index;
        (row, job)
    }
}
