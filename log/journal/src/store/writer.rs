//! The one thread that writes: gathers what is queued, writes it at once, syncs once, then tells.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::contents::{Place, Segment};
use super::files::{File, Files};
use super::record::{Chain, Draft, Kind};
use super::segment::{self, SEAL, SPARE, Summary};
use super::spare::{NoMore, Spares};
use super::{Done, Entry, Fatal, LogId, Shared, StoreError, reading};

/// Payload written as one group at most: about 10 ms of a slow disk, so that a burst does not make the first one
/// in it wait for the last.
pub const GROUP_BYTES_MAX: usize = 8 << 20;

pub(super) enum Op {
    Append { entries: Vec<Entry>, done: Done },
    Truncate { from: u64, done: Done },
    Vote { vote: Bytes, done: Done },
    Committed { upto: LogId },
    Purged { upto: LogId, done: Done },
}

/// What waits for the writer. It has no bound of its own: proposals in flight are bounded where they come in.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    ops: VecDeque<Op>,
    closed: bool,
}

impl Queue {
    pub fn put(&self, op: Op) -> Result<(), StoreError> {
        let mut waiting = self.inner.lock();
        if waiting.closed {
            return Err(StoreError::Stopped);
        }
        waiting.ops.push_back(op);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// What is there is still written; nothing more comes in.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.filled.notify_one();
    }

    /// The next group, `None` at the end. A truncation is a group of its own, so that it finds everything before
    /// it in the files.
    fn take(&self) -> Option<Vec<Op>> {
        let mut waiting = self.inner.lock();
        while waiting.ops.is_empty() && !waiting.closed {
            self.filled.wait(&mut waiting);
        }
        let mut group = vec![waiting.ops.pop_front()?];
        let mut bytes = group[0].len();
        while let Some(next) = waiting.ops.front() {
            bytes += next.len();
            let alone = matches!(next, Op::Truncate { .. }) || matches!(group[0], Op::Truncate { .. });
            if alone || bytes > GROUP_BYTES_MAX {
                break;
            }
            group.extend(waiting.ops.pop_front());
        }
        Some(group)
    }
}

impl Op {
    fn len(&self) -> usize {
        match self {
            Op::Append { entries, .. } => entries.iter().map(|entry| entry.payload.len()).sum(),
            Op::Vote { vote, .. } => vote.len(),
            Op::Truncate { .. } | Op::Committed { .. } | Op::Purged { .. } => 0,
        }
    }
}

/// The segment in use.
pub(super) struct Active {
    pub file: Arc<dyn File>,
    /// Position in the list of segments.
    pub position: usize,
    pub capacity: u64,
    /// Where the next byte goes.
    pub end: u64,
    /// Everything before was synced.
    pub synced: u64,
    pub summary: Summary,
}

pub(super) struct Writer {
    files: Arc<dyn Files>,
    spares: Spares,
    segment_bytes: u64,
    shared: Arc<Shared>,
    /// None before the first record and after a seal.
    active: Option<Active>,
    /// Up to the last entry.
    chain: Chain,
    /// Records from `active.end` on that are not written yet.
    buffer: Vec<u8>,
    /// Where the entries of this group went.
    places: Vec<Place>,
}

/// Why the writer ends before its queue does.
enum Stop {
    /// The log is closing and the disk is full: what is left was never acknowledged.
    Closing,
    Failed(String),
}

