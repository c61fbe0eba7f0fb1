//! Reading what the tail no longer keeps: folded again from the nearest state that is at hand.

use std::collections::BTreeMap;

use base::Index;
use journal::{EncodedBatch, Journal};
use parking_lot::Mutex;
use state::State;

use super::feed::FeedError;
use super::page::{Cursor, EventFilter, Page};
use super::rendered::RenderedBatch;

/// Readers that may fold at the same time; others wait for their turn. Each keeps one processor busy.
pub(crate) const REPLAYS_MAX: usize = 2;
/// States left by readers that were served and may come back for more. A reader whose state was pushed out begins
/// at a checkpoint again.
pub const PARKED_MAX: usize = 8;
/// States kept on the way. When there are more, every other one is dropped.
pub const CHECKPOINTS_MAX: usize = 8;
/// Batches between two checkpoints at first: about 30 ms of folding. Doubles whenever they are thinned out.
const SPACING: u64 = 1_024;
/// Log read at once.
const READ_BYTES: usize = 1 << 20;

/// Where a replay stands.
enum Stage {
    /// After a batch of which nothing is known but the state it led to.
    Bare(State),
    Rendered(RenderedBatch),
}

impl Stage {
    fn index(&self) -> Index {
        match self {
            Stage::Bare(state) => state.index,
            Stage::Rendered(batch) => batch.index(),
        }
    }

    /// The oldest batch that can be read from here.
    fn oldest(&self) -> Index {
        match self {
            Stage::Bare(state) => state.index.next(),
            Stage::Rendered(batch) => batch.index(),
        }
    }

    fn state(&self) -> &State {
        match self {
            Stage::Bare(state) => state,
            Stage::Rendered(batch) => batch.state(),
        }
    }

    fn into_state(self) -> State {
        match self {
            Stage::Bare(state) => state,
            Stage::Rendered(batch) => batch.into_state(),
        }
    }
}

pub(crate) struct Replays {
    /// The one used last at the end.
    parked: Mutex<Vec<Stage>>,
    checkpoints: Mutex<Checkpoints>,
}

struct Checkpoints {
    spacing: u64,
    /// The oldest stays: it is where the oldest batch that can be read begins.
    states: BTreeMap<Index, State>,
}

impl Replays {
    pub(crate) fn new() -> Replays {
        let states = BTreeMap::from([(Index::ZERO, State::default())]);
        let checkpoints = Mutex::new(Checkpoints { spacing: SPACING, states });
        Replays { parked: Mutex::new(Vec::new()), checkpoints }
    }

    /// The oldest batch that can be read from a state at hand and a log that begins at `horizon`.
    pub(crate) fn oldest(&self, horizon: Index) -> Option<Index> {
        let checkpoints = self.checkpoints.lock();
        checkpoints.states.keys().map(|index| index.next()).find(|next| *next >= horizon)
    }

    /// Keeps a state if one is wanted at its place.
    pub(crate) fn offer(&self, state: &State, horizon: Index) {
        let mut checkpoints = self.checkpoints.lock();
        if state.index.0.is_multiple_of(checkpoints.spacing) {
            checkpoints.insert(state, horizon);
        }
    }

    /// Forgets what was folded before, but for the beginning of the log, and goes on from another state.
    pub(crate) fn begin(&self, state: &State, horizon: Index) {
        self.parked.lock().clear();
        let mut checkpoints = self.checkpoints.lock();
        checkpoints.states.retain(|index, _| *index == Index::ZERO);
        checkpoints.insert(state, horizon);
    }

    /// Keeps a state whatever its place, until checkpoints are thinned out.
    pub(crate) fn keep(&self, state: &State, horizon: Index) {
        self.checkpoints.lock().insert(state, horizon);
    }

    /// Reads what follows on `from`, up to `end` at most.
    ///
    /// # Errors
    /// [`FeedError::Gone`] when the log is no longer kept from a state at hand on.
    pub(crate) fn page(
        &self,
        journal: &dyn Journal,
        from: Cursor,
        end: Index,
        filter: &EventFilter,
    ) -> Result<Page, FeedError> {
        let mut page = Page::at(from);
        let horizon = journal.horizon();
        let mut stage = self.start(horizon, from.index)?;
        if let Stage::Rendered(batch) = &stage
            && batch.index() == from.index
        {
            page.take(batch, filter);
        }
        let end = filter.end.map_or(end, |last| end.min(last.index));
        while !page.is_full() && stage.index() < end {
            let batches = journal.read(stage.index().next(), READ_BYTES)?;
            if batches.is_empty() {
                break;
            }
            for batch in batches.iter().filter(|batch| batch.index() <= end) {
                stage = step(stage, batch, &mut page, filter)?;
                self.offer(stage.state(), horizon);
                if page.is_full() {
                    break;
                }
            }
        }
        self.park(stage);
        Ok(page)
    }

    /// The nearest state from which the batch at `index` can be read.
    fn start(&self, horizon: Index, index: Index) -> Result<Stage, FeedError> {
        let reaches = |stage: &Stage| stage.oldest() <= index && stage.index().next() >= horizon;
        let mut parked = self.parked.lock();
        let nearest = parked.iter().enumerate().filter(|(_, stage)| reaches(stage));
        let nearest = nearest.map(|(at, stage)| (stage.index(), at)).max();
        let checkpoint = self.checkpoints.lock().before(index, horizon);
        if let Some((parked_at, at)) = nearest
            && checkpoint.as_ref().is_none_or(|state| state.index <= parked_at)
        {
            return Ok(parked.remove(at));
        }
        checkpoint.map(Stage::Bare).ok_or(FeedError::Gone)
    }

    fn park(&self, stage: Stage) {
        let mut parked = self.parked.lock();
        if parked.len() == PARKED_MAX {
            parked.remove(0);
        }
        parked.push(stage);
    }
}

impl Replays {
    /// States parked and checkpoints.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.parked.lock().len(), self.checkpoints.lock().states.len())
    }
}

impl Checkpoints {
    fn insert(&mut self, state: &State, horizon: Index) {
        self.states.entry(state.index).or_insert_with(|| state.clone());
        // From a state before the horizon nothing leads on.
        self.states.retain(|index, _| index.next() >= horizon);
        while self.states.len() > CHECKPOINTS_MAX {
            self.spacing *= 2;
            let ends = [self.states.keys().next().copied(), self.states.keys().next_back().copied()];
            let spacing = self.spacing;
            self.states.retain(|index, _| index.0.is_multiple_of(spacing) || ends.contains(&Some(*index)));
        }
    }

    /// The newest state before a batch that the log leads on from.
    fn before(&self, index: Index, horizon: Index) -> Option<State> {
        let (at, state) = self.states.range(..index).next_back()?;
        (at.next() >= horizon).then(|| state.clone())
    }
}

/// Goes on by one batch. What lies before the page is only folded.
fn step(
    stage: Stage,
    batch: &EncodedBatch,
    page: &mut Page,
    filter: &EventFilter,
) -> Result<Stage, FeedError> {
    if batch.index() < page.next.index {
        let mut state = stage.into_state();
        state.apply(&batch.decode()?)?;
        return Ok(Stage::Bare(state));
    }
    let rendered = RenderedBatch::after(stage.into_state(), batch)?;
    page.take(&rendered, filter);
    Ok(Stage::Rendered(rendered))
}
