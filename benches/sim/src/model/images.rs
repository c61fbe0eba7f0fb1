//! The images a server keeps of its state, as they would be on its disk.

use std::collections::BTreeMap;

use base::Index;
use bytes::Bytes;
use model::{Chunk, ChunkId, Image};
use state::{Imager, State};

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

    /// What a start finds on the disk.
    pub fn newest(&self) -> Option<Image> {
        let chunk = |id: &ChunkId| Chunk { id: *id, bytes: self.chunks.get(id).cloned() };
        let chunks: Vec<Chunk> = self.ids.iter().map(chunk).collect();
        (!chunks.is_empty()).then_some(Image { index: self.index, chunks })
    }
}
