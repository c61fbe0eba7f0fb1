use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::{Index, Time};
use journal::store::KeptSpan;
use journal::{EncodedBatch, FrameError, Journal, ReadError};
use model::event::NewEval;
use model::{Actor, AllocId, Caller, EvalId, Event, Trigger};
use parking_lot::{Condvar, Mutex};
use state::{FoldError, ImageError, State};
use tempfile::TempDir;

use crate::entries::Position;
use crate::follow::{Progress, Shared, follow};
use crate::index::EntityIndex;
use crate::line::Line;
use crate::moments::{Moments, States, Verified};
use crate::object::Object;
use crate::transition::{Placement, Transition, Walk, merged, of_node};
use crate::yielding::Yielding;

/// Events of a node that are read for one of its allocations, the newest. A node whose connection comes and goes has
/// many.
const NODE_EVENTS_MAX: usize = 256;
/// Evaluations whose reason is looked up for one allocation.
const EVALS_MAX: usize = 256;

/// Evaluations that an evaluation followed from, which are read to find out who asked for the first.
const PREDECESSORS_MAX: usize = 16;

/// Log that is read at once.
const LOG_BYTES: usize = 256 << 10;

/// Why an evaluation was made, and who asked for what led to it.
struct Origin {
    trigger: Trigger,
    requester: Option<Caller>,
}

/// What the log says of an allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    pub transitions: Vec<Transition>,
    /// `None` where that part of the log is no longer kept.
    pub placement: Option<Placement>,
    /// What took its place, oldest first.
    pub successors: Vec<AllocId>,
    /// There are older events than those that were read.
    pub cut_short: bool,
}

impl Life {
    /// What was known of it at an index.
    pub fn until(mut self, index: Index) -> Life {
        self.transitions.retain(|transition| transition.index <= index);
        self
    }
}

/// What the log says of another object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Story {
    pub lines: Vec<Line>,
    /// There are older events than those that were read.
    pub cut_short: bool,
}

