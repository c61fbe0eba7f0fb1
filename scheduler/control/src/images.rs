//! Keeps an image of the state beside the log, so that a restart has little to fold.
//!
//! An image is made from a published state, which nobody changes: writes go on meanwhile.

use std::time::{Duration, Instant};

use base::Index;
use journal::KeepError;
use parking_lot::Mutex;
use state::Imager;

use crate::driver::Shared;

/// Log that a restart has to fold at most, about: a fraction of a second.
pub const UNKEPT_BYTES_MAX: u64 = 64 << 20;

/// How old the image may be when anything was written since.
pub const AGE_MAX: Duration = Duration::from_secs(600);

/// How often it is looked whether an image is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Not worth an image when the server stops.
const UNKEPT_AT_END: u64 = 1 << 20;

/// Who makes images. One is made at a time.
#[derive(Default)]
pub(crate) struct Images {
    imager: Mutex<Imager>,
}

impl Images {
    /// Keeps the published state, unless the log has it already.
    ///
    /// # Errors
    /// The log does not take it; the image kept before stays.
    pub fn keep(&self, shared: &Shared) -> Result<Index, KeepError> {
        let mut imager = self.imager.lock();
        let state = shared.published();
        if !state.restoring.is_empty() {
            return Err(KeepError::Failed("a state is being restored".to_string()));
        }
        let start = Instant::now();
        let mut kept = shared.journal.keep(imager.image(&state));
        if let Err(KeepError::UnknownChunk(_)) = kept {
            // The log's image is not the one this imager made last: another server may have sent it.
            imager.reset();
            kept = shared.journal.keep(imager.image(&state));
        }
        match kept {
            Ok(()) => {
                tracing::info!(index = state.index.0, took = ?start.elapsed(), "kept an image of the state")
            }
            Err(KeepError::NotNewer { .. }) => {}
            Err(error) => {
                imager.reset();
                return Err(error);
            }
        }
        Ok(state.index)
    }
}

/// The thread that keeps images when they are due, and a last one when the server stops.
pub(crate) fn keep_images(shared: &Shared) {
    let mut last = Instant::now();
    loop {
        shared.rest(LOOK_EVERY);
        let (closed, unkept) = (shared.is_closed(), shared.journal.unkept_bytes());
        let due = unkept >= UNKEPT_BYTES_MAX || (unkept > 0 && last.elapsed() >= AGE_MAX);
        if due || (closed && unkept >= UNKEPT_AT_END) {
            if let Err(error) = shared.images.keep(shared) {
                tracing::warn!(%error, "no image of the state is kept");
            }
            last = Instant::now();
        }
        if closed {
            return;
        }
    }
}
