//! What is kept of entries that are dropped: the events of chosen kinds, in files of their own.
//!
//! Before entries leave the log, or the archive where there is one, batches with such events are copied without the other
//! events, each with the chain at its entry. The copy is checked against the chain and is safe before anything is removed, and
//! a file says between which places in the log it stands: so a crash leaves a segment and its copy, and the copy is not made again.
//! Reads take from here only what is below all whole history, so nothing is read twice.
//!
//! What is kept can be read and cannot be folded. That it stood in the log is shown by another copy of the log alone: equal
//! chains at an entry mean equal entries.

use std::io;
use std::sync::Arc;

use base::{Index, Time};
use model::event::ObjectKinds;

use super::archive::{
    Archive, ArchiveSettings, Form, Head, HistoryFile, LEVEL, Listed, PARTS, Packed, Packer, Taken, write,
};
use super::position::Position;
use super::record::Spot;
use super::{EncodedBatch, Entry, Files, Payload, Store, StoreError};

/// What follows is added to the newest file until that has so many bytes: few files, and little that is written again.
const GROWN: u64 = 4 << 20;

/// What is kept of dropped entries.
#[derive(Clone)]
pub struct KeepSettings {
    /// A directory that nobody else writes to.
    pub files: Arc<dyn Files>,
    /// What from now on is kept. With none, what is there already is read all the same.
    pub kinds: ObjectKinds,
    /// Of all files together; when they are more, the oldest go, but never the newest one.
    pub max_bytes: u64,
}

/// A part of the log of which some kinds of events are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSpan {
    pub first: Index,
    /// Below `first` when there was no batch.
    pub last: Index,
    pub kinds: ObjectKinds,
    /// Times of the first and of the last batch that is left; zero without one.
    pub first_time: Time,
    pub last_time: Time,
    pub facts: u64,
}

/// All that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptStatus {
    /// What from now on is kept.
    pub kinds: ObjectKinds,
    /// What is there, oldest first; parts of the same kinds that follow each other are one.
    pub spans: Vec<KeptSpan>,
    pub files: u64,
    pub bytes: u64,
    /// When they are not compressed.
    pub raw_bytes: u64,
    pub max_bytes: u64,
    /// Files that are not as they were written.
    pub damaged: Vec<String>,
    /// Why nothing could be kept the last time.
    pub failed: Option<String>,
}

pub(super) struct Kept {
    files: Archive,
    kinds: ObjectKinds,
    max_bytes: u64,
}

impl Kept {
    pub fn open(settings: KeepSettings) -> Result<Kept, StoreError> {
        let KeepSettings { files, kinds, max_bytes } = settings;
        let files = Archive::open(ArchiveSettings { files, max_bytes: Some(max_bytes) }, PARTS)?;
        files.remove_repeated()?;
        Ok(Kept { files, kinds, max_bytes })
    }

    pub fn close(&self) {
        self.files.close();
    }

    pub fn failed(&self, error: &StoreError) {
        self.files.failed(error);
    }

    fn form(&self) -> Form {
        Form::Part(self.kinds)
    }