/// A part of the log, in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogPage {
    pub lines: Vec<Line>,
    /// Where the next part begins.
    pub next: Option<Index>,
    /// The log does not reach back to where the part was to begin.
    pub cut_short: bool,
}

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("history's index: {0}")]
    Index(#[from] fjall::Error),
    #[error("history's directory: {0}")]
    Directory(#[from] std::io::Error),
    #[error("history's log: {0}")]
    Log(#[from] ReadError),
    #[error("history's log: {0}")]
    Batch(#[from] FrameError),
    /// Try again later.
    #[error("history is indexed up to {cursor} and does not reach {wanted} yet")]
    Behind { cursor: Index, wanted: Index },
    #[error("history is not kept any more: {0}")]
    Stopped(String),
    #[error("the state cannot be folded again: {0}")]
    Fold(#[from] FoldError),
    #[error("the image of index {index}: {why}")]
    Image { index: Index, why: String },
    #[error("an image of history: {0}")]
    Restore(#[from] ImageError),
    #[error("the state that the log leads to at {index} is not the one that is published")]
    Differs { index: Index },
    /// The state after that index cannot be had any more.
    #[error("the log no longer reaches back there: the oldest index is {oldest}")]
    Gone { oldest: Index },
    /// That index is still to come.
    #[error("the newest index is {newest}")]
    Ahead { newest: Index },
}

/// The audit: every allocation's life, also after it was stopped or purged, as far back as the log is kept.
///
/// Calls block on the disk: make them from a thread that may.
pub struct History {
    shared: Arc<Shared>,
    yielding: Yielding,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Removed with the last user.
    _temporary: Option<TempDir>,
}

impl History {
    /// Opens the index in `dir` and begins to follow the log in a thread of its own. Without a directory, the index
    /// goes with the server. Past states that are held take `memory` bytes, about.
    ///
    /// # Errors
    /// The directory cannot be used or another process holds it. A damaged index is rebuilt.
    pub fn open(
        dir: Option<PathBuf>,
        journal: Arc<dyn Journal>,
        states: impl States,
        memory: usize,
    ) -> Result<Arc<History>, HistoryError> {
        let (dir, temporary) = match dir {
            Some(dir) => (dir, None),
            None => {
                let temporary = TempDir::with_prefix("sojourn-history-")?;
                (temporary.path().join("index"), Some(temporary))
            }
        };
        let index = EntityIndex::open(&dir)?;
        let shared = Arc::new(Shared {
            journal,
            moments: Moments::new(states, memory),
            index,
            progress: Mutex::new(Progress::default()),
            work: Condvar::new(),
            moved: Condvar::new(),
        });
        let following = shared.clone();
        let thread =
            std::thread::Builder::new().name("history".to_string()).spawn(move || follow(&following))?;
        let (yielding, thread) = (Yielding::default(), Mutex::new(Some(thread)));
        Ok(Arc::new(History { shared, yielding, thread, _temporary: temporary }))
    }

    /// Up to where the index in `dir` has seen its log, whether or not the log still reaches there; zero without an index.
    ///
    /// # Errors
    /// The directory cannot be used or another process holds it.
    pub fn has_seen(dir: &Path) -> Result<Index, HistoryError> {
        if !dir.exists() {
            return Ok(Index::ZERO);
        }
        Ok(EntityIndex::open(dir)?.cursor()?.map_or(Index::ZERO, |mark| mark.index))
    }

    /// Up to where the log is indexed.
    pub fn cursor(&self) -> Index {
        self.shared.progress.lock().cursor
    }

    /// The state after the batch at `index`, as it was published then.
    ///
    /// # Errors
    /// [`HistoryError::Gone`] and [`HistoryError::Ahead`] when there is no such state.
    pub fn state_at(&self, index: Index) -> Result<Arc<State>, HistoryError> {
        let known = self.cursor();
        if let Some(state) = self.shared.moments.at_hand(self.shared.log(known), index)? {
            return Ok(state);
        }
        let shared = self.shared.clone();
        self.yielding.run(move || shared.moments.at(shared.log(known), index))
    }

    /// The newest published index.
    pub fn newest(&self) -> Index {
        self.shared.moments.states.published().index
    }

    /// Folds a part of the log again, from the state after `from`, and compares what it leads to.
    ///
    /// # Errors
    /// Those of [`History::state_at`]; [`HistoryError::Fold`] and [`HistoryError::Differs`] where it leads elsewhere.
    pub fn verify(&self, from: Index) -> Result<Verified, HistoryError> {
        let (shared, known) = (self.shared.clone(), self.cursor());
        self.yielding.run(move || shared.moments.verify(shared.log(known), from))
    }

    /// A batch of the log; `None` when there is none of that index.
    ///
    /// # Errors
    /// The log cannot be read, or not that far back.
    pub fn batch(&self, index: Index) -> Result<Option<EncodedBatch>, HistoryError> {
        let batches = self.shared.journal.read(index, 1)?;
        Ok(batches.into_iter().next().filter(|batch| batch.index() == index))
    }

    /// The oldest index whose state can be had.
    ///
    /// # Errors
    /// The index of history cannot be read.
    pub fn oldest(&self) -> Result<Index, HistoryError> {
        self.shared.moments.oldest(self.shared.log(self.cursor()))
    }

    /// The index that was the newest at that time.
    ///
    /// # Errors
    /// [`HistoryError::Gone`] when it is older than all that can be had.
    pub fn index_at(&self, time: Time) -> Result<Index, HistoryError> {
        let oldest = self.oldest()?;
        let found = self.shared.moments.index_at(&*self.shared.journal, time, oldest)?;
        found.ok_or(HistoryError::Gone { oldest })
    }

    /// Indexes that there are images of, for those who watch their number.
    ///
    /// # Errors
    /// The index of history cannot be read.
    pub fn images(&self) -> Result<Vec<Index>, HistoryError> {
        Ok(self.shared.index.images().indexes()?)
    }

    /// Past states that are held in memory, and the bytes they take, about.
    pub fn held(&self) -> (usize, usize) {
        self.shared.moments.held()
    }

    /// The life of an allocation up to at least `at`, oldest first. Empty when the log never spoke of it.
    ///
    /// What happened to its node meanwhile is in it, and why each evaluation was made.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `at` within `patience`.
    pub fn life(&self, alloc: AllocId, at: Index, patience: Duration) -> Result<Life, HistoryError> {
        self.reach(at, patience)?;
        let (positions, cut_short) = self.shared.index.events_of(alloc)?;
        let mut walk = Walk::of(alloc);
        self.each(&positions, |batch, at| walk.add(batch, at.ordinal))?;
        let (ended, placement, successors) = (walk.has_ended(), walk.placement, walk.successors);
        let mut transitions = walk.transitions;
        if let Some(placement) = &placement {
            let last = transitions.last().map(|last| last.index).filter(|_| ended);
            let of_node = self.of_node(placement, last.unwrap_or(Index(u64::MAX)))?;
            transitions = merged(transitions, of_node);
        }
        self.add_reasons(&mut transitions)?;
        Ok(Life { transitions, placement, successors, cut_short })
    }

    /// The transitions of [`History::life`].
    ///
    /// # Errors
    /// As there.
    pub fn transitions(
        &self,
        alloc: AllocId,
        at: Index,
        patience: Duration,
    ) -> Result<Vec<Transition>, HistoryError> {
        Ok(self.life(alloc, at, patience)?.transitions)
    }

    /// Every fact about an object up to at least `at`, oldest first. Empty when the log never spoke of it.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `at` within `patience`.
    pub fn story(&self, object: &Object, at: Index, patience: Duration) -> Result<Story, HistoryError> {
        self.reach(at, patience)?;
        let (positions, cut_short) = self.shared.index.events_about(object)?;
        let mut lines = Vec::new();
        self.each(&positions, |batch, at| {
            lines.push(Line::read(batch, at.ordinal)?);
            Ok(())
        })?;
        Ok(Story { lines, cut_short })
    }

    /// Every fact of the batches from `from` to `until`, oldest first: `most` of them, and the rest of the last one's batch. Below
    /// what the log has these are those that are kept.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self, from: Index, until: Index, most: usize) -> Result<LogPage, HistoryError> {
        let journal = &self.shared.journal;
        let oldest = journal.horizon().max(Index(1));
        let mut page = LogPage { cut_short: from.max(Index(1)) < oldest, ..LogPage::default() };
        let mut at = from.max(Index(1));
        while at <= until {
            // It may move on meanwhile.
            let oldest = journal.horizon();
            let batches = match at < oldest {
                true => journal.kept(at, until.min(Index(oldest.0 - 1)), LOG_BYTES)?,
                false => match journal.read(at, LOG_BYTES) {
                    Err(ReadError::Compacted { .. }) => continue,
                    read => read?,
                },
            };
            let Some(last) = batches.last().map(EncodedBatch::index) else {
                if at < oldest {
                    at = oldest;
                    continue;
                }
                break;
            };
            for batch in batches.iter().filter(|batch| batch.index() <= until) {
                if page.lines.len() >= most {
                    page.next = Some(batch.index());
                    return Ok(page);
                }
                page.lines.extend(Line::all(batch)?);
            }
            at = last.next();
        }
        Ok(page)
    }

    /// From which index on every fact is there, and of which older parts of the log some kinds are kept.
    pub fn kept(&self) -> (Index, Vec<KeptSpan>) {
        let journal = &self.shared.journal;
        (journal.horizon().max(Index(1)), journal.kept_spans())
    }

    /// An index below the log, or where it begins, after everything that is kept of `time` and before.
    ///
    /// # Errors
    /// What is kept cannot be read.
    pub fn kept_after(&self, time: Time) -> Result<Index, HistoryError> {
        let journal = &self.shared.journal;
        let end = journal.horizon().max(Index(1));
        let (mut first, mut after) = (Index(1), end);
        while first < after {
            let middle = Index(first.0 + (after.0 - first.0) / 2);
            let found = journal.kept(middle, Index(end.0 - 1), 1)?;
            match found.first() {
                Some(batch) if batch.time() <= time => first = batch.index().next(),
                _ => after = middle,
            }
        }
        Ok(first)
    }

    /// Allocations that the log spoke of and whose ids begin with `prefix`, at most `most` of them, in the order of
    /// their ids. Dashes do not count; what is no hexadecimal number begins no id.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `at` within `patience`.
    pub fn allocs_with_prefix(
        &self,
        prefix: &str,
        most: usize,
        at: Index,
        patience: Duration,
    ) -> Result<Vec<AllocId>, HistoryError> {
        self.reach(at, patience)?;
        let digits: String = prefix.chars().filter(|c| *c != '-').collect();
        let padded = u128::from_str_radix(&format!("{digits:0<32}"), 16);
        let (Ok(first), true) = (padded, digits.bytes().all(|b| b.is_ascii_hexdigit())) else {
            return Ok(Vec::new());
        };
        let is_in = |id: AllocId| format!("{:032x}", id.0.as_u128()).starts_with(&digits.to_lowercase());
        let (mut found, mut from) = (Vec::new(), Some(first));
        while let Some(next) = from.filter(|_| found.len() < most) {
            let id = self.shared.index.alloc_from(AllocId(next.into()))?.filter(|id| is_in(*id));
            found.extend(id);
            from = id.and_then(|id| id.0.as_u128().checked_add(1));
        }
        Ok(found)
    }

    /// What became of the node of an allocation while it was there.
    fn of_node(&self, placement: &Placement, last: Index) -> Result<Vec<Transition>, HistoryError> {
        let (positions, _) = self.shared.index.events_about(&Object::Node(placement.node))?;
        let there = |at: &&Position| at.index > placement.index && at.index <= last;
        let mut there: Vec<Position> =
            positions.iter().rev().filter(there).take(NODE_EVENTS_MAX).copied().collect();
        there.reverse();
        let mut found = Vec::new();
        self.each(&there, |batch, at| {
            found.extend(of_node(batch, at.ordinal)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Adds to each cause that is an evaluation why that was made, and who asked for it.
    fn add_reasons(&self, transitions: &mut [Transition]) -> Result<(), HistoryError> {
        let mut known: BTreeMap<EvalId, Option<Origin>> = BTreeMap::new();
        for transition in transitions {
            let Some(eval) = transition.eval else { continue };
            if !known.contains_key(&eval) && known.len() < EVALS_MAX {
                known.insert(eval, self.origin(eval)?);
            }
            if let Some(Some(origin)) = known.get(&eval) {
                transition.cause.push_str(&format!(" ({})", origin.trigger));
                if transition.requester.is_none() {
                    transition.requester.clone_from(&origin.requester);
                }
            }
        }
        Ok(())
    }

    /// `None` where that part of the log is no longer kept.
    fn origin(&self, eval: EvalId) -> Result<Option<Origin>, HistoryError> {
        let Some((created, mut actor)) = self.creation(eval)? else { return Ok(None) };
        let mut before = created.previous;
        for _ in 0..PREDECESSORS_MAX {
            // What the scheduler made of an evaluation was asked for by whoever asked for that one.
            let (Actor::Server(_), Some(eval)) = (&actor, before) else { break };
            let Some((predecessor, its_actor)) = self.creation(eval)? else { break };
            (actor, before) = (its_actor, predecessor.previous);
        }
        Ok(Some(Origin { trigger: created.trigger, requester: actor.caller().cloned() }))
    }

    /// The evaluation as it was created, and by whom.
    fn creation(&self, eval: EvalId) -> Result<Option<(NewEval, Actor)>, HistoryError> {
        let first = self.shared.index.first_about(&Object::Eval(eval))?;
        let mut found = None;
        self.each(first.as_slice(), |batch, at| {
            if let Some(row) = batch.rows().nth(usize::from(at.ordinal))
                && let Event::EvalCreated(created) = batch.event(&row)?
            {
                found = Some((created.eval, batch.commands()?[usize::from(row.command)].actor.clone()));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Each event about an object that is there, the newest.
    pub(crate) fn each_about(
        &self,
        object: &Object,
        mut read: impl FnMut(&EncodedBatch, u16) -> Result<(), FrameError>,
    ) -> Result<(), HistoryError> {
        let (positions, _) = self.shared.index.events_about(object)?;
        self.each(&positions, |batch, at| read(batch, at.ordinal))
    }

    /// Each event with its batch, or what is kept of that. Events of one batch are neighbours: each batch is read once. What is
    /// gone is left out.
    fn each(
        &self,
        positions: &[Position],
        mut read: impl FnMut(&EncodedBatch, Position) -> Result<(), FrameError>,
    ) -> Result<(), HistoryError> {
        for same in positions.chunk_by(|a, b| a.index == b.index) {
            let index = same[0].index;
            let Some(batch) = self.shared.batch(index)? else {
                if index < self.shared.journal.horizon() {
                    continue;
                }
                return Err(HistoryError::Stopped(format!("batch {index} is not in the log")));
            };
            let is_there =
                |at: &&Position| batch.rows().nth(usize::from(at.ordinal)).is_none_or(|row| !row.left_out);
            same.iter().filter(is_there).try_for_each(|at| read(&batch, *at))?;
        }
        Ok(())
    }

    /// The log and its index, once that reaches `wanted`.
    pub(crate) fn reached(&self, wanted: Index, patience: Duration) -> Result<&Shared, HistoryError> {
        self.reach(wanted, patience)?;
        Ok(&self.shared)
    }

    fn reach(&self, wanted: Index, patience: Duration) -> Result<(), HistoryError> {
        let until = Instant::now() + patience;
        let mut progress = self.shared.progress.lock();
        while progress.cursor < wanted {
            if let Some(why) = &progress.failed {
                return Err(HistoryError::Stopped(why.clone()));
            }
            self.shared.work.notify_one();
            if progress.closed || self.shared.moved.wait_until(&mut progress, until).timed_out() {
                return Err(HistoryError::Behind { cursor: progress.cursor, wanted });
            }
        }
        Ok(())
    }

    /// Ends the threads and makes the index durable. Also done when the last user drops it.
    pub fn shutdown(&self) {
        self.shared.progress.lock().closed = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of history had panicked before the shutdown");
        }
        self.yielding.shutdown();
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.shutdown();
    }
}
