//! The thread that keeps the index behind the log, at its own pace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Index;
use journal::{EncodedBatch, Journal, ReadError};
use parking_lot::{Condvar, Mutex};
use state::State;

use crate::entries::Entries;
use crate::history::HistoryError;
use crate::index::{EntityIndex, Mark};
use crate::moments::{Imaging, Log, Moments};

/// How often the log is looked at when nobody asks for anything.
const IDLE: Duration = Duration::from_millis(250);
/// Log read, and indexed, in one step: bounds the memory of a step and how long a shutdown waits.
const STEP_BYTES: usize = 4 << 20;
/// How much work a power cut may cost. What is lost is read from the log again.
const SYNC_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct Shared {
    pub journal: Arc<dyn Journal>,
    pub index: EntityIndex,
    pub moments: Moments,
    pub progress: Mutex<Progress>,
    /// The thread has work, or is to end.
    pub work: Condvar,
    /// The progress changed.
    pub moved: Condvar,
}

impl Shared {
    /// A batch of the log, or what is kept of one that is older. `None` for one that is gone, or that never was below the horizon.
    pub fn batch(&self, index: Index) -> Result<Option<EncodedBatch>, HistoryError> {
        let found = match self.journal.read(index, 1) {
            Err(ReadError::Compacted { .. }) => self.journal.kept(index, index, 1)?,
            read => read?,
        };
        Ok(found.into_iter().next().filter(|batch| batch.index() == index))
    }

    /// The log and its images, which are known to be of it up to an index.
    pub fn log(&self, known: Index) -> Log<'_> {
        Log { journal: &*self.journal, images: self.index.images(), known }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Everything up to here is indexed, and is known to be of this log.
    pub cursor: Index,
    pub failed: Option<String>,
    pub closed: bool,
}

pub(crate) fn follow(shared: &Shared) {
    let ended = run(shared);
    let synced = shared.index.sync();
    let mut progress = shared.progress.lock();
    if let Err(error) = ended.and(synced.map_err(HistoryError::from)) {
        tracing::error!(%error, "history is not indexed any more");
        progress.failed = Some(error.to_string());
    }
    progress.closed = true;
    shared.moved.notify_all();
}

fn run(shared: &Shared) -> Result<(), HistoryError> {
    let mut cursor = None;
    let mut imaging = Imaging::default();
    let (mut synced, mut unsynced) = (Instant::now(), false);
    loop {
        drop(shared.moments.unread());
        if cursor.is_none() {
            cursor = agreed(shared)?;
            if let Some(cursor) = cursor {
                let last = shared.index.images().nearest(cursor)?;
                imaging = Imaging::after(last.unwrap_or_default(), cursor);
            }
        }
        let advanced = match cursor {
            Some(from) => {
                publish(shared, from);
                step(shared, from, &mut imaging)?
            }
            None => None,
        };
        if advanced.is_some() {
            (cursor, unsynced) = (advanced, true);
        } else if !rest(shared) {
            return Ok(());
        }
        if unsynced && synced.elapsed() >= SYNC_EVERY {
            shared.index.sync()?;
            (synced, unsynced) = (Instant::now(), false);
        }
    }
}

/// Up to where the index is of this very log; `None` while the log is too short to decide.
///
/// An index of another log, or of a past that was repaired away, is emptied.
fn agreed(shared: &Shared) -> Result<Option<Index>, HistoryError> {
    let (Some(first), Some(cursor)) = (shared.index.first()?, shared.index.cursor()?) else {
        return Ok(Some(Index::ZERO));
    };
    for mark in [first, cursor] {
        match is_of(shared, mark)? {
            Some(true) => {}
            Some(false) => {
                tracing::warn!(index = mark.index.0, "the index of history is of another log: it is rebuilt");
                shared.index.clear()?;
                shared.moments.clear();
                return Ok(Some(Index::ZERO));
            }
            None => return Ok(None),
        }
    }
    Ok(Some(cursor.index))
}

/// `None` when the log has not come that far. A batch that is no longer kept is not doubted.
fn is_of(shared: &Shared, mark: Mark) -> Result<Option<bool>, HistoryError> {
    if mark.index < shared.journal.horizon() {
        return Ok(Some(true));
    }
    if shared.journal.committed() < mark.index {
        return Ok(None);
    }
    let batches = shared.journal.read(mark.index, 1)?;
    Ok(batches.first().map(|batch| Mark::of(batch) == mark))
}

/// Indexes the next stretch after `from`; `None` when there is none.
fn step(shared: &Shared, from: Index, imaging: &mut Imaging) -> Result<Option<Index>, HistoryError> {
    if shared.progress.lock().closed {
        return Ok(None);
    }
    let (batches, are_parts) = match shared.journal.read(from.next(), STEP_BYTES) {
        Err(ReadError::Compacted { oldest, .. }) => older(shared, from, oldest)?,
        read => (read?, false),
    };
    let Some(last) = batches.last().map(Mark::of) else { return Ok(None) };
    let mut entries = Entries::default();
    for batch in &batches {
        entries.add(batch, |job| shared.index.owned_by(job).map_err(HistoryError::from))?;
    }
    let first = if from == Index::ZERO { batches.first().map(Mark::of) } else { None };
    shared.index.write(&entries, first, last)?;
    if !are_parts {
        image(shared, &batches, imaging)?;
    }
    Ok(Some(last.index))
}

/// What follows `from` where the log begins later: what is kept of batches below it, and whether it is that; else where it begins.
fn older(shared: &Shared, from: Index, oldest: Index) -> Result<(Vec<EncodedBatch>, bool), HistoryError> {
    let kept = shared.journal.kept(from.next(), Index(oldest.0 - 1), STEP_BYTES)?;
    if !kept.is_empty() {
        return Ok((kept, true));
    }
    tracing::warn!(from = from.0, oldest = oldest.0, "history lacks batches that are no longer kept");
    Ok((shared.journal.read(oldest, STEP_BYTES)?, false))
}

/// Makes the images that are due after these batches.
fn image(shared: &Shared, batches: &[EncodedBatch], imaging: &mut Imaging) -> Result<(), HistoryError> {
    let (moments, images) = (&shared.moments, shared.index.images());
    let Some(from) = batches.first().map(EncodedBatch::previous) else { return Ok(()) };
    imaging.go_on(from, moments.states.published().index, || match moments.at(shared.log(from), from) {
        Ok(state) => Ok(Some(State::clone(&state))),
        Err(HistoryError::Gone { .. } | HistoryError::Ahead { .. }) => Ok(None),
        Err(error) => Err(error),
    })?;
    let to = (shared.index.database(), images);
    for batch in batches {
        if imaging.passed(batch, || moments.states.published(), to)? {
            images.thin_out(shared.journal.horizon())?;
        }
    }
    Ok(())
}

fn publish(shared: &Shared, cursor: Index) {
    let mut progress = shared.progress.lock();
    if progress.cursor != cursor {
        progress.cursor = cursor;
        shared.moved.notify_all();
    }
}

/// Waits for work; false when there will be none.
fn rest(shared: &Shared) -> bool {
    let mut progress = shared.progress.lock();
    if !progress.closed {
        shared.work.wait_for(&mut progress, IDLE);
    }
    !progress.closed
}
