//! The bytes of an image file: a header of 64 bytes, the table, then chunks one after the other.
//!
//! | at | size | header field |
//! |---|---|---|
//! | 0 | 8 | magic `SJRIMG01` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | CRC32C of the table |
//! | 16 | 8 | length of the file: a file that was cut off shows |
//! | 24 | 8 | length of the table |
//! | 32 | 8 | number of the image, which is in the file's name too |
//! | 40 | 20 | zeros |
//! | 60 | 4 | CRC32C of the header |
//!
//! | at | size | table field |
//! |---|---|---|
//! | 0 | 24 | last entry in it: raft index, term; last batch in it |
//! | 24 | 16 | chain at the last entry |
//! | 40 | 8 | 1 when it came from the leader, 0 when this server made it |
//! | 48 | 8 | length of the members |
//! | 56 | | members, as the consensus library's adapter encodes them |
//! | | 40 each | chunks in order: id (16), number of the file it is in (8), where (8), length (4), CRC32C (4) |
//!
//! A chunk stands in this file, or in that of an image kept before. Equal chunks stand there once.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use base::Index;
use bytes::Bytes;
use model::ChunkId;

use super::files::File;
use super::position::{Position, number};
use super::record::Chain;
use super::{LogId, StoreError};

const MAGIC: [u8; 8] = *b"SJRIMG01";
const VERSION: u32 = 1;
pub(super) const HEADER: u64 = 64;
const ROW: usize = 40;
const SUFFIX: &str = ".img";

/// What an image holds the outcome of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageMeta {
    /// The last entry.
    pub last: LogId,
    /// The last batch at or before it.
    pub index: Index,
    /// The membership at it, as the consensus library's adapter encodes it.
    pub members: Bytes,
    /// The chain at `last`: what a log that begins after the image hangs on. `None` in an image that this server makes
    /// itself: its log has it. It goes with the image when that is sent, so that equal logs have equal chains on
    /// every server, however they came by them.
    pub chain: Option<Chain>,
}

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub id: ChunkId,
    /// Number of the image whose file it is in.
    pub file: u64,
    pub offset: u64,
    pub len: u32,
    pub crc: u32,
}

/// What an image file says about itself.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub number: u64,
    pub meta: ImageMeta,
    pub chain: Chain,
    /// It came from the leader: the log may lack what it holds the outcome of.
    pub installed: bool,
    pub rows: Vec<Row>,
    pub by_id: HashMap<ChunkId, Row>,
}

/// An image's file, open.
#[derive(Clone)]
pub(super) struct ImageFile {
    pub file: Arc<dyn File>,
    pub bytes: u64,
}

pub(super) fn name(number: u64) -> String {
    format!("{number:020}{SUFFIX}")
}

/// The numbers of the images among `names`, in order.
pub(super) fn numbers(names: &[String]) -> Vec<u64> {
    super::segment::numbered(names, SUFFIX)
}

impl Table {
    pub fn new(number: u64, meta: ImageMeta, chain: Chain, installed: bool, rows: Vec<Row>) -> Table {
        let meta = ImageMeta { chain: Some(chain), ..meta };
        let by_id = rows.iter().map(|row| (row.id, *row)).collect();
        Table { number, meta, chain, installed, rows, by_id }
    }

    /// Where a log stands that begins after the image.
    pub fn position(&self) -> Position {
        let last = self.meta.last;
        Position { next: last.index + 1, term: last.term, batch: self.meta.index.0, chain: self.chain }
    }

    /// Bytes in use of each file that has chunks of it.
    pub fn used(&self) -> BTreeMap<u64, u64> {
        let mut used = BTreeMap::new();
        for row in self.by_id.values() {
            *used.entry(row.file).or_default() += u64::from(row.len);
        }
        used
    }

    /// What the header and the table take.
    pub fn front_len(members: usize, rows: usize) -> u64 {
        HEADER + (56 + members + rows * ROW) as u64
    }

