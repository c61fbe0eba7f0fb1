//! One file of the archive: entries that follow each other, in blocks that are compressed one by one, so that a reader
//! of few of them decompresses little. A file of what is kept of dropped entries has the same shape, see [`Form`].
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `SJARCH01`; of kept facts `SJKEP1`, then their kinds (2) |
//! | 8 | 40 | where the log stood before the first entry, see [`Position`] |
//! | 48 | 40 | where it stood after the last one |
//! | 88 | 16 | time of the first and of the last batch; 0 without one |
//! | 104 | 8 | bytes of all records |
//! | 112 | 8 | where the table begins |
//! | 120 | 4 | how many blocks, which follow the header |
//! | 124 | 4 | CRC32C of the header before it, then of the table |
//!
//! A block is a zstd frame of whole records as [`super::super::record`] has them. What stands for the number of a segment
//! in their checksums is the raft index of the file's first entry. The table has for each block:
//!
//! | at | size | field |
//! |---|---|---|
//! | 0 | 8 | where it begins |
//! | 8 | 4 | its bytes |
//! | 12 | 4 | the bytes of its records |
//! | 16 | 4 | CRC32C of its bytes |
//! | 20 | 4 | of kept facts their number, else zero |
//! | 24 | 8 | index of the last batch before it |

use std::io;
use std::sync::Arc;

use base::{Index, Time};
use bytes::Bytes;
use model::event::ObjectKinds;
use zstd::bulk::{Compressor, Decompressor};

use super::super::files::File;
use super::super::position::{Position, number};
use super::super::record::{self, Draft, HEADER as RECORD, Header, Kind, Spot};
use super::super::{Entry, Payload, StoreError};

pub(super) const SUFFIX: &str = ".sjz";
pub(super) const PART_SUFFIX: &str = ".sjk";
const MAGIC: [u8; 8] = *b"SJARCH01";
const PART_MAGIC: [u8; 6] = *b"SJKEP1";
const HEAD: usize = 128;
const ROW: usize = 32;
/// A block ends with the record that makes it as long.
const BLOCK_BYTES: usize = 1 << 20;
/// No block is longer: more would be one record of nearly that length.
const RAW_MAX: usize = 1 << 30;
/// Higher levels take four times as long or more, and gain nothing (`docs/benchmarks.md`): ids, hashes and checksums are most
/// of what is left.
pub(super) const LEVEL: i32 = 3;

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(in crate::store) enum Form {
    /// All entries between two places in the log.
    #[default]
    Whole,
    /// Of the entries between them, batches with events of these kinds, and of those batches these events. Each record has the
    /// chain at its entry.
    Part(ObjectKinds),
}

impl Form {
    fn magic(self) -> [u8; 8] {
        match self {
            Form::Whole => MAGIC,
            Form::Part(kinds) => {
                let mut magic = [0; 8];
                magic[..6].copy_from_slice(&PART_MAGIC);
                magic[6..].copy_from_slice(&kinds.bits().to_le_bytes());
                magic
            }
        }
    }

    fn read(magic: &[u8]) -> Option<Form> {
        if magic == MAGIC {
            return Some(Form::Whole);
        }
        let kinds = magic.strip_prefix(&PART_MAGIC)?.try_into().ok()?;
        Some(Form::Part(ObjectKinds::from_bits(u16::from_le_bytes(kinds))))
    }

    fn suffix(self) -> &'static str {
        match self {
            Form::Whole => SUFFIX,
            Form::Part(_) => PART_SUFFIX,
        }
    }
}

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(in crate::store) struct Head {
    pub form: Form,
    pub start: Position,
    pub end: Position,
    pub first_time: i64,
    pub last_time: i64,
    /// Of all records, not compressed.
    pub raw: u64,
    table: u64,
    blocks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: u64,
    bytes: u32,
    raw: u32,
    crc: u32,
    facts: u32,
    batch: u64,
    /// Where its records stand among all.
    raw_at: u64,
}

impl Head {
    /// Names sort as their entries do, but for batches of more than 20 digits, which do not exist.
    pub fn name(&self) -> String {
        let (first, last) = (self.start.batch + 1, self.end.batch);
        format!("{first:020}-{last:020}.{:020}{}", self.start.next, self.form.suffix())
    }

    pub fn first(&self) -> Index {
        Index(self.start.batch + 1)
    }

    /// Below [`Head::first`] when there is no batch in it.
    pub fn last(&self) -> Index {
        Index(self.end.batch)
    }

