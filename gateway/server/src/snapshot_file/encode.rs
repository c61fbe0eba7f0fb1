use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes};
use model::{ChunkId, Image};
use sha2::{Digest, Sha256};

use super::{CHUNK_MAX, CONTENTS_MAX, MAGIC, Meta, TABLE_MAX, VERSION};

/// Why an image cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("the image is not whole: {0:?} comes without its bytes")]
    Incomplete(ChunkId),
    #[error("the image does not fit a file: its {0} is too large")]
    TooLarge(&'static str),
}

/// A file that was made, in parts.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub parts: Vec<Bytes>,
    /// SHA-256 of the whole file.
    pub sha256: [u8; 32],
}

impl Encoded {
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// As Nomad's `Digest` header has it.
    pub fn digest(&self) -> String {
        format!("sha-256={}", STANDARD.encode(self.sha256))
    }
}

/// The file of an image. Its parts are pointers into the image: nothing is copied.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(meta: &Meta, image: &Image) -> Result<Encoded, EncodeError> {
    let mut chunks = Vec::with_capacity(image.chunks.len());
    for chunk in &image.chunks {
        let bytes = chunk.bytes.clone().ok_or(EncodeError::Incomplete(chunk.id))?;
        if bytes.len() > CHUNK_MAX as usize {
            return Err(EncodeError::TooLarge("chunk"));
        }
        chunks.push((chunk.id, bytes));
    }
    let head = head(meta, &chunks)?;
    let mut parts: Vec<Bytes> = vec![head];
    parts.extend(chunks.into_iter().map(|(_, bytes)| bytes));
    let mut hash = Sha256::new();
    for part in &parts {
        hash.update(part);
    }
    let checksum = Bytes::copy_from_slice(&hash.clone().finalize());
    hash.update(&checksum);
    parts.push(checksum);
    Ok(Encoded { parts, sha256: hash.finalize().into() })
}

fn head(meta: &Meta, chunks: &[(ChunkId, Bytes)]) -> Result<Bytes, EncodeError> {
    let table = table(meta, chunks)?;
    let mut head = Vec::with_capacity(table.len() + 20);
    head.put_slice(&MAGIC);
    head.put_u32_le(VERSION);
    head.put_u32_le(u32::try_from(table.len()).expect("the table was found small enough"));
    head.put_slice(&table);
    head.put_u32_le(crc32c::crc32c(&head));
    Ok(head.into())
}

fn table(meta: &Meta, chunks: &[(ChunkId, Bytes)]) -> Result<Vec<u8>, EncodeError> {
    let mut table = Vec::with_capacity(128 + chunks.len() * 20);
    table.put_i64_le(meta.created.0);
    table.put_slice(&meta.cluster.0);
    table.put_u64_le(meta.index.0);
    table.put_u64_le(meta.term.0);
    put_text(&mut table, &meta.release, "release")?;
    if meta.contents.len() > CONTENTS_MAX {
        return Err(EncodeError::TooLarge("list of contents"));
    }
    table.put_u16_le(meta.contents.len() as u16);
    for content in &meta.contents {
        put_text(&mut table, &content.kind, "kind of contents")?;
        table.put_u64_le(content.count);
        table.put_u64_le(content.bytes);
    }
    let too_many = |_| EncodeError::TooLarge("number of chunks");
    table.put_u32_le(u32::try_from(chunks.len()).map_err(too_many)?);
    for (id, bytes) in chunks {
        table.put_slice(&id.0);
        table.put_u32_le(bytes.len() as u32);
    }
    if table.len() > TABLE_MAX { Err(EncodeError::TooLarge("table")) } else { Ok(table) }
}

fn put_text(to: &mut Vec<u8>, text: &str, what: &'static str) -> Result<(), EncodeError> {
    to.put_u8(u8::try_from(text.len()).map_err(|_| EncodeError::TooLarge(what))?);
    to.put_slice(text.as_bytes());
    Ok(())
}
