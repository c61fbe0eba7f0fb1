//! Of which other cluster this log is a recording, if it is one.

use std::sync::Arc;

use base::{Index, StableHash, Time};
use model::event::{JobEndObserved, ObservationGap, Observed};
use serde::{Deserialize, Serialize};

use crate::State;
use crate::domain::Domain;
use crate::job::Jobs;
use crate::moment::Moment;
use crate::row::JobRow;

/// Everything else in the state was read of another cluster: nothing here decides or acts on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The address of that cluster.
    pub source: String,
    /// The newest index of that cluster that was seen.
    pub index: u64,
    /// When something new was last seen.
    pub seen: Time,
    /// How often something could not be read any more.
    pub gaps: u64,
    /// The batch with which it began.
    pub began: Index,
}

impl State {
    pub(crate) fn observed(&mut self, at: Moment, event: &Observed) {
        let (gaps, began) =
            self.recording.as_ref().map_or((0, at.index), |before| (before.gaps, before.began));
        let (source, index, seen) = (event.source.clone(), event.index, event.seen);
        self.recording = Some(Arc::new(Recording { source, index, seen, gaps, began }));
    }

    pub(crate) fn observation_gap(&mut self, at: Moment, event: &ObservationGap) {
        let (gaps, seen, began) =
            self.recording.as_ref().map_or((0, at.time, at.index), |r| (r.gaps, r.seen, r.began));
        let (source, index) = (event.source.clone(), event.to);
        self.recording = Some(Arc::new(Recording { source, index, seen, gaps: gaps + 1, began }));
    }

    /// Zero for a log that is no recording: its digests stay what they were.
    pub(crate) fn recording_hash(&self) -> u64 {
        let Some(recording) = &self.recording else { return 0 };
        let Recording { source, index, seen, gaps, began } = &**recording;
        let mut hash = StableHash::new(Domain::Recording as u64);
        hash.text(source);
        hash.pair(*index, seen.0 as u64);
        hash.pair(*gaps, began.0);
        hash.finish()
    }
}

impl Jobs {
    /// From here on the job counts as one that had evaluations, which is what makes it dead.
    pub(crate) fn end_observed(&mut self, event: &JobEndObserved) -> JobRow {
        let row = self.known(&event.key);
        self.get_mut(row).had_evals = true;
        row
    }
}
