//! A segment: a file made of zeros, filled with records from the front, sealed, never touched again.
//!
//! Its last 64 bytes are written when it is made and say how long it is: a file that was cut off shows.

use std::io;

use super::files::{File, Files};
use super::{Entry, Payload, record};

const SUFFIX: &str = ".seg";
/// A segment made ahead, so that no append waits for one.
pub(super) const SPARE: &str = "spare";
/// A spare that is being made.
pub(super) const UNFINISHED: &str = "spare.tmp";

const END: u64 = 64;
const END_MAGIC: [u8; 8] = *b"SJREND01";

/// What the seal says about the records before it, as six numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Summary {
    pub records: u64,
    pub entries: u64,
    /// Zero, as the three below, when it holds no batch.
    pub first_index: u64,
    pub last_index: u64,
    pub first_time: i64,
    pub last_time: i64,
}

/// A record with a [`Summary`].
pub(super) const SEAL: u64 = record::size_with(Summary::LEN);

impl Summary {
    pub const LEN: usize = 48;

    pub fn add(&mut self, entry: Option<&Entry>) {
        self.records += 1;
        let Some(entry) = entry else { return };
        self.entries += 1;
        let Payload::Batch(batch) = &entry.payload else { return };
        if self.first_index == 0 {
            (self.first_index, self.first_time) = (batch.index().0, batch.time().0);
        }
        (self.last_index, self.last_time) = (batch.index().0, batch.time().0);
    }

    pub fn bytes(&self) -> [u8; Summary::LEN] {
        let times = [self.first_time as u64, self.last_time as u64];
        let numbers =
            [self.records, self.entries, self.first_index, self.last_index].into_iter().chain(times);
        let mut bytes = [0; Summary::LEN];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

pub(super) fn name(number: u64) -> String {
    format!("{number:020}{SUFFIX}")
}

/// The numbers of the segments among `names`, in order.
pub(super) fn numbers(names: &[String]) -> Vec<u64> {
    let number = |name: &String| name.strip_suffix(SUFFIX).and_then(|stem| stem.parse().ok());
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Makes the spare, of `bytes`, ready to become a segment.
pub(super) fn make_spare(files: &dyn Files, bytes: u64) -> io::Result<()> {
    let file = files.create(UNFINISHED, bytes)?;
    file.write_at(&end_mark(bytes), bytes - END)?;
    file.sync()?;
    files.rename(UNFINISHED, SPARE)?;
    files.sync_dir()
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

/// The length of a file that takes a record of `bytes` and its seal.
pub(super) const fn len_for(bytes: u64) -> u64 {
    bytes + SEAL + END
}

fn end_mark(len: u64) -> [u8; END as usize] {
    let mut mark = [0; END as usize];
    mark[0..8].copy_from_slice(&END_MAGIC);
    mark[8..16].copy_from_slice(&len.to_le_bytes());
    let crc = crc32c::crc32c(&mark[..60]);
    mark[60..64].copy_from_slice(&crc.to_le_bytes());
    mark
}
