//! What is true, told by nobody in the cluster: the committed batches, decoded and folded from their bytes.

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
    /// The newest states with what their batch touched, oldest first.
    recent: VecDeque<(State, Delta)>,
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
        let at = Moment { index: batch.index, time: batch.time };
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
        self.recent.push_back((after, delta));
        Ok(batch)
    }

    /// The state after a batch, if it is still kept.
    pub fn at(&self, index: Index) -> Option<&State> {
        self.entry(index).map(|(state, _)| state)
    }

    /// How a state differs from the fold of the log, in the rows that were touched after `since`.
    ///
    /// Looking at touched rows alone is what makes it affordable at every step; [`Witness::differs_anywhere`]
    /// looks at everything.
    pub fn differs(&self, state: &State, since: Index) -> Option<String> {
        let (truth, _) = self.entry(state.index)?;
        if truth.time != state.time || truth.tables != state.tables || truth.cluster != state.cluster {
            return Some(format!("the heads differ at {}", state.index));
        }
        let touched = (since.0 + 1..=state.index.0).filter_map(|index| self.entry(Index(index)));
        touched.map(|(_, delta)| differing_row(truth, state, delta)).find(Option::is_some).flatten()
    }

    /// The same over all rows.
    pub fn differs_anywhere(&self, state: &State) -> Option<String> {
        let (truth, _) = self.entry(state.index)?;
        (truth != state).then(|| format!("the states at {} differ", state.index))
    }

    fn entry(&self, index: Index) -> Option<&(State, Delta)> {
        let oldest = self.recent.front()?.0.index;
        self.recent.get(usize::try_from(index.0.checked_sub(oldest.0)?).ok()?)
    }
}

fn differing_row(truth: &State, state: &State, delta: &Delta) -> Option<String> {
    let at = state.index;
    let nodes = delta.nodes.iter().find(|row| {
        row.0 as usize >= state.nodes.rows_len()
            || truth.nodes.hot(**row) != state.nodes.hot(**row)
            || truth.nodes.load(**row) != state.nodes.load(**row)
            || truth.nodes.cold(**row) != state.nodes.cold(**row)
    });
    if let Some(row) = nodes {
        return Some(format!("node {} differs at {at}", truth.nodes.cold(*row).id));
    }
    let sizes = |state: &State| (state.jobs.len(), state.evals.len(), state.allocs.len());
    if sizes(truth) != sizes(state) {
        return Some(format!("the numbers of rows differ at {at}: {:?}, {:?}", sizes(truth), sizes(state)));
    }
    if let Some(row) = delta.jobs.iter().find(|row| truth.jobs.get(**row) != state.jobs.get(**row)) {
        return Some(format!("job {} differs at {at}", truth.jobs.get(*row).key));
    }
    if let Some(row) = delta.evals.iter().find(|row| truth.evals.get(**row) != state.evals.get(**row)) {
        return Some(format!("evaluation {} differs at {at}", truth.evals.get(*row).id()));
    }
    let row = delta.allocs.iter().find(|row| truth.allocs.get(**row) != state.allocs.get(**row))?;
    Some(format!("allocation {} differs at {at}", truth.allocs.get(*row).id))
}
