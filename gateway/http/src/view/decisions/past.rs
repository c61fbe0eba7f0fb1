use std::sync::Arc;

use base::Index;
use history::{History, HistoryError};
use journal::EncodedBatch;
use state::State;

/// What of the log may be looked at. A fork shares it with the cluster up to where it began, and writes nothing of its own.
#[derive(Clone, Copy)]
pub(crate) struct Past<'h> {
    pub history: &'h History,
    /// Of a fork: the index of the state that it began with.
    pub fork_of: Option<Index>,
}

impl Past<'_> {
    fn reaches(&self, index: Index) -> bool {
        self.fork_of.is_none_or(|base| index <= base)
    }

    /// The newest index that may be looked at, of all up to `index`.
    pub(crate) fn until(&self, index: Index) -> Index {
        self.fork_of.map_or(index, |base| base.min(index))
    }

    /// A batch of the log; `None` when there is none of that index.
    ///
    /// # Errors
    /// The log cannot be read, or not that far back.
    pub(crate) fn batch(&self, index: Index) -> Result<Option<EncodedBatch>, HistoryError> {
        if self.reaches(index) { self.history.batch(index) } else { Ok(None) }
    }

    /// The state after the batch at `index`.
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    pub(crate) fn state_at(&self, index: Index) -> Result<Arc<State>, String> {
        if !self.reaches(index) {
            return Err(
                "it was made on a fork, which keeps no log: only what was stored is shown".to_string()
            );
        }
        self.history.state_at(index).map_err(|error| match error {
            HistoryError::Gone { .. } => {
                format!("the log no longer reaches back to index {index}: only what was stored is shown")
            }
            other => format!("the state at index {index} cannot be made again: {other}"),
        })
    }
}
