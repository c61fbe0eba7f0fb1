use base::{Index, Term, Time, Uuid};
use bytes::{Buf, Bytes, BytesMut, TryGetError};
use model::{Chunk, ChunkId};
use sha2::{Digest, Sha256};

use super::{CHECKSUM, CHUNK_MAX, CONTENTS_MAX, Content, Entry, MAGIC, Meta, TABLE_MAX, VERSION};

/// Magic, version and length of the table.
const PREFIX: usize = 16;

/// Why a file is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("this is no snapshot file")]
    Foreign,
    #[error("the file has version {0}, and this release reads version {VERSION}")]
    Version(u32),
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error("the file is cut off: it ends after {0} bytes")]
    CutOff(u64),
    #[error("something follows the end of the snapshot")]
    Longer,
}

/// What is wanted of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Everything,
    /// Chunks are checked and dropped.
    Description,
}

/// What a whole file held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub meta: Meta,
    pub index: Index,
    /// Empty when only a description was wanted.
    pub chunks: Vec<Chunk>,
    pub bytes: u64,
}

/// Takes a file in pieces of any size. It holds the chunk that is arriving, and those that are to be kept.
pub struct Decoder {
    kept: Kept,
    stage: Stage,
    /// Bytes of the part that is arriving.
    pending: BytesMut,
    hash: Sha256,
    taken: u64,
    meta: Option<Meta>,
    table: Vec<Entry>,
    chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Prefix,
    /// The table of this length, and its checksum.
    Table(usize),
    Chunk(usize),
    Checksum,
    End,
}

impl Decoder {
    pub fn new(kept: Kept) -> Decoder {
        Decoder {
            kept,
            stage: Stage::Prefix,
            pending: BytesMut::new(),
            hash: Sha256::new(),
            taken: 0,
            meta: None,
            table: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// # Errors
    /// [`FileError`] as soon as something is wrong; nothing of the file is to be used then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), FileError> {
        loop {
            let missing = self.wanted() - self.pending.len();
            let (part, rest) = bytes.split_at(missing.min(bytes.len()));
            self.pending.extend_from_slice(part);
            self.taken += part.len() as u64;
            bytes = rest;
            if self.stage == Stage::End {
                return if bytes.is_empty() { Ok(()) } else { Err(FileError::Longer) };
            }
            if self.pending.len() < self.wanted() {
                return Ok(());
            }
            let whole = self.pending.split().freeze();
            self.stage = self.take(whole)?;
        }
    }

    /// # Errors
    /// [`FileError::CutOff`] if more was to come.
    pub fn finish(self) -> Result<Read, FileError> {
        let meta = self.meta.filter(|_| self.stage == Stage::End).ok_or(FileError::CutOff(self.taken))?;
        Ok(Read { index: meta.index, meta, chunks: self.chunks, bytes: self.taken })
    }

    fn wanted(&self) -> usize {
        match self.stage {
            Stage::Prefix => PREFIX,
            Stage::Table(length) => length + 4,
            Stage::Chunk(at) => self.table[at].length as usize,
            Stage::Checksum => CHECKSUM,
            Stage::End => 0,
        }
    }

    fn take(&mut self, part: Bytes) -> Result<Stage, FileError> {
        if self.stage != Stage::Checksum {
            self.hash.update(&part);
        }
        match self.stage {
            Stage::Prefix => prefix(&part),
            Stage::Table(length) => {
                let (table, mut checksum) = part.split_at(length);
                // The table's checksum also covers the bytes before it.
                let before = crc32c::crc32c(&prefix_of(length));
                if crc32c::crc32c_append(before, table) != checksum.get_u32_le() {
                    return Err(FileError::Damaged("its table does not match its checksum".to_string()));
                }
                let (meta, table) = read_table(table)?;
                (self.meta, self.table) = (Some(meta), table);
                Ok(self.after_chunk(0))
            }
            Stage::Chunk(at) => {
                let id = self.table[at].id;
                if ChunkId::of(&part) != id {
                    return Err(FileError::Damaged(format!("chunk {at} is not what the table says")));
                }
                if self.kept == Kept::Everything {
                    self.chunks.push(Chunk { id, bytes: Some(part) });
                }
                Ok(self.after_chunk(at + 1))
            }
            Stage::Checksum if self.hash.clone().finalize()[..] == part[..] => Ok(Stage::End),
            Stage::Checksum => Err(FileError::Damaged("it does not match its checksum".to_string())),
            Stage::End => Err(FileError::Longer),
        }
    }

    fn after_chunk(&self, next: usize) -> Stage {
        if next < self.table.len() { Stage::Chunk(next) } else { Stage::Checksum }
    }
}

/// The bytes before a table of this length.
fn prefix_of(length: usize) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    prefix[..8].copy_from_slice(&MAGIC);
    prefix[8..12].copy_from_slice(&VERSION.to_le_bytes());
    prefix[12..].copy_from_slice(&(length as u32).to_le_bytes());
    prefix
}