    pub fn first_time(&self) -> Time {
        Time(self.first_time)
    }

    pub fn last_time(&self) -> Time {
        Time(self.last_time)
    }

    fn bytes(&self) -> [u8; HEAD - 4] {
        let mut bytes = [0; HEAD - 4];
        bytes[0..8].copy_from_slice(&self.form.magic());
        bytes[8..48].copy_from_slice(&self.start.bytes());
        bytes[48..88].copy_from_slice(&self.end.bytes());
        bytes[88..96].copy_from_slice(&self.first_time.to_le_bytes());
        bytes[96..104].copy_from_slice(&self.last_time.to_le_bytes());
        bytes[104..112].copy_from_slice(&self.raw.to_le_bytes());
        bytes[112..120].copy_from_slice(&self.table.to_le_bytes());
        bytes[120..124].copy_from_slice(&self.blocks.to_le_bytes());
        bytes
    }

    /// `None` when it is not one.
    fn read(bytes: &[u8]) -> Option<Head> {
        Some(Head {
            form: Form::read(bytes.get(0..8)?)?,
            start: Position::read(bytes.get(8..48)?)?,
            end: Position::read(bytes.get(48..88)?)?,
            first_time: number(bytes, 88)? as i64,
            last_time: number(bytes, 96)? as i64,
            raw: number(bytes, 104)?,
            table: number(bytes, 112)?,
            blocks: u32_at(bytes, 120)?,
        })
    }
}

impl Row {
    fn bytes(&self) -> [u8; ROW] {
        let mut bytes = [0; ROW];
        bytes[0..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.crc.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.facts.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.batch.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8], raw_at: u64) -> Option<Row> {
        Some(Row {
            at: number(bytes, 0)?,
            bytes: u32_at(bytes, 8)?,
            raw: u32_at(bytes, 12)?,
            crc: u32_at(bytes, 16)?,
            facts: u32_at(bytes, 20)?,
            batch: number(bytes, 24)?,
            raw_at,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("4 bytes were sliced")))
}

/// Makes the bytes of a file.
pub(in crate::store) struct Packer {
    head: Head,
    rows: Vec<Row>,
    /// Records that are not compressed yet.
    block: Vec<u8>,
    /// Facts in `block`, where only those are counted.
    facts: u32,
    /// A batch was added.
    has_time: bool,
    /// Index of the last batch before `block`.
    batch: u64,
    out: Vec<u8>,
    compressor: Compressor<'static>,
}

impl Packer {
    pub fn new(form: Form, start: Position, level: i32) -> io::Result<Packer> {
        let head = Head { form, start, end: start, ..Head::default() };
        let (rows, block, out) = (Vec::new(), Vec::new(), vec![0; HEAD]);
        let compressor = Compressor::new(level)?;
        let batch = start.batch;
        Ok(Packer { head, rows, block, facts: 0, has_time: false, batch, out, compressor })
    }

    /// # Panics
    /// If the entry does not follow the one before it.
    pub fn push(&mut self, entry: &Entry) -> io::Result<()> {
        let spot = self.spot();
        self.note_time(entry);
        self.head.end = write(entry, &mut self.block, spot, self.head.end);
        if self.block.len() >= BLOCK_BYTES { self.compress() } else { Ok(()) }
    }

    /// Adds what is kept of the entry before `after`, if that is something. Where no more follow, the file ends there.
    pub fn push_part(&mut self, part: Option<&Entry>, after: Position) -> io::Result<()> {
        if let Some(part) = part {
            let spot = self.spot();
            self.note_time(part);
            if let Payload::Batch(batch) = &part.payload {
                self.facts += batch.present() as u32;
            }
            Draft::of(part).write_part(&mut self.block, spot, after.chain);
        }
        self.head.end = after;
        if self.block.len() >= BLOCK_BYTES { self.compress() } else { Ok(()) }
    }

    fn spot(&self) -> Spot {
        Spot { segment: self.head.start.next, offset: self.head.raw + self.block.len() as u64 }
    }

    fn note_time(&mut self, entry: &Entry) {
        let Payload::Batch(batch) = &entry.payload else { return };
        self.head.last_time = batch.time().0;
        if !std::mem::replace(&mut self.has_time, true) {
            self.head.first_time = self.head.last_time;
        }
    }

