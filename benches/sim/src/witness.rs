//! What is true, whatever the servers say: the committed batches, decoded and folded from their bytes.

use std::collections::VecDeque;

use base::Index;
use journal::EncodedBatch;
use model::{Batch, Event};
use state::{Delta, Moment, State};

use crate::fact::Folded;

/// States kept for comparing with what servers publish. A server that is farther behind is compared when it has
/// caught up.
const KEPT: usize = 256;

/// The log as the checks know it.
#[derive(Default)]
pub struct Witness {
    pub state: State,
    pub batches: Vec<EncodedBatch>,
    /// The newest states, oldest first.
    recent: VecDeque<State>,
}

impl Witness {
    pub fn head(&self) -> Index {
        self.state.index
    }

    /// Folds the next batch; each of its commands is shown to `see` between the states around it.
    ///
    /// # Errors
    /// When the batch cannot be read, or does not follow.
    pub fn commit(
        &mut self,
        encoded: &EncodedBatch,
        mut see: impl FnMut(&Witness, Folded<'_>) -> Result<(), String>,
    ) -> Result<Batch, String> {
        let batch = encoded.decode().map_err(|error| error.to_string())?;
        if batch.index != self.head().next() || batch.previous != self.head() {
            let (index, previous, head) = (batch.index, batch.previous, self.head());
            return Err(format!("batch {index}, decided on {previous}, follows {head}"));
        }
        let at = Moment { index: batch.index, time: batch.time, epoch: batch.epoch };
        let mut delta = Delta::default();
        let mut after = self.state.clone();
        for (number, record) in batch.commands.iter().enumerate() {
            let own = batch.events.iter().filter(|logged| usize::from(logged.command) == number);
            let events: Vec<&Event> = own.map(|logged| &logged.event).collect();
            let before = after.clone();
            after.absorb(at, record, events.iter().copied(), &mut delta);
            see(self, Folded { batch: &batch, record, events: &events, before: &before, after: &after })?;
        }
        after.seal(at, &delta);
        self.state = after.clone();
        self.batches.push(encoded.clone());
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(after);
        Ok(batch)
    }

    /// The state after a batch, if it is still kept.
    pub fn at(&self, index: Index) -> Option<&State> {
        let oldest = self.recent.front()?.index;
        self.recent.get(usize::try_from(index.0.checked_sub(oldest.0)?).ok()?)
    }

    /// How a state differs from the fold of the log, by the digests that both keep: affordable at every step.
    pub fn differs(&self, state: &State) -> Option<String> {
        let truth = self.at(state.index)?;
        let (table, _, _) = truth.digest().difference(&state.digest())?;
        Some(format!("the {table} at {} differ", state.index))
    }

    /// The same without trust in digests: over all rows.
    pub fn differs_anywhere(&self, state: &State) -> Option<String> {
        let truth = self.at(state.index)?;
        (truth != state).then(|| format!("the states at {} differ", state.index))
    }
}
