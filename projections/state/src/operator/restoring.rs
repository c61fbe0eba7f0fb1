//! Restoring a snapshot: an operator replaces the whole state. Its pieces come through the log like everything else.

use std::sync::Arc;

use base::{Duration, Index};
use bytes::Bytes;
use model::event::{StateChunkGiven, StateRestored};

use super::state::{PIECE_BYTES_MAX, Piece, Restoring};
use crate::moment::Moment;
use crate::rows::{Release, Rows};
use crate::volume::Volumes;
use crate::{Delta, State};

/// How long a restore may wait for its next piece. No image of the state is kept meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);

/// The same in batches, before epoch 3.
const FORGOTTEN_AFTER: u64 = 100_000;

impl State {
    pub(crate) fn chunk_given(&mut self, at: Moment, event: &StateChunkGiven) {
        if event.number == 0 {
            self.restoring = Restoring { restore: event.restore, ..Restoring::default() };
        }
        assert_eq!(self.restoring.restore, event.restore, "one state is restored at a time");
        assert_eq!(self.restoring.pieces.len(), event.number as usize, "the pieces of a state come in order");
        self.restoring.bytes += event.bytes.len() as u64;
        (self.restoring.last, self.restoring.last_time) = (at.index, at.time);
        let continues = at.epoch >= 3 && event.bytes.len() == PIECE_BYTES_MAX;
        let piece = Piece { bytes: Bytes::copy_from_slice(&event.bytes), continues };
        Arc::make_mut(&mut self.restoring.pieces).push(piece);
    }

    /// Replaces everything but the id of the cluster, what its servers sign with, and the remembered requests.
    pub(crate) fn state_restored(&mut self, at: Moment, event: &StateRestored, delta: &mut Delta) {
        assert_eq!(
            self.restoring.restore, event.restore,
            "the state that is restored is the one that was sent"
        );
        assert_eq!(self.restoring.pieces.len(), event.chunks as usize, "all pieces of a state were sent");
        let restored = crate::restore(&self.restoring.image(event.image));
        let mut restored =
            restored.unwrap_or_else(|error| panic!("a state that was decided on restores: {error}"));
        // Indexes of another log may be higher than those of this one: nothing can have changed later than now.
        if restored.index > at.index {
            restored.bring_back_to(at.index);
        }
        restored.cluster = self.cluster;
        // What these servers know, whatever wrote the state.
        restored.raised = self.raised;
        restored.dropped_history = std::mem::take(&mut self.dropped_history);
        restored.requests = std::mem::take(&mut self.requests);
        let keyring = std::mem::replace(&mut restored.keyring, self.keyring.clone());
        restored.keyring.restored(at.index, &keyring);
        let all = at.index;
        restored.tables =
            crate::TableIndexes { nodes: all, jobs: all, evals: all, allocs: all, deployments: all };
        restored.pools.restored(at.index);
        // A cluster without namespaces keeps its digest.
        if self.namespaces.hash() != 0 || restored.namespaces.hash() != 0 {
            restored.namespaces.restored(at.index);
        }
        restored.acl.restored(at.index, &self.acl);
        restored.variables.restored(at.index, &self.variables);
        restored.services.restored(at.index, &self.services);
        restored.claims.restored(at.index, &self.claims);
        restored.cursors.restored(at.index, &self.cursors);
        restored.sinks.restored(at.index, &self.sinks);
        restored.erasure_restored(at, &self.erasure, delta);
        // A recording's state may become that of a cluster that decides itself.
        restored.recording = self.recording.clone();
        if !self.volumes.is_empty() || !restored.volumes.is_empty() {
            restored.volumes.changed = at.index;
        }
        restored.show_allocs_again(at.index);
        *self = restored;
        delta.restored = true;
    }

