//! When an image is made, and of what.

use std::sync::Arc;

use base::Index;
use fjall::Database;
use journal::EncodedBatch;
use state::{Imager, State};

use super::images::Images;
use crate::history::HistoryError;

/// Batches between two images at least.
const BATCHES_MIN: u64 = 512;
/// Log between two images at least. More if the one before took more: images take as much space as the log, at most.
const LOG_BYTES_MIN: u64 = 1 << 20;
/// A log that is read this far behind the published state is folded along, so that images are not far apart.
const FAR_BEHIND: u64 = 4_096;

/// What was read of the log since the last image.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    batches: u64,
    bytes: u64,
}

#[derive(Default)]
pub(crate) struct Imaging {
    imager: Imager,
    /// The last image.
    index: Index,
    /// What it took.
    took: u64,
    since: Since,
    /// Where this read has come to, while that is far behind the published state.
    folded: Option<State>,
}

impl Imaging {
    /// Goes on behind a last image, after a start: how much log lies between is not known.
    pub fn after(image: Index, cursor: Index) -> Imaging {
        let since = Since { batches: cursor.0.saturating_sub(image.0), bytes: LOG_BYTES_MIN };
        Imaging { index: image, since, ..Imaging::default() }
    }

    /// The batches after `from` come next. Far behind the published state they are folded along, from `state`, if there
    /// is one.
    pub fn go_on(
        &mut self,
        from: Index,
        published: Index,
        state: impl FnOnce() -> Result<Option<State>, HistoryError>,
    ) -> Result<(), HistoryError> {
        if published.0.saturating_sub(from.0) <= FAR_BEHIND {
            self.folded = None;
        } else if self.folded.as_ref().is_none_or(|state| state.index != from) {
            self.folded = state()?;
        }
        Ok(())
    }

    /// Takes note of a batch that was indexed, and makes an image when one is due: true if it did.
    ///
    /// # Errors
    /// The batch does not follow on what was folded; the image cannot be written.
    pub fn passed(
        &mut self,
        batch: &EncodedBatch,
        published: impl FnOnce() -> Arc<State>,
        to: (&Database, &Images),
    ) -> Result<bool, HistoryError> {
        if let Some(state) = &mut self.folded {
            state.apply(&batch.decode()?)?;
        }
        if batch.index() <= self.index {
            return Ok(false);
        }
        self.since.batches += 1;
        self.since.bytes += batch.bytes().len() as u64;
        if self.since.batches < BATCHES_MIN || self.since.bytes < self.took.max(LOG_BYTES_MIN) {
            return Ok(false);
        }
        let state = self.folded.take();
        let made = self.make(state.as_ref().unwrap_or(&published()), to);
        self.folded = state;
        made
    }

    fn make(
        &mut self,
        state: &State,
        (database, images): (&Database, &Images),
    ) -> Result<bool, HistoryError> {
        if !state.restoring.is_empty() {
            // Half of a snapshot: an image does not hold it. The next batch asks again.
            return Ok(false);
        }
        let mut written = images.write(database, &self.imager.image(state));
        if matches!(written, Ok(None)) {
            self.imager.reset();
            written = images.write(database, &self.imager.image(state));
        }
        let took = written.inspect_err(|_| self.imager.reset())?;
        (self.index, self.took, self.since) = (state.index, took.unwrap_or_default(), Since::default());
        Ok(true)
    }
}