    fn compress(&mut self) -> io::Result<()> {
        if self.block.len() > RAW_MAX {
            return Err(io::Error::other("an entry is too large for the archive"));
        }
        let packed = self.compressor.compress(&self.block)?;
        let (raw, raw_at) = (self.block.len() as u32, self.head.raw);
        let (at, bytes, crc) = (self.out.len() as u64, packed.len() as u32, crc32c::crc32c(&packed));
        let (facts, batch) = (std::mem::take(&mut self.facts), self.batch);
        self.rows.push(Row { at, bytes, raw, crc, facts, batch, raw_at });
        self.out.extend_from_slice(&packed);
        self.head.raw += u64::from(raw);
        self.batch = self.head.end.batch;
        self.block.clear();
        Ok(())
    }

    /// What the header says, and the whole file.
    pub fn finish(mut self) -> io::Result<(Head, Vec<u8>)> {
        if !self.block.is_empty() {
            self.compress()?;
        }
        (self.head.table, self.head.blocks) = (self.out.len() as u64, self.rows.len() as u32);
        self.rows.iter().for_each(|row| self.out.extend_from_slice(&row.bytes()));
        let head = self.head.bytes();
        let table = &self.out[self.head.table as usize..];
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), table);
        self.out[..HEAD - 4].copy_from_slice(&head);
        self.out[HEAD - 4..HEAD].copy_from_slice(&crc.to_le_bytes());
        Ok((self.head, self.out))
    }
}

/// Appends the record of an entry to `buffer`, where `spot` is, and returns where the log stands after it.
///
/// # Panics
/// If the entry does not follow on `at`.
pub(in crate::store) fn write(entry: &Entry, buffer: &mut Vec<u8>, spot: Spot, at: Position) -> Position {
    assert_eq!(entry.index, at.next, "entries are archived in their order");
    let chain = Draft::of(entry).write(buffer, spot, at.chain, 0);
    let batch = match &entry.payload {
        Payload::Batch(batch) => batch.index().0,
        Payload::Blank | Payload::Membership(_) => at.batch,
    };
    Position { next: entry.index + 1, term: entry.term, batch, chain }
}

/// A file of the archive that is open.
pub(in crate::store) struct Packed {
    name: String,
    file: Arc<dyn File>,
    pub head: Head,
    rows: Vec<Row>,
    pub bytes: u64,
}