impl From<NoMore> for Stop {
    fn from(_: NoMore) -> Stop {
        Stop::Closing
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> Stop {
    move |error| Stop::Failed(format!("{doing}: {error}"))
}

impl Writer {
    pub fn new(
        files: Arc<dyn Files>,
        spares: Spares,
        segment_bytes: u64,
        shared: Arc<Shared>,
        active: Option<Active>,
        chain: Chain,
    ) -> Writer {
        let (buffer, places) = (Vec::new(), Vec::new());
        Writer { files, spares, segment_bytes, shared, active, chain, buffer, places }
    }

    pub fn run(mut self, fatal: &Fatal) {
        let shared = self.shared.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            while let Some(group) = shared.queue.take() {
                self.group(group)?;
            }
            Ok(())
        }));
        shared.queue.close();
        match ended {
            Ok(Ok(())) | Ok(Err(Stop::Closing)) => {}
            Ok(Err(Stop::Failed(why))) => fatal(&why),
            Err(_) => fatal("the log's writer panicked"),
        }
    }

    fn group(&mut self, group: Vec<Op>) -> Result<(), Stop> {
        let mut sync = false;
        for op in &group {
            self.put_op(op)?;
            // That entries are committed is only a hint, and true without being written.
            sync |= !matches!(op, Op::Committed { .. });
        }
        self.flush()?;
        if sync {
            self.sync()?;
        }
        let mut done = Vec::with_capacity(group.len());
        self.publish(group, &mut done)?;
        done.into_iter().for_each(|done| done());
        Ok(())
    }

    fn put_op(&mut self, op: &Op) -> Result<(), Stop> {
        let note = |kind, upto: LogId, payload| Draft {
            kind,
            raft_index: upto.index,
            term: upto.term,
            index: 0,
            payload,
        };
        let nowhere = LogId { index: 0, term: 0 };
        match op {
            Op::Append { entries, .. } => {
                entries.iter().try_for_each(|entry| self.put(&Draft::of(entry), Some(entry)))
            }
            Op::Truncate { from, .. } => {
                self.put(&note(Kind::Truncate, LogId { index: *from, term: 0 }, &[]), None)
            }
            Op::Vote { vote, .. } => self.put(&note(Kind::Vote, nowhere, vote), None),
            Op::Committed { upto } => self.put(&note(Kind::Committed, *upto, &[]), None),
            Op::Purged { upto, .. } => self.put(&note(Kind::Purged, *upto, &[]), None),
        }
    }

    /// What was written becomes what the log holds.
    fn publish(&mut self, group: Vec<Op>, done: &mut Vec<Done>) -> Result<(), Stop> {
        let shared = self.shared.clone();
        let mut contents = shared.contents.lock();
        contents.written(&self.places);
        self.places.clear();
        for op in group {
            match op {
                Op::Append { done: tell, .. } => done.push(tell),
                Op::Committed { upto } => contents.committed = contents.committed.max(Some(upto)),
                Op::Vote { vote, done: tell } => {
                    contents.vote = Some(vote);
                    done.push(tell);
                }
                Op::Purged { upto, done: tell } => {
                    contents.purged = contents.purged.max(Some(upto));
                    done.push(tell);
                }
                Op::Truncate { from, done: tell } => {
                    contents.truncate(from);
                    self.chain =
                        reading::last_chain(&contents).map_err(|error| Stop::Failed(error.to_string()))?;
                    done.push(tell);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, draft: &Draft<'_>, entry: Option<&Entry>) -> Result<(), Stop> {
        let size = draft.size();
        let fits =
            |active: &Active, waiting: usize| active.end + waiting as u64 + size + SEAL <= active.capacity;
        if self.active.as_ref().is_some_and(|active| !fits(active, self.buffer.len())) {
            self.seal()?;
        }
        if self.active.is_none() {
            self.begin_segment(size)?;
        }
        let at = self.append(draft);
        let active = self.active.as_mut().expect("a segment was begun");
        active.summary.add(entry);
        if entry.is_some() {
            self.places.push(Place::new(active.position, at));
        }
        Ok(())
    }

    /// Adds a record to what will be written, and returns where it goes.
    fn append(&mut self, draft: &Draft<'_>) -> u64 {
        let active = self.active.as_ref().expect("records go to a segment");
        let at = active.end + self.buffer.len() as u64;
        let chain = draft.write(&mut self.buffer, self.chain, at - active.synced);
        if draft.kind.is_entry() {
            self.chain = chain;
        }
        at
    }

    /// Completes the segment in use. What is in it is synced before the next one exists.
    fn seal(&mut self) -> Result<(), Stop> {
        let active = self.active.as_ref().expect("a segment is in use");
        let summary = active.summary.bytes();
        let seal = Draft { kind: Kind::Seal, raft_index: 0, term: 0, index: 0, payload: &summary };
        self.append(&seal);
        self.flush()?;
        self.sync()?;
        self.active = None;
        Ok(())
    }

    fn begin_segment(&mut self, need: u64) -> Result<(), Stop> {
        self.spares.take(need)?;
        let (number, position) = {
            let contents = self.shared.contents.lock();
            (contents.segments.last().map_or(1, |last| last.number + 1), contents.segments.len())
        };
        let name = segment::name(number);
        self.files.rename(SPARE, &name).map_err(failed("name the log's next segment"))?;
        self.files.sync_dir().map_err(failed("sync the log's directory"))?;
        let file = self.files.open(&name).map_err(failed("open the log's next segment"))?;
        let capacity = segment::capacity(&*file).map_err(failed("measure the log's next segment"))?;
        let capacity = capacity.ok_or_else(|| Stop::Failed("the log's next segment was cut off".into()))?;
        self.shared.contents.lock().segments.push(Segment { number, file: file.clone() });
        self.active =
            Some(Active { file, position, capacity, end: 0, synced: 0, summary: Summary::default() });
        Ok(self.spares.order(self.segment_bytes)?)
    }

    fn flush(&mut self) -> Result<(), Stop> {
        if let Some(active) = self.active.as_mut() {
            active.file.write_at(&self.buffer, active.end).map_err(failed("write to the log"))?;
            active.end += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Stop> {
        if let Some(active) = self.active.as_mut() {
            active.file.sync().map_err(failed("sync the log"))?;
            active.synced = active.end;
        }
        Ok(())
    }
}
