//! The writer: takes what is queued as one group, writes it, syncs once, then calls back.

use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use super::contents::{Contents, SegmentFile};
use super::files::{File, Files};
use super::places::Offset;
use super::position::{Begin, Notes, Position};
use super::queue::{Group, Op};
use super::record::{Chain, Draft, Kind, Spot};
use super::segment::{self, SPARE, Summary};
use super::spare::{NoSpare, Spares};
use super::{Done, Entry, LogId, Payload, Shared};

/// The segment in use.
pub(super) struct Active {
    pub number: u64,
    pub file: Arc<dyn File>,
    pub capacity: u64,
    /// Where the next byte goes.
    pub end: u64,
    /// Everything before was synced.
    pub synced: u64,
    pub summary: Summary,
}

/// Where to go on writing.
pub(super) struct Resume {
    pub position: Position,
    /// None before the first record and after a seal.
    pub active: Option<Active>,
    /// The newest segment's number, 0 without one.
    pub number: u64,
    /// Where its seal stands, if it has one.
    pub previous_seal: u64,
    /// An image took the place of the log, which begins anew at `position` in a segment to come.
    pub reset: bool,
    /// Segments that can go once that one is safe.
    pub void: Vec<u64>,
}

pub(super) struct Writer {
    files: Arc<dyn Files>,
    spares: Spares,
    segment_bytes: u64,
    shared: Arc<Shared>,
    at: Resume,
    /// As written, or in `buffer`.
    notes: Notes,
    /// Records from the end of the active segment on that are not written yet.
    buffer: Vec<u8>,
    /// Where the entries in `buffer` go.
    offsets: Vec<Offset>,
    /// What a full disk interrupted.
    unfinished: Option<Group>,
}

/// Why the writer does not go on.
pub(super) enum Stop {
    /// The log is closing and the disk is full: what is left was never acknowledged.
    Closing,
    /// The disk is full: what is left waits for the next step.
    Full,
    Failed(String),
}

impl From<NoSpare> for Stop {
    fn from(why: NoSpare) -> Stop {
        match why {
            NoSpare::Closing => Stop::Closing,
            NoSpare::Full => Stop::Full,
            NoSpare::Failed(error) => failed("make the log's next segment")(error),
        }
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
        at: Resume,
    ) -> Writer {
        let notes = shared.contents.lock().notes.clone();
        let (buffer, offsets, unfinished) = (Vec::new(), Vec::new(), None);
        Writer { files, spares, segment_bytes, shared, at, notes, buffer, offsets, unfinished }
    }