fn prefix(mut part: &[u8]) -> Result<Stage, FileError> {
    if part[..8] != MAGIC {
        return Err(FileError::Foreign);
    }
    part.advance(8);
    let (version, length) = (part.get_u32_le(), part.get_u32_le() as usize);
    if version != VERSION {
        return Err(FileError::Version(version));
    }
    if length > TABLE_MAX {
        return Err(FileError::Damaged(format!("its table is said to have {length} bytes")));
    }
    Ok(Stage::Table(length))
}

fn read_table(table: &[u8]) -> Result<(Meta, Vec<Entry>), FileError> {
    let malformed = |_| FileError::Damaged("its table makes no sense".to_string());
    let (meta, entries) = table_of(table).map_err(malformed)?;
    if let Some(at) = entries.iter().position(|entry| entry.length > CHUNK_MAX) {
        return Err(FileError::Damaged(format!("chunk {at} is said to have {} bytes", entries[at].length)));
    }
    Ok((meta, entries))
}

/// The table is shorter or longer than it says, or has invalid text.
struct Malformed;

impl From<TryGetError> for Malformed {
    fn from(_: TryGetError) -> Malformed {
        Malformed
    }
}

fn table_of(mut from: &[u8]) -> Result<(Meta, Vec<Entry>), Malformed> {
    let created = Time(from.try_get_i64_le()?);
    let cluster = Uuid(get_id(&mut from)?);
    let (index, term) = (Index(from.try_get_u64_le()?), Term(from.try_get_u64_le()?));
    let release = get_text(&mut from)?;
    let kinds = usize::from(from.try_get_u16_le()?);
    if kinds > CONTENTS_MAX {
        return Err(Malformed);
    }
    let mut contents = Vec::with_capacity(kinds);
    for _ in 0..kinds {
        let kind = get_text(&mut from)?;
        contents.push(Content { kind, count: from.try_get_u64_le()?, bytes: from.try_get_u64_le()? });
    }
    let chunks = from.try_get_u32_le()? as usize;
    if from.remaining() != chunks.checked_mul(20).ok_or(Malformed)? {
        return Err(Malformed);
    }
    let entries = (0..chunks)
        .map(|_| Ok(Entry { id: ChunkId(get_id(&mut from)?), length: from.try_get_u32_le()? }))
        .collect::<Result<Vec<_>, Malformed>>()?;
    Ok((Meta { created, cluster, index, term, release, contents }, entries))
}

fn get_id(from: &mut &[u8]) -> Result<[u8; 16], Malformed> {
    let mut id = [0; 16];
    from.try_copy_to_slice(&mut id)?;
    Ok(id)
}

/// Names go to terminals: they have no control characters.
fn get_text(from: &mut &[u8]) -> Result<String, Malformed> {
    let length = usize::from(from.try_get_u8()?);
    let (text, rest) = from.split_at_checked(length).ok_or(Malformed)?;
    *from = rest;
    let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
    if text.chars().any(char::is_control) { Err(Malformed) } else { Ok(text.to_string()) }
}
