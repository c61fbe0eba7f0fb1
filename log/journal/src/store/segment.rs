//! A segment: a file made of zeros, filled with records from the front, sealed, never touched again.
//!
//! Its last 64 bytes are written when it is made and say how long it is: a file that was cut off shows. Its first
//! record says where the log stands ([`super::position::Begin`]), its last one what is in it ([`Summary`]).

use std::io;

use super::files::{File, Files};
use super::position::{Begin, Position, number as number_at};
use super::{Entry, Payload, record};

const SUFFIX: &str = ".seg";
/// A segment made in advance, so that no append waits for one.
pub(super) const SPARE: &str = "spare";
/// A spare that is being made.
pub(super) const UNFINISHED: &str = "spare.tmp";

/// The first segment of a log. Each next one is twice as long, until they have their usual length: a log that stays small takes little of
/// the disk, and a new server need not first fill a large file with zeros.
const FIRST_BYTES: u64 = 1 << 20;

const END: u64 = 64;
const END_MAGIC: [u8; 8] = *b"SJREND01";

/// What the seal says about the records before it: enough to pass the segment by at a start.
///
/// | at | size | field |
/// |---|---|---|
/// | 0 | 48 | records, entries, first and last index, first and last time |
/// | 48 | 40 | lowest, see [`Position`] |
/// | 88 | 40 | end |
/// | 128 | 8 | how many runs of terms |
/// | 136 | 16 each | first raft index and term of each run |
/// | | 8 each | raft indexes of entries without a batch |
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Summary {
    pub records: u64,
    pub entries: u64,
    /// Zero, as the three below, when it holds no batch. Batches that became void count too.
    pub first_index: u64,
    pub last_index: u64,
    pub first_time: i64,
    pub last_time: i64,
    /// Where the log stood when it was shortest: the segment holds the entries from here to `end`.
    pub lowest: Position,
    pub end: Position,
    /// First raft index and term of each run of entries of one term.
    pub terms: Vec<(u64, u64)>,
    /// Raft indexes of entries without a batch.
    pub others: Vec<u64>,
}

impl Summary {
    const FIXED: usize = 136;

    /// Of a segment that has its first record.
    pub fn new(position: Position) -> Summary {
        Summary { records: 1, lowest: position, end: position, ..Summary::default() }
    }

    pub fn note(&mut self) {
        self.records += 1;
    }

    /// `after` is the chain at the entry.
    pub fn entry(&mut self, entry: &Entry, after: record::Chain) {
        self.records += 1;
        self.entries += 1;
        if self.terms.last().is_none_or(|(_, term)| *term != entry.term) {
            self.terms.push((entry.index, entry.term));
        }
        self.end.next = entry.index + 1;
        self.end.term = entry.term;
        self.end.chain = after;
        let Payload::Batch(batch) = &entry.payload else {
            self.others.push(entry.index);
            return;
        };
        self.end.batch = batch.index().0;
        if self.first_index == 0 {
            (self.first_index, self.first_time) = (batch.index().0, batch.time().0);
        }
        (self.last_index, self.last_time) = (batch.index().0, batch.time().0);
    }

    pub fn truncate(&mut self, to: Position) {
        self.records += 1;
        self.end = to;
        self.terms.truncate(self.terms.partition_point(|(first, _)| *first < to.next));
        self.others.truncate(self.others.partition_point(|other| *other < to.next));
        if to.next < self.lowest.next {
            self.lowest = to;
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        let times = [self.first_time as u64, self.last_time as u64];
        let numbers =
            [self.records, self.entries, self.first_index, self.last_index].into_iter().chain(times);
        numbers.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&self.lowest.bytes());
        bytes.extend_from_slice(&self.end.bytes());
        bytes.extend_from_slice(&(self.terms.len() as u64).to_le_bytes());
        let terms = self.terms.iter().flat_map(|(first, term)| [*first, *term]);
        terms.chain(self.others.iter().copied()).for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        bytes
    }

    /// `None` when it is not one.
    pub fn read(bytes: &[u8]) -> Option<Summary> {
        let runs = number_at(bytes, 128)?;
        let rest = bytes.get(Summary::FIXED..)?;
        let mut lists = rest.chunks_exact(8).map(|chunk| number_at(chunk, 0).expect("a chunk has 8 bytes"));
        let mut terms = Vec::new();
        for _ in 0..runs {
            terms.push((lists.next()?, lists.next()?));
        }
        Some(Summary {
            records: number_at(bytes, 0)?,
            entries: number_at(bytes, 8)?,
            first_index: number_at(bytes, 16)?,
            last_index: number_at(bytes, 24)?,
            first_time: number_at(bytes, 32)? as i64,
            last_time: number_at(bytes, 40)? as i64,
            lowest: Position::read(bytes.get(48..88)?)?,
            end: Position::read(bytes.get(88..128)?)?,
            terms,
            others: lists.collect(),
        })
    }

