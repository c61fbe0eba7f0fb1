//! Keeps images of the state beside the log, so that a restart has little to fold.
//!
//! An image is made from a published state, which nobody changes: writes go on meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Index;
use journal::{Journal, KeepError};
use parking_lot::Mutex;
use state::{Imager, State};

/// Log that a restart has to fold at most, about: a fraction of a second.
const UNKEPT_BYTES_MAX: u64 = 64 << 20;

/// How old the image may be when anything was written since.
const AGE_MAX: Duration = Duration::from_secs(600);

/// How often to check whether an image is due.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Less log than this is not worth an image when the server stops.
const UNKEPT_AT_END: u64 = 1 << 20;

/// Whether an image is due: `unkept` bytes of log are in none, `age` after the last one was made.
pub fn is_due(unkept: u64, age: Duration, closed: bool) -> bool {
    unkept >= UNKEPT_BYTES_MAX || (unkept > 0 && age >= AGE_MAX) || (closed && unkept >= UNKEPT_AT_END)
}

/// Makes images, one at a time.
#[derive(Default)]
pub struct Images {
    imager: Mutex<Imager>,
}

impl Images {
    /// Keeps the state, unless the log has it already.
    ///
    /// # Errors
    /// The log does not take it; the image kept before stays.
    pub fn keep(
        &self,
        journal: &dyn Journal,
        published: impl FnOnce() -> Arc<State>,
    ) -> Result<Index, KeepError> {
        let mut imager = self.imager.lock();
        let state = published();
        if !state.restoring.is_empty() {
            return Err(KeepError::Failed("a state is being restored".to_string()));
        }
        let start = Instant::now();
        let mut kept = journal.keep(imager.image(&state));
        if let Err(KeepError::UnknownChunk(_)) = kept {
            // The log's image is not the one this imager made last: another server may have sent it.
            imager.reset();
            kept = journal.keep(imager.image(&state));
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