impl Packed {
    /// Reads the header and the table.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is not as it was written.
    pub fn open(name: &str, file: Arc<dyn File>) -> Result<Packed, StoreError> {
        let bytes = file.size().map_err(StoreError::io("measure an archived file"))?;
        let wrong = |offset, why: &str| damaged(name, offset, why);
        if bytes < HEAD as u64 {
            return Err(wrong(0, "it is too short to be one"));
        }
        let first = read_at(&*file, 0, HEAD)?;
        if Form::read(&first[..8]).is_none() {
            return Err(wrong(0, "it does not begin as one"));
        }
        let head = Head::read(&first).ok_or_else(|| wrong(0, "its header cannot be read"))?;
        let table = u64::from(head.blocks) * ROW as u64;
        if head.table.checked_add(table) != Some(bytes) || head.table < HEAD as u64 {
            return Err(wrong(112, "it is not as long as its header says"));
        }
        let table = read_at(&*file, head.table, table as usize)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&first[..HEAD - 4]), &table);
        if u32_at(&first, HEAD - 4) != Some(crc) {
            return Err(wrong(0, "its header or its table fails its checksum"));
        }
        let mut rows = Vec::with_capacity(head.blocks as usize);
        let mut raw_at = 0;
        for bytes in table.chunks_exact(ROW) {
            let row = Row::read(bytes, raw_at).expect("a row has its length");
            raw_at += u64::from(row.raw);
            rows.push(row);
        }
        Ok(Packed { name: name.to_string(), file, head, rows, bytes })
    }

    pub fn blocks(&self) -> usize {
        self.rows.len()
    }

    /// Which block batch `index` is in, which is in the file.
    pub fn block_of(&self, index: Index) -> usize {
        self.rows.partition_point(|row| row.batch < index.0).saturating_sub(1)
    }

    /// The records of a block.
    pub fn block(&self, nth: usize) -> Result<Bytes, StoreError> {
        let row = &self.rows[nth];
        let packed = read_at(&*self.file, row.at, row.bytes as usize)?;
        if crc32c::crc32c(&packed) != row.crc || row.raw as usize > RAW_MAX {
            return Err(damaged(&self.name, row.at, "a block fails its checksum"));
        }
        let unpacked = Decompressor::new().and_then(|mut it| it.decompress(&packed, row.raw as usize));
        let raw = unpacked.map_err(|error| damaged(&self.name, row.at, &error.to_string()))?;
        if raw.len() != row.raw as usize {
            return Err(damaged(&self.name, row.at, "a block is not as long as the table says"));
        }
        Ok(Bytes::from(raw))
    }

    /// Passes each entry of a block to `each`, with the header of its record.
    pub fn walk(
        &self,
        nth: usize,
        block: &Bytes,
        mut each: impl FnMut(&Header, Entry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let row = &self.rows[nth];
        let mut at = 0;
        while at < block.len() {
            let spot = Spot { segment: self.head.start.next, offset: row.raw_at + at as u64 };
            let wrong = |why: String| damaged(&self.name, row.at, &why);
            let (header, payload) = record::read(&block[at..], spot).map_err(|bad| wrong(bad.to_string()))?;
            let payload = block.slice(at + RECORD..at + RECORD + payload.len());
            let entry = match self.head.form {
                Form::Whole => record::entry(&header, payload),
                Form::Part(_) => record::part(&header, payload),
            };
            let entry = entry.map_err(|source| wrong(source.to_string()))?;
            let entry = entry.ok_or_else(|| wrong("a record holds no entry".to_string()))?;
            each(&header, entry)?;
            at += header.size() as usize;
        }
        Ok(())
    }

    /// Facts in a file of kept ones.
    pub fn facts(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.facts)).sum()
    }

    /// Reads everything and holds each entry to the chain: from where the header says that the file begins to where it
    /// says that it ends. Of kept facts it holds all to their checksums and to their order.
    pub fn verify(&self) -> Result<(), StoreError> {
        match self.head.form {
            Form::Whole => self.verify_chain(),
            Form::Part(_) => self.verify_order(),
        }
    }

    fn verify_order(&self) -> Result<(), StoreError> {
        let (start, end) = (self.head.start, self.head.end);
        let (mut next, mut batch) = (start.next, start.batch);
        for nth in 0..self.rows.len() {
            let row = self.rows[nth];
            let mut facts = 0;
            if row.batch != batch {
                return Err(damaged(&self.name, row.at, "the table does not fit the batches"));
            }
            self.walk(nth, &self.block(nth)?, |header, entry| {
                let Payload::Batch(part) = &entry.payload else { unreachable!("a part is of a batch") };
                let follows = entry.index >= next
                    && entry.index < end.next
                    && header.index > batch
                    && header.index <= end.batch
                    && part.index().0 == header.index;
                if !follows {
                    let why = format!("entry {} is not in its place", entry.index);
                    return Err(damaged(&self.name, row.at, &why));
                }
                (next, batch, facts) = (entry.index + 1, header.index, facts + part.present());
                Ok(())
            })?;
            if facts != row.facts as usize {
                return Err(damaged(&self.name, row.at, "the table does not fit the facts"));
            }
        }
        Ok(())
    }

    fn verify_chain(&self) -> Result<(), StoreError> {
        let mut at = self.head.start;
        for nth in 0..self.rows.len() {
            let row = self.rows[nth];
            if row.batch != at.batch {
                return Err(damaged(&self.name, row.at, "the table does not fit the batches"));
            }
            self.walk(nth, &self.block(nth)?, |header, entry| {
                let follows = entry.index == at.next
                    && entry.term >= at.term
                    && (header.kind != Kind::Batch || header.index == at.batch + 1);
                if !follows || header.chain != chain_after(at, header, &entry) {
                    let why = format!("entry {} does not continue the log before it", entry.index);
                    return Err(damaged(&self.name, row.at, &why));
                }
                (at.next, at.term, at.chain) = (entry.index + 1, entry.term, header.chain);
                at.batch = if header.kind == Kind::Batch { header.index } else { at.batch };
                Ok(())
            })?;
        }
        if at != self.head.end {
            return Err(damaged(&self.name, 48, "it does not end where its header says"));
        }
        Ok(())
    }

    /// The whole file.
    pub fn whole(&self) -> Result<Vec<u8>, StoreError> {
        read_at(&*self.file, 0, self.bytes as usize)
    }
}

fn chain_after(at: Position, header: &Header, entry: &Entry) -> record::Chain {
    at.chain.then(header, Draft::of(entry).payload)
}

fn read_at(file: &dyn File, at: u64, len: usize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, at).map_err(StoreError::io("read an archived file"))?;
    Ok(bytes)
}

pub(super) fn damaged(name: &str, offset: u64, why: &str) -> StoreError {
    StoreError::Damaged { file: name.to_string(), offset, why: why.to_string() }
}
