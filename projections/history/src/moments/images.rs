//! Images of past states on disk, in two keyspaces of the database of history:
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `images` | index (8) | the ids of its chunks (16 each) |
//! | `chunks` | id (16) | the bytes of a chunk |
//!
//! An image names all of its chunks. What it shares with others is stored once: chunks are pages of rows, and most pages
//! stay what they were from one image to the next.

use std::collections::HashSet;

use base::Index;
use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use model::{Chunk, ChunkId, Image};

use crate::history::HistoryError;

/// Images that are kept. When there are more, every other one goes, and moments between them take twice as long to reach. A thousand
/// nodes with ten thousand allocations make so many in ten million events.
pub const IMAGES_MAX: usize = 4_096;

pub(crate) struct Images {
    images: Keyspace,
    chunks: Keyspace,
}

impl Images {
    pub fn open(database: &Database) -> Result<Images, fjall::Error> {
        let images = database.keyspace("images", KeyspaceCreateOptions::default)?;
        let apart =
            || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
        Ok(Images { images, chunks: database.keyspace("chunks", apart)? })
    }

    pub fn clear(&self) -> Result<(), fjall::Error> {
        self.images.clear()?;
        self.chunks.clear()
    }

    /// Writes an image, all or nothing, and returns the bytes that were new; `None` when a chunk came without its bytes and
    /// is not here.
    pub fn write(&self, database: &Database, image: &Image) -> Result<Option<u64>, fjall::Error> {
        let mut batch = database.batch().durability(Some(PersistMode::Buffer));
        let mut written = 0;
        for chunk in &image.chunks {
            let is_here = self.chunks.contains_key(chunk.id.0)?;
            match &chunk.bytes {
                _ if is_here => {}
                None => return Ok(None),
                Some(bytes) => {
                    batch.insert(&self.chunks, chunk.id.0, &bytes[..]);
                    written += bytes.len() as u64;
                }
            }
        }
        let ids: Vec<u8> = image.chunks.iter().flat_map(|chunk| chunk.id.0).collect();
        written += ids.len() as u64;
        batch.insert(&self.images, image.index.0.to_be_bytes(), ids);
        batch.commit()?;
        Ok(Some(written))
    }

    /// The newest image at `index` or before.
    pub fn nearest(&self, index: Index) -> Result<Option<Index>, fjall::Error> {
        let key = self.images.range(..=index.0.to_be_bytes()).next_back().map(|entry| entry.key());
        Ok(key.transpose()?.map(|key| index_of(&key)))
    }

    /// The oldest image from `index` on.
    pub fn first(&self, index: Index) -> Result<Option<Index>, fjall::Error> {
        let key = self.images.range(index.0.to_be_bytes()..).next().map(|entry| entry.key());
        Ok(key.transpose()?.map(|key| index_of(&key)))
    }

    /// An image with all its bytes; `None` when there is none of that index.
    ///
    /// # Errors
    /// [`HistoryError::Image`] when a chunk is missing or is not what it was.
    pub fn read(&self, index: Index) -> Result<Option<Image>, HistoryError> {
        let Some(ids) = self.images.get(index.0.to_be_bytes())? else { return Ok(None) };
        let chunk = |id: &[u8]| {
            let id = ChunkId(id.try_into().expect("ids were sliced in sixteens"));
            let damaged = || HistoryError::Image { index, why: format!("{id:?} is damaged or missing") };
            let bytes = Bytes::copy_from_slice(&self.chunks.get(id.0)?.ok_or_else(damaged)?);
            if ChunkId::of(&bytes) != id {
                return Err(damaged());
            }
            Ok(Chunk { id, bytes: Some(bytes) })
        };
        let chunks = ids.chunks_exact(16).map(chunk).collect::<Result<_, HistoryError>>()?;
        Ok(Some(Image { index, chunks }))
    }

    /// Forgets an image that cannot be read; its chunks go with the next ones that do.
    pub fn forget(&self, index: Index) -> Result<(), fjall::Error> {
        self.images.remove(index.0.to_be_bytes())
    }

