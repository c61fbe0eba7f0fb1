//! The images a server keeps of its state, as they would be on its disk.

use std::collections::BTreeMap;

use base::Index;
use bytes::Bytes;
use model::{Chunk, ChunkId, Image};
use state::State;
use state::image::{Imager, restore};

#[derive(Default)]
pub struct Images {
    imager: Imager,
    index: Index,
    ids: Vec<ChunkId>,
    chunks: BTreeMap<ChunkId, Bytes>,
}

impl Images {
    /// Of the newest image.
    pub fn index(&self) -> Index {
        self.index
    }

    /// Adds to what is kept the chunks that changed.
    pub fn keep(&mut self, state: &State) {
        let image = self.imager.image(state);
        self.index = image.index;
        self.ids = image.chunks.iter().map(|chunk| chunk.id).collect();
        let new = image.chunks.into_iter().filter_map(|chunk| Some((chunk.id, chunk.bytes?)));
        self.chunks.extend(new);
        self.chunks.retain(|id, _| self.ids.contains(id));
    }

    /// What was imaged last was in memory.
    pub fn forget_maker(&mut self) {
        self.imager.reset();
    }

    /// # Errors
    /// It cannot be read.
    pub fn newest(&self) -> Result<Option<State>, String> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        let chunk = |id: &ChunkId| Chunk { id: *id, bytes: self.chunks.get(id).cloned() };
        let image = Image { index: self.index, chunks: self.ids.iter().map(chunk).collect() };
        restore(&image).map(Some).map_err(|error| error.to_string())
    }
}