    fn len(&self) -> usize {
        Summary::len_with(self.terms.len(), self.others.len())
    }

    const fn len_with(terms: usize, others: usize) -> usize {
        Summary::FIXED + terms * 16 + others * 8
    }

    /// What the seal takes at most when one more entry has come.
    pub fn seal_after_next(&self) -> u64 {
        record::size_with(Summary::len_with(self.terms.len() + 1, self.others.len() + 1))
    }
}

pub(super) fn name(number: u64) -> String {
    format!("{number:020}{SUFFIX}")
}

/// The numbers of the segments among `names`, in order.
pub(super) fn numbers(names: &[String]) -> Vec<u64> {
    numbered(names, SUFFIX)
}

/// The numbers that stand before `suffix` in `names`, in order.
pub(super) fn numbered(names: &[String], suffix: &str) -> Vec<u64> {
    let number = |name: &String| name.strip_suffix(suffix).and_then(|stem| stem.parse().ok());
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// How long the segment `number` is made, where `usual` is what they are in the end.
pub(super) fn bytes_of(number: u64, usual: u64) -> u64 {
    let doubled = number.saturating_sub(1).min(u64::from(FIRST_BYTES.leading_zeros()) - 1);
    usual.min(FIRST_BYTES << doubled)
}

/// Makes the spare, of `bytes`, ready to become a segment.
pub(super) fn make_spare(files: &dyn Files, bytes: u64) -> io::Result<()> {
    let file = files.create(UNFINISHED, bytes).inspect_err(|_| {
        // What found no space must not take what is left of it. If it cannot be removed, the next try replaces it.
        let _ = files.remove(UNFINISHED);
    })?;
    mark_end(&*file, bytes)?;
    file.sync()?;
    files.rename(UNFINISHED, SPARE)?;
    files.sync_dir()
}

/// Writes what shows that a file of `bytes` is as long as it was made.
pub(super) fn mark_end(file: &dyn File, bytes: u64) -> io::Result<()> {
    file.write_at(&end_mark(bytes), bytes - END)
}

/// How many bytes of records it takes, or `None` when it is not as long as it was made.
pub(super) fn capacity(file: &dyn File) -> io::Result<Option<u64>> {
    let len = file.size()?;
    if len < END {
        return Ok(None);
    }
    let mut mark = [0; END as usize];
    file.read_at(&mut mark, len - END)?;
    Ok((mark == end_mark(len)).then_some(len - END))
}

/// The length of the file that takes `capacity` bytes of records.
pub(super) const fn len_of(capacity: u64) -> u64 {
    capacity + END
}

/// The length of a file that takes its first record with a vote of `vote` bytes, a record of `bytes` and its seal.
pub(super) const fn len_for(vote: usize, bytes: u64) -> u64 {
    record::size_with(Begin::LEN + vote) + bytes + record::size_with(Summary::len_with(1, 1)) + END
}

fn end_mark(len: u64) -> [u8; END as usize] {
    let mut mark = [0; END as usize];
    mark[0..8].copy_from_slice(&END_MAGIC);
    mark[8..16].copy_from_slice(&len.to_le_bytes());
    let crc = crc32c::crc32c(&mark[..60]);
    mark[60..64].copy_from_slice(&crc.to_le_bytes());
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_to_their_usual_length() {
        let lengths = [0, 1, 2, 3, 4, 100, u64::MAX].map(|number| bytes_of(number, 5 << 20) >> 20);
        assert_eq!(lengths, [1, 1, 2, 4, 5, 5, 5]);
        assert_eq!(bytes_of(1, 4096), 4096);
    }

    #[test]
    fn a_summary_survives_its_bytes() {
        let mut summary = Summary::new(Position { next: 4, term: 1, batch: 2, ..Position::default() });
        let blank = |index, term| Entry { index, term, payload: Payload::Blank };
        summary.entry(&blank(4, 1), record::Chain([4; 16]));
        summary.entry(&blank(5, 3), record::Chain([5; 16]));
        summary.note();
        assert_eq!(Summary::read(&summary.bytes()), Some(summary.clone()));
        let lower = Position { next: 3, ..Position::default() };
        summary.truncate(lower);
        assert_eq!((summary.lowest, summary.end, summary.terms.len()), (lower, lower, 0));
        assert_eq!(Summary::read(&summary.bytes()), Some(summary.clone()));
        assert_eq!(Summary::read(&summary.bytes()[1..]), None);
    }
}