    /// Forgets images that the log does not lead on from any more, and every other one of those that are too many: the first
    /// and the last stay.
    pub fn thin_out(&self, horizon: Index) -> Result<(), fjall::Error> {
        let all: Vec<Index> = self.indexes()?;
        let (mut gone, kept): (Vec<Index>, Vec<Index>) = all.iter().partition(|index| index.next() < horizon);
        if kept.len() > IMAGES_MAX {
            let inner = &kept[1..kept.len() - 1];
            gone.extend(inner.iter().step_by(2));
        }
        if gone.is_empty() {
            return Ok(());
        }
        for index in gone {
            self.forget(index)?;
        }
        self.sweep()
    }

    /// Removes the chunks that no image names.
    fn sweep(&self) -> Result<(), fjall::Error> {
        let mut named: HashSet<[u8; 16]> = HashSet::new();
        for index in self.indexes()? {
            let ids = self.images.get(index.0.to_be_bytes())?;
            named.extend(ids.iter().flat_map(|ids| ids.as_chunks().0));
        }
        for entry in self.chunks.iter() {
            let id = entry.key()?;
            if !named.contains(&id[..]) {
                self.chunks.remove(id)?;
            }
        }
        Ok(())
    }

    pub fn indexes(&self) -> Result<Vec<Index>, fjall::Error> {
        self.images.iter().map(|entry| entry.key().map(|key| index_of(&key))).collect()
    }
}

fn index_of(key: &[u8]) -> Index {
    Index(u64::from_be_bytes(key.try_into().expect("keys of images are 8 bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Chunk {
        Chunk::new(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn opened(dir: &tempfile::TempDir) -> (Database, Images) {
        let database = Database::builder(dir.path()).open().unwrap();
        let images = Images::open(&database).unwrap();
        (database, images)
    }

    fn chunks(images: &Images) -> usize {
        images.chunks.iter().count()
    }

    #[test]
    fn what_images_share_is_stored_once() {
        let dir = tempfile::tempdir().unwrap();
        let (database, images) = opened(&dir);
        let first = Image { index: Index(3), chunks: vec![chunk("a"), chunk("b")] };
        assert_eq!(images.write(&database, &first).unwrap(), Some(2 + 32));
        let known = Chunk { bytes: None, ..chunk("b") };
        let second = Image { index: Index(9), chunks: vec![known, chunk("c")] };
        assert_eq!(images.write(&database, &second).unwrap(), Some(1 + 32));
        assert_eq!((chunks(&images), images.nearest(Index(8)).unwrap()), (3, Some(Index(3))));
        let read = images.read(Index(9)).unwrap().unwrap();
        assert_eq!(read.chunks, [chunk("b"), chunk("c")]);
        let unknown = Image { index: Index(10), chunks: vec![Chunk { bytes: None, ..chunk("d") }] };
        assert_eq!(images.write(&database, &unknown).unwrap(), None);
        assert_eq!(images.indexes().unwrap(), [Index(3), Index(9)]);
    }

    #[test]
    fn a_chunk_that_is_missing_or_another_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (database, images) = opened(&dir);
        images.write(&database, &Image { index: Index(3), chunks: vec![chunk("a")] }).unwrap();
        images.chunks.insert(chunk("a").id.0, "z").unwrap();
        assert!(matches!(images.read(Index(3)), Err(HistoryError::Image { index: Index(3), .. })));
        images.chunks.remove(chunk("a").id.0).unwrap();
        assert!(matches!(images.read(Index(3)), Err(HistoryError::Image { index: Index(3), .. })));
    }

    #[test]
    fn when_there_are_too_many_every_other_one_goes_with_what_it_alone_had() {
        let dir = tempfile::tempdir().unwrap();
        let (database, images) = opened(&dir);
        for index in 1..=IMAGES_MAX as u64 + 1 {
            let own = chunk(&format!("of {index}"));
            images
                .write(&database, &Image { index: Index(index), chunks: vec![chunk("of all"), own] })
                .unwrap();
        }
        images.thin_out(Index(1)).unwrap();
        let left = images.indexes().unwrap();
        assert_eq!((left.len(), left[0], left[1]), (IMAGES_MAX / 2 + 1, Index(1), Index(3)));
        assert_eq!(*left.last().unwrap(), Index(IMAGES_MAX as u64 + 1));
        assert_eq!(chunks(&images), left.len() + 1);
        images.thin_out(Index(10)).unwrap();
        assert_eq!(images.indexes().unwrap()[0], Index(9));
        assert_eq!(images.read(Index(9)).unwrap().unwrap().chunks[0], chunk("of all"));
    }
}
