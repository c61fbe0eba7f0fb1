//! A log that is looked at where it lies, without its server: nothing is written, mended or locked.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::Index;
use model::Image;

use super::files::{Directory, Files, ReadOnly};
use super::image::ImageMeta;
use super::recovery::{self, Recovered};
use super::{Entry, LogId, Shared, StoreError};

/// What a log held when it was opened, every record held to its checksum. A torn end, as a crash leaves it, is passed over.
pub struct Reader {
    shared: Shared,
}

impl Reader {
    /// # Errors
    /// [`StoreError::InUse`] when a process has the log: it would change under the reader.
    /// [`StoreError::Damaged`] when a record is bad that was safely written.
    pub fn open(path: &Path) -> Result<Reader, StoreError> {
        if Directory::is_in_use(path)? {
            return Err(StoreError::InUse { path: path.to_path_buf() });
        }
        let files = ReadOnly::new(path);
        let names = files.list().map_err(StoreError::io("list the log's segments"))?;
        let Recovered { contents, images, .. } = recovery::look(&files, &names)?.recovered;
        // Nobody writes, so nothing can fail for good.
        Ok(Reader { shared: Shared::new(contents, images, Arc::new(|_| {})) })
    }

    /// The raft index of the oldest entry held, or of the next one if there is none.
    pub fn first(&self) -> u64 {
        self.shared.contents.lock().base.next
    }

    /// The last entry. A log that holds none but continues an image returns the image's last one.
    pub fn last(&self) -> Option<LogId> {
        self.shared.contents.lock().last()
    }

    /// Entries up to here are known to be committed. What follows may be too: it is noted a little later.
    pub fn committed(&self) -> Option<LogId> {
        self.shared.contents.lock().notes.committed
    }

    /// The oldest batch that can be read, or the next one if there is none.
    pub fn horizon(&self) -> Index {
        self.shared.contents.lock().horizon()
    }

    /// The index of the last batch at or before an entry; 0 when there is none.
    pub fn batch_at(&self, raft_index: u64) -> Index {
        self.shared.contents.lock().batch_at(raft_index)
    }

    /// Entries of `range`, as far as they exist: as many as fit `max_bytes` of payload, but always one if there is one.
    ///
    /// # Errors
    /// [`StoreError::Removed`] when the first of them is not kept any more.
    pub fn entries(&self, range: Range<u64>, max_bytes: usize) -> Result<Vec<Entry>, StoreError> {
        self.shared.entries(range, max_bytes)
    }

    /// The newest image that can be used, every chunk held to its checksum.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when none can be used.
    pub fn read_image(&self) -> Result<Option<(ImageMeta, Image)>, StoreError> {
        self.shared.read_image()
    }
}