    /// Until the queue is closed and empty.
    pub fn run(mut self) {
        let shared = self.shared.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            while let Some(group) = shared.queue.wait() {
                self.group(group)?;
            }
            Ok(())
        }));
        shared.queue.close();
        match ended {
            Ok(Ok(())) | Ok(Err(Stop::Closing | Stop::Full)) => {}
            Ok(Err(Stop::Failed(why))) => shared.die(&why),
            Err(_) => shared.die("the log's writer panicked"),
        }
    }

    /// Writes what is next, if anything is, and says whether it did.
    pub fn step(&mut self) -> Result<bool, Stop> {
        self.spares.retry()?;
        let Some(group) = self.unfinished.take().or_else(|| self.shared.queue.take()) else {
            return Ok(false);
        };
        match self.group(group) {
            Ok(()) => Ok(true),
            Err(Stop::Full) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    fn group(&mut self, mut group: Group) -> Result<(), Stop> {
        if let Err(stop) = self.put_group(&mut group) {
            self.unfinished = Some(group);
            return Err(stop);
        }
        self.flush()?;
        // That entries are committed is only a hint, and true without being written.
        if group.ops.iter().any(|op| !matches!(op, Op::Committed { .. })) {
            self.sync()?;
        }
        let done = self.publish(group);
        self.remove_void();
        done.into_iter().for_each(|done| done());
        Ok(())
    }

    fn put_group(&mut self, group: &mut Group) -> Result<(), Stop> {
        while let Some(op) = group.ops.get(group.op) {
            match op {
                Op::Append { entries, .. } => {
                    for entry in &entries[group.entry..] {
                        self.put_entry(entry)?;
                        group.entry += 1;
                    }
                }
                Op::Vote { vote, .. } => {
                    self.put_note(Kind::Vote, LogId { index: 0, term: 0 }, vote)?;
                    self.notes.vote = Some(vote.clone());
                }
                Op::Committed { upto } => {
                    self.put_note(Kind::Committed, *upto, &[])?;
                    self.notes.committed = self.notes.committed.max(Some(*upto));
                }
                Op::Purged { upto, .. } => {
                    self.put_note(Kind::Purged, *upto, &[])?;
                    self.notes.purged = self.notes.purged.max(Some(*upto));
                }
                Op::Truncate { from, .. } => self.put_truncation(*from)?,
                Op::Reset { base, .. } => self.put_reset(*base)?,
            }
            (group.op, group.entry) = (group.op + 1, 0);
        }
        Ok(())
    }

    fn put_entry(&mut self, entry: &Entry) -> Result<(), Stop> {
        let before = self.at.position;
        assert_eq!(entry.index, before.next, "entries are written in their order, none is left out");
        assert!(entry.term >= before.term, "the term of an entry is not lower than that before it");
        if let Payload::Batch(batch) = &entry.payload {
            assert_eq!(
                batch.index().0,
                before.batch + 1,
                "batches are written in their order, none is left out"
            );
        }
        let (active, at, chain) = self.put(&Draft::of(entry))?;
        active.summary.entry(entry, chain);
        self.at.position = active.summary.end;
        self.offsets.push(Offset::new(at));
        Ok(())
    }

    fn put_note(&mut self, kind: Kind, upto: LogId, payload: &[u8]) -> Result<(), Stop> {
        let draft = Draft { kind, raft_index: upto.index, term: upto.term, index: 0, payload };
        let (active, ..) = self.put(&draft)?;
        active.summary.note();
        Ok(())
    }

    fn put_truncation(&mut self, from: u64) -> Result<(), Stop> {
        let to = self.position_before(from)?;
        let (kind, payload) = (Kind::Truncate, to.bytes());
        let draft = Draft { kind, raft_index: to.next, term: to.term, index: to.batch, payload: &payload };
        let (active, ..) = self.put(&draft)?;
        active.summary.truncate(to);
        self.at.position = to;
        Ok(())
    }

    /// Where the log stands without the entries from `from` on. Everything asked for before is written.
    fn position_before(&self, from: u64) -> Result<Position, Stop> {
        if from >= self.at.position.next {
            return Ok(self.at.position);
        }
        self.shared.position_before(from).map_err(|error| Stop::Failed(error.to_string()))
    }

    /// Begins the log anew. The segment in use is sealed: only the last one may be without.
    fn put_reset(&mut self, base: Position) -> Result<(), Stop> {
        if self.at.active.is_some() {
            self.seal()?;
        }
        // Also where a full disk interrupted this before: there is nothing left to be made void then.
        let mut contents = self.shared.contents.lock();
        self.at.void.extend(contents.segments.iter().map(|segment| segment.file.number));
        contents.reset(base);
        (self.notes.committed, self.notes.purged) = (contents.notes.committed, contents.notes.purged);
        drop(contents);
        (self.at.position, self.at.reset) = (base, true);
        self.begin_segment(0)
    }

    /// What was written becomes what the log holds.
    fn publish(&mut self, group: Group) -> Vec<Done> {
        let shared = self.shared.clone();
        let mut contents = shared.contents.lock();
        self.publish_written(&mut contents);
        let mut dones = Vec::with_capacity(group.ops.len());
        for op in group.ops {
            match op {
                Op::Append { done, .. } => dones.push(done),
                Op::Committed { upto } => {
                    contents.notes.committed = contents.notes.committed.max(Some(upto));
                }
                Op::Vote { vote, done } => {
                    contents.notes.vote = Some(vote);
                    dones.push(done);
                }
                Op::Purged { upto, done } => {
                    contents.notes.purged = contents.notes.purged.max(Some(upto));
                    dones.push(done);
                }
                Op::Truncate { done, .. } => {
                    contents.truncate(self.at.position);
                    dones.push(done);
                }
                Op::Reset { done, .. } => dones.push(done),
            }
        }
        dones
    }

    fn publish_written(&mut self, contents: &mut Contents) {
        contents.written(&self.offsets);
        self.offsets.clear();
        if let Some(active) = &self.at.active
            && active.synced > 0
        {
            contents.begun = active.number;
        }
    }

    /// Adds a record to what will be written: to which segment, where in it, and the chain at it.
    fn put(&mut self, draft: &Draft<'_>) -> Result<(&mut Active, u64, Chain), Stop> {
        let (size, waiting) = (draft.size(), self.buffer.len() as u64);
        let fits = |active: &Active| {
            active.end + waiting + size + active.summary.seal_after_next() <= active.capacity
        };
        if self.at.active.as_ref().is_some_and(|active| self.at.reset || !fits(active)) {
            self.seal()?;
        }
        if self.at.active.is_none() {
            self.begin_segment(size)?;
        }
        Ok(self.append(draft))
    }

    fn append(&mut self, draft: &Draft<'_>) -> (&mut Active, u64, Chain) {
        let active = self.at.active.as_mut().expect("records go to a segment");
        let at = active.end + self.buffer.len() as u64;
        let spot = Spot { segment: active.number, offset: at };
        let chain = draft.write(&mut self.buffer, spot, active.summary.end.chain, at - active.synced);
        (active, at, chain)
    }

    /// Completes the segment in use. What is in it is synced before the next one exists.
    fn seal(&mut self) -> Result<(), Stop> {
        let summary = &self.at.active.as_ref().expect("a segment is in use").summary;
        let (payload, last_time) = (summary.bytes(), summary.last_time);
        let seal = Draft { kind: Kind::Seal, raft_index: 0, term: 0, index: 0, payload: &payload };
        let (_, at, _) = self.append(&seal);
        self.flush()?;
        self.sync()?;
        // What an image made void is not among the contents any more.
        if !self.at.reset {
            let shared = self.shared.clone();
            let mut contents = shared.contents.lock();
            self.publish_written(&mut contents);
            contents.seal(last_time);
        }
        (self.at.active, self.at.previous_seal) = (None, at);
        Ok(())
    }

    /// Begins the next segment, for a record of `need` bytes.
    fn begin_segment(&mut self, need: u64) -> Result<(), Stop> {
        let vote = self.notes.vote.as_ref().map_or(0, Bytes::len);
        self.spares.take(segment::len_for(vote, need))?;
        let number = self.at.number + 1;
        let name = segment::name(number);
        self.files.rename(SPARE, &name).map_err(failed("name the log's next segment"))?;
        self.files.sync_dir().map_err(failed("sync the log's directory"))?;
        let file = self.files.open(&name).map_err(failed("open the log's next segment"))?;
        let capacity = segment::capacity(&*file).map_err(failed("measure the log's next segment"))?;
        let capacity = capacity.ok_or_else(|| Stop::Failed("the log's next segment was cut off".into()))?;
        let (position, reset) = (self.at.position, mem::take(&mut self.at.reset));
        let previous_seal = if reset { 0 } else { self.at.previous_seal };
        let begin = Begin { position, notes: self.notes.clone(), previous_seal };
        let kind = if reset { Kind::Reset } else { Kind::Begin };
        self.at.number = number;
        let summary = Summary::new(position);
        self.at.active = Some(Active { number, file: file.clone(), capacity, end: 0, synced: 0, summary });
        let payload = begin.bytes();
        let (raft_index, term, index) = (position.next, position.term, position.batch);
        self.append(&Draft { kind, raft_index, term, index, payload: &payload });
        let (bytes, file) = (segment::len_of(capacity), SegmentFile { number, file });
        self.shared.contents.lock().begin(file, bytes, position);
        Ok(self.spares.order(segment::bytes_of(number + 1, self.segment_bytes))?)
    }

    /// What an image made void, once that is safe. What a crash leaves of it goes at the next start.
    fn remove_void(&mut self) {
        if self.at.reset {
            return;
        }
        for number in mem::take(&mut self.at.void) {
            let name = segment::name(number);
            if let Err(error) = self.files.remove(&name) {
                tracing::warn!(%error, name, "a void segment of the log is not removed");
            }
        }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        if let Some(active) = self.at.active.as_mut().filter(|_| !self.buffer.is_empty()) {
            active.file.write_at(&self.buffer, active.end).map_err(failed("write to the log"))?;
            active.end += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Stop> {
        if let Some(active) = self.at.active.as_mut().filter(|active| active.synced < active.end) {
            active.file.sync().map_err(failed("sync the log"))?;
            active.synced = active.end;
        }
        Ok(())
    }
}