    /// The header and the table of a file of `total` bytes.
    pub fn bytes(&self, total: u64) -> Vec<u8> {
        let mut table = Vec::new();
        let meta = &self.meta;
        for field in [meta.last.index, meta.last.term, meta.index.0] {
            table.extend_from_slice(&field.to_le_bytes());
        }
        table.extend_from_slice(&self.chain.0);
        for field in [u64::from(self.installed), meta.members.len() as u64] {
            table.extend_from_slice(&field.to_le_bytes());
        }
        table.extend_from_slice(&meta.members);
        for row in &self.rows {
            table.extend_from_slice(&row.id.0);
            table.extend_from_slice(&row.file.to_le_bytes());
            table.extend_from_slice(&row.offset.to_le_bytes());
            table.extend_from_slice(&row.len.to_le_bytes());
            table.extend_from_slice(&row.crc.to_le_bytes());
        }
        let mut bytes = vec![0; HEADER as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&crc32c::crc32c(&table).to_le_bytes());
        bytes[16..24].copy_from_slice(&total.to_le_bytes());
        bytes[24..32].copy_from_slice(&(table.len() as u64).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&table);
        bytes
    }

    /// The table of the image `number`, checksums compared. Chunks are not read.
    pub fn read(number: u64, file: &ImageFile) -> Result<Table, StoreError> {
        let wrong = |offset: u64, why: &str| damaged(number, offset, why);
        let header = read_at(file, 0, HEADER).map_err(StoreError::io("read an image"))?;
        let header = header.filter(|header| header[..8] == MAGIC && crc_at(header, 60) == Some(crc(header)));
        let header = header.ok_or_else(|| wrong(0, "the header fails its checksum"))?;
        let version = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes were sliced"));
        if version != VERSION {
            let why = format!(
                "image version {version} is not known to this server: it was written by a newer release"
            );
            return Err(StoreError::Newer { file: name(number), offset: 0, why });
        }
        let field = |at| self::number(&header, at).expect("the header has 64 bytes");
        if field(16) != file.bytes {
            return Err(wrong(file.bytes, "the file is not as long as it was made"));
        }
        if field(32) != number {
            return Err(wrong(32, "it is another image"));
        }
        let table = read_at(file, HEADER, field(24)).map_err(StoreError::io("read an image"))?;
        let table = table.filter(|table| crc_at(&header, 12) == Some(crc32c::crc32c(table)));
        let table = table.ok_or_else(|| wrong(HEADER, "the table fails its checksum"))?;
        Table::parse(number, &table).ok_or_else(|| wrong(HEADER, "the table is not one"))
    }

    fn parse(number_of: u64, table: &[u8]) -> Option<Table> {
        let members = usize::try_from(number(table, 48)?).ok()?;
        let rows_at = members.checked_add(56)?;
        let meta = ImageMeta {
            last: LogId { index: number(table, 0)?, term: number(table, 8)? },
            index: Index(number(table, 16)?),
            members: Bytes::copy_from_slice(table.get(56..rows_at)?),
            chain: None,
        };
        let chain = Chain(table.get(24..40)?.try_into().expect("16 bytes were sliced"));
        let rows = table.get(rows_at..)?;
        if rows.len() % ROW != 0 {
            return None;
        }
        let row = |row: &[u8]| {
            let u32 =
                |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().expect("4 bytes were sliced"));
            let id = ChunkId(row[..16].try_into().expect("16 bytes were sliced"));
            Some(Row { id, file: number(row, 16)?, offset: number(row, 24)?, len: u32(32), crc: u32(36) })
        };
        let rows = rows.chunks_exact(ROW).map(row).collect::<Option<Vec<Row>>>()?;
        Some(Table::new(number_of, meta, chain, number(table, 40)? != 0, rows))
    }
}

/// A chunk's bytes, held to its checksum and its id.
pub(super) fn read_chunk(file: &ImageFile, row: &Row) -> Result<Bytes, StoreError> {
    let bytes = read_at(file, row.offset, u64::from(row.len)).map_err(StoreError::io("read an image"))?;
    let bytes = bytes.filter(|bytes| crc32c::crc32c(bytes) == row.crc && ChunkId::of(bytes) == row.id);
    let why = || format!("{:?} fails its checksum", row.id);
    bytes.map(Bytes::from).ok_or_else(|| damaged(row.file, row.offset, &why()))
}

/// `None` beyond the file's end.
fn read_at(file: &ImageFile, at: u64, len: u64) -> io::Result<Option<Vec<u8>>> {
    if at.checked_add(len).is_none_or(|end| end > file.bytes) {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    file.file.read_at(&mut bytes, at)?;
    Ok(Some(bytes))
}

pub(super) fn damaged(number: u64, offset: u64, why: &str) -> StoreError {
    StoreError::Damaged { file: name(number), offset, why: why.to_string() }
}

fn crc(header: &[u8]) -> u32 {
    crc32c::crc32c(&header[..60])
}

fn crc_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().expect("4 bytes were sliced")))
}
