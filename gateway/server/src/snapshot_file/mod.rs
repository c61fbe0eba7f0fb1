//! A snapshot of the whole state as one file: what `operator snapshot save` writes and `restore` takes.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SJSNAP\r\n`: a transfer as text would change it |
//! | 4 | version: 1 |
//! | 4 | length of the table |
//! | n | the table: see below |
//! | 4 | CRC32C of everything so far |
//! | … | the chunks of the image, one after another |
//! | 32 | SHA-256 of everything so far |
//!
//! The table: time of the snapshot (8, nanoseconds), cluster (16), index (8), term (8), release (1 + n), number of
//! contents (2) and for each its name (1 + n), count (8) and bytes (8), number of chunks (4) and for each its id (16)
//! and length (4). Numbers are little-endian. Contents are for people: what a state is made of, kind by kind.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base::{Index, Term, Time, Uuid};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use http_gateway::{ClusterError, FileStream, SnapshotFile, Snapshots};
use model::{ChunkId, Image};

pub use decode::{Decoder, FileError, Kept, Read};
pub use encode::{EncodeError, Encoded, encode};

const MAGIC: [u8; 8] = *b"SJSNAP\r\n";
const VERSION: u32 = 1;
const CHECKSUM: usize = 32;

/// Largest table: two million chunks.
const TABLE_MAX: usize = 64 << 20;

/// Largest chunk. Images are cut far smaller.
const CHUNK_MAX: u32 = 1 << 30;

/// Most kinds of contents.
const CONTENTS_MAX: usize = 256;

/// What a file says about the state in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    pub created: Time,
    pub cluster: Uuid,
    /// The last batch it holds the outcome of.
    pub index: Index,
    pub term: Term,
    /// The release that wrote it.
    pub release: String,
    pub contents: Vec<Content>,
}

/// How much of one kind of thing there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub kind: String,
    pub count: u64,
    pub bytes: u64,
}

impl Meta {
    /// The name of a snapshot as Nomad writes it: `term-index-milliseconds`.
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.term.0, self.index.0, self.created.0 / 1_000_000)
    }
}

/// Where files come from and go to.
pub trait StateImages: Send + Sync + 'static {
    /// A complete image of everything that is committed here.
    fn image(&self) -> BoxFuture<'_, Result<(Meta, Image), ClusterError>>;

    /// Puts an image in place of the state of the whole cluster.
    ///
    /// # Errors
    /// [`ClusterError`]; nothing has changed then.
    fn install(&self, meta: Meta, image: Image) -> BoxFuture<'_, Result<(), ClusterError>>;
}

/// Snapshot files of some [`StateImages`].
pub struct SnapshotFiles(pub Arc<dyn StateImages>);

impl Snapshots for SnapshotFiles {
    fn save(&self) -> BoxFuture<'_, Result<SnapshotFile, ClusterError>> {
        async move {
            let (meta, image) = self.0.image().await?;
            let index = meta.index.0;
            let work = move || encode(&meta, &image);
            let file = tokio::task::spawn_blocking(work).await;
            let file = file.map_err(|error| ClusterError::Failed(format!("write the snapshot: {error}")))?;
            let file = file.map_err(|error| ClusterError::Failed(error.to_string()))?;
            Ok(SnapshotFile {
                digest: file.digest(),
                bytes: file.len(),
                index,
                stream: stream::iter(file.parts.into_iter().map(Ok)).boxed(),
            })
        }
        .boxed()
    }

    fn restore(&self, file: FileStream) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move {
            let (meta, image) = received(file).await?;
            self.0.install(meta, image).await
        }
        .boxed()
    }
}

/// Reads a file as it arrives.
async fn received(mut file: FileStream) -> Result<(Meta, Image), ClusterError> {
    let broken = |error: FileError| ClusterError::Failed(format!("the snapshot is not taken: {error}"));
    let mut decoder = Decoder::new(Kept::Everything);
    while let Some(bytes) = file.next().await {
        let bytes =
            bytes.map_err(|error| ClusterError::Failed(format!("the snapshot broke off: {error}")))?;
        decoder.push(&bytes).map_err(broken)?;
    }
    let read = decoder.finish().map_err(broken)?;
    Ok((read.meta, Image { index: read.index, chunks: read.chunks }))
}

/// A chunk in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    id: ChunkId,
    length: u32,
}