    /// Copies what is kept of the entries between two places, which `each` passes on in order, and makes it safe. `None` when
    /// that was done before, or nothing is to be kept; else how many bytes the file takes.
    ///
    /// # Errors
    /// Nothing was kept: they are not the entries of that part of the log, or the files cannot be written.
    pub fn keep(
        &self,
        start: Position,
        end: Position,
        each: impl FnOnce(&mut dyn FnMut(&Entry) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<Option<u64>, StoreError> {
        let known = self.files.listed();
        if self.kinds.is_empty() || known.iter().any(|file| self.holds(&file.head, start, end)) {
            return Ok(None);
        }
        let grows =
            |file: &&Listed| (file.head.form, file.head.end) == (self.form(), start) && file.bytes < GROWN;
        let old = known.iter().find(grows).map(|file| file.head.clone());
        let mut packer = self.packer(old.as_ref(), start)?;
        let mut at = start;
        let mut scratch = Vec::new();
        each(&mut |entry| {
            if entry.index != at.next {
                return Err(wrong_entries(start, end));
            }
            scratch.clear();
            at = write(entry, &mut scratch, Spot { segment: 0, offset: 0 }, at);
            packer.push_part(self.part(entry).as_ref(), at).map_err(cannot_compress)
        })?;
        if at != end {
            return Err(wrong_entries(start, end));
        }
        let (head, bytes) = packer.finish().map_err(cannot_compress)?;
        self.files.put_in_place_of(old.as_ref(), &head, &bytes)?;
        Ok(Some(bytes.len() as u64))
    }

    fn holds(&self, head: &Head, start: Position, end: Position) -> bool {
        let same_end = head.end.next > end.next || head.end == end;
        head.form == self.form() && head.start.next <= start.next && same_end
    }

    fn part(&self, entry: &Entry) -> Option<Entry> {
        let Payload::Batch(batch) = &entry.payload else { return None };
        let part = batch.part(|event| self.kinds.has_event(event))?;
        Some(Entry { payload: Payload::Batch(part), ..*entry })
    }

    /// What goes on with what is in `old`, or begins anew.
    fn packer(&self, old: Option<&Head>, start: Position) -> Result<Packer, StoreError> {
        let begins = old.map_or(start, |old| old.start);
        let mut packer = Packer::new(self.form(), begins, LEVEL).map_err(cannot_compress)?;
        if let Some(old) = old {
            let file = self.files.opened(old)?;
            for nth in 0..file.blocks() {
                file.walk(nth, &file.block(nth)?, |header, entry| {
                    let (next, batch) = (entry.index + 1, header.index);
                    let after = Position { next, term: entry.term, batch, chain: header.chain };
                    packer.push_part(Some(&entry), after).map_err(cannot_compress)
                })?;
            }
            packer.push_part(None, old.end).map_err(cannot_compress)?;
        }
        Ok(packer)
    }

    /// Parts of batches from `from` to `upto`, as many as fit `max_bytes`, but always one.
    pub fn batches(&self, span: (Index, Index), max_bytes: usize) -> Result<Vec<EncodedBatch>, StoreError> {
        loop {
            match self.try_batches(span, max_bytes)? {
                Some(batches) => return Ok(batches),
                // A file went, or another one took its place, since it was looked up.
                None => continue,
            }
        }
    }

    fn try_batches(
        &self,
        (from, upto): (Index, Index),
        max_bytes: usize,
    ) -> Result<Option<Vec<EncodedBatch>>, StoreError> {
        let mut taken = Taken::new((from, upto), max_bytes);
        for Listed { head, .. } in self.files.listed() {
            if head.last() < taken.from || head.first() > upto {
                continue;
            }
            let file = match self.files.opened(&head) {
                Err(StoreError::Io { .. }) if !self.files.has(&head) => return Ok(None),
                file => file?,
            };
            if file.blocks() == 0 {
                continue;
            }
            for nth in file.block_of(taken.from)..file.blocks() {
                file.walk(nth, &self.files.block(&file, nth)?, |_, entry| {
                    taken.take(entry);
                    Ok(())
                })?;
                if taken.full {
                    return Ok(Some(taken.batches));
                }
            }
            // Two files may have the same batch, where what is kept was changed and a crash came between.
            if let Some(last) = taken.batches.last() {
                taken.from = last.index().next();
            }
        }
        Ok(Some(taken.batches))
    }

    /// Parts of the log of which something is left, as far as they stand below `horizon`.
    pub fn spans(&self, horizon: Index) -> Vec<KeptSpan> {
        let mut spans: Vec<KeptSpan> = Vec::new();
        for Listed { head, facts, .. } in self.files.listed() {
            let Form::Part(kinds) = head.form else { continue };
            let last = head.last().min(Index(horizon.0.saturating_sub(1)));
            if head.first() > last {
                continue;
            }
            let (first, first_time, last_time) = (head.first(), head.first_time(), head.last_time());
            match spans.last_mut().filter(|span| span.kinds == kinds && span.last.next() >= first) {
                Some(span) => {
                    span.last = span.last.max(last);
                    span.facts += facts;
                    if span.first_time == Time::ZERO {
                        span.first_time = first_time;
                    }
                    span.last_time = span.last_time.max(last_time);
                }
                None => spans.push(KeptSpan { first, last, kinds, first_time, last_time, facts }),
            }
        }
        spans
    }

    pub fn status(&self, horizon: Index) -> KeptStatus {
        let all = self.files.listed();
        let (damaged, failed) = self.files.troubles();
        KeptStatus {
            kinds: self.kinds,
            spans: self.spans(horizon),
            files: all.len() as u64,
            bytes: all.iter().map(|file| file.bytes).sum(),
            raw_bytes: all.iter().map(|file| file.head.raw).sum(),
            max_bytes: self.max_bytes,
            damaged,
            failed,
        }
    }

    /// Removes the oldest files as long as there are too many bytes.
    pub fn shrink(&self) -> Result<(), StoreError> {
        self.files.shrink(|gone| {
            let (first, last, max_bytes) = (gone.first().0, gone.last().0, self.max_bytes);
            tracing::warn!(
                first,
                last,
                max_bytes,
                "kept facts are removed: they would take more than keep_max_bytes"
            );
            Ok(())
        })
    }

    /// The first file whose part of the log ends at `index` or later.
    fn file_of(&self, index: Index) -> Result<Option<Arc<Packed>>, StoreError> {
        let found = self.files.listed().into_iter().find(|file| file.head.last() >= index);
        found.map(|file| self.files.opened(&file.head)).transpose()
    }
}

impl Store {
    /// What is left of batches from `from` (at least 1) to `upto` that are no longer in the history: parts of batches, see
    /// [`EncodedBatch::part`], as many as fit `max_bytes`, but always one if there is one.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where a file is not what was written.
    pub fn kept(&self, from: Index, upto: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, StoreError> {
        let Some(kept) = &self.kept else { return Ok(Vec::new()) };
        let below = Index(self.horizon().0.saturating_sub(1));
        kept.batches((from, upto.min(below)), max_bytes)
    }

    /// Of which parts of the log something is kept that is no longer in the history.
    pub fn kept_spans(&self) -> Vec<KeptSpan> {
        self.kept.as_ref().map_or(Vec::new(), |kept| kept.spans(self.horizon()))
    }

    /// Reads all of the first file of kept facts that ends at `index` or later, and compares it with its checksums. `None` when
    /// there is none.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where something is not what was written.
    pub fn verify_kept(&self, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        let Some(file) = self.kept_file(index)? else { return Ok(None) };
        file.verify()?;
        Ok(Some(HistoryFile::of(&file.head, file.bytes)))
    }

    /// A copy of the file that [`Store::verify_kept`] reads.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn export_kept(&self, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        let Some(file) = self.kept_file(index)? else { return Ok(None) };
        Ok(Some((HistoryFile::of(&file.head, file.bytes), file.whole()?)))
    }

    fn kept_file(&self, index: Index) -> Result<Option<Arc<Packed>>, StoreError> {
        match &self.kept {
            Some(kept) => kept.file_of(index),
            None => Ok(None),
        }
    }
}

fn cannot_compress(source: io::Error) -> StoreError {
    StoreError::Io { doing: "compress kept facts", source }
}

fn wrong_entries(start: Position, end: Position) -> StoreError {
    StoreError::OutOfOrder(format!("the entries from {} on do not lead to entry {}", start.next, end.next))
}