    /// Drops the pieces of an abandoned restore.
    pub(crate) fn forget_old_pieces(&mut self, at: Moment) {
        let restoring = &self.restoring;
        let abandoned = match at.epoch {
            ..=2 => at.index.0 > restoring.last.0 + FORGOTTEN_AFTER,
            3.. => at.time.since(restoring.last_time) > PATIENCE,
        };
        if !restoring.is_empty() && abandoned {
            self.restoring = Restoring::default();
        }
    }
}

impl State {
    /// Marks allocations that have not ended as changed, so that their nodes fetch them and report their real status.
    fn show_allocs_again(&mut self, now: Index) {
        for row in rows_of(&self.allocs.rows) {
            if !self.allocs.rows[row].client.is_terminal() {
                let alloc = Arc::make_mut(self.allocs.rows.held_mut(row));
                (alloc.modified, alloc.alloc_modified) = (now, now);
            }
        }
    }

    /// Nothing was created or changed after `limit`. Versions of jobs keep what distinguishes them.
    fn bring_back_to(&mut self, limit: Index) {
        let bring = |index: &mut Index| *index = (*index).min(limit);
        for row in 0..self.nodes.hot.len() as u32 {
            let hot = self.nodes.hot.get_mut(row).expect("it is one of the rows");
            [&mut hot.modified, &mut hot.load_changed, &mut hot.silent_since, &mut hot.allocs_reported]
                .into_iter()
                .for_each(bring);
            let cold = Arc::make_mut(self.nodes.cold.get_mut(row).expect("a node has both halves"));
            bring(&mut cold.created);
            cold.messages.iter_mut().for_each(|(_, index)| bring(index));
        }
        for row in 0..self.nodes.classes.len() as u32 {
            bring(&mut self.nodes.classes.get_mut(row).expect("it is one of the rows").capacity_since);
        }
        for row in rows_of(&self.jobs.rows) {
            let job = Arc::make_mut(self.jobs.rows.held_mut(row));
            [&mut job.created, &mut job.modified, &mut job.job_modified, &mut job.summary_modified]
                .into_iter()
                .for_each(bring);
        }
        for row in rows_of(&self.evals.rows) {
            let eval = Arc::make_mut(self.evals.rows.held_mut(row));
            [&mut eval.created, &mut eval.modified, &mut eval.outcome.snapshot].into_iter().for_each(bring);
        }
        for row in rows_of(&self.allocs.rows) {
            let alloc = Arc::make_mut(self.allocs.rows.held_mut(row));
            [&mut alloc.created, &mut alloc.modified, &mut alloc.alloc_modified, &mut alloc.health.modified]
                .into_iter()
                .for_each(bring);
        }
        for row in rows_of(&self.deployments.rows) {
            let deployment = Arc::make_mut(self.deployments.rows.held_mut(row));
            [&mut deployment.created, &mut deployment.modified, &mut deployment.progressed]
                .into_iter()
                .for_each(bring);
        }
        let volumes = self.volumes.iter().map(|(key, volume)| {
            let mut volume = volume.clone();
            [&mut volume.created, &mut volume.modified].into_iter().for_each(bring);
            (key.clone(), volume)
        });
        let changed = self.volumes.changed.min(limit);
        self.volumes = Volumes::of(volumes);
        self.volumes.changed = changed;
        if let Some(autopilot) = &mut self.operator.autopilot {
            [&mut autopilot.created, &mut autopilot.modified].into_iter().for_each(bring);
        }
        if let Some(scheduler) = &mut self.operator.scheduler {
            [&mut scheduler.created, &mut scheduler.modified].into_iter().for_each(bring);
        }
        self.pools.bring_back_to(limit);
        if self.namespaces.hash() != 0 {
            self.namespaces.bring_back_to(limit);
        }
        self.acl.bring_back_to(limit);
        self.variables.bring_back_to(limit);
        self.services.bring_back_to(limit);
        self.claims.bring_back_to(limit);
        self.cursors.bring_back_to(limit);
        self.sinks.bring_back_to(limit);
    }
}

/// The rows of which something is held.
fn rows_of<T: Release>(rows: &Rows<T>) -> Vec<u32> {
    rows.held().map(|(row, _)| row).collect()
}
