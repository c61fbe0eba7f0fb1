//! Finds damage in what is rarely read, before it is needed.

use std::collections::BTreeMap;

use super::image::{ImageFile, Table, read_chunk};
use super::scan::scan_sealed;
use super::{Store, StoreError, images, segment};

/// How far [`Store::scrub`] has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The last segment that was read.
    segment: u64,
    /// The last image that was read; segments come first.
    image: u64,
}

impl Store {
    /// Reads one sealed segment, or one image, and holds every byte of it that matters to its checksum. Returns its name;
    /// `None` when all were read, and the next call begins anew. Blocks, as long as reading a segment takes.
    ///
    /// An image that a newer one stands before is only reported: it is not needed, and the next one removes it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where something is not what was written. The next call goes on behind it.
    pub fn scrub(&self) -> Result<Option<String>, StoreError> {
        let mut progress = self.shared.scrubbed.lock();
        let next = {
            let contents = self.shared.contents.lock();
            let sealed = contents.segments.iter().filter(|segment| segment.sealed.is_some());
            let mut rest = sealed.map(|segment| &segment.file);
            rest.find(|file| file.number > progress.segment).cloned()
        };
        if let Some(file) = next {
            progress.segment = file.number;
            scan_sealed(&file)?;
            return Ok(Some(segment::name(file.number)));
        }
        let next = {
            let images = self.shared.images.lock();
            let newest = images.newest().map(|table| table.number);
            let next = images.kept().find(|table| table.number > progress.image);
            next.map(|it| (it.clone(), images.files(), Some(it.number) < newest))
        };
        let Some((table, files, has_newer)) = next else {
            *progress = Progress::default();
            return Ok(None);
        };
        progress.image = table.number;
        let read = read_image(&table, &files);
        if let (Err(error @ StoreError::Damaged { .. }), true) = (&read, has_newer) {
            tracing::warn!(%error, "an image is damaged that a newer one stands before");
            return Ok(Some(images::name(table.number)));
        }
        read.map(|()| Some(images::name(table.number)))
    }
}

fn read_image(table: &Table, files: &BTreeMap<u64, ImageFile>) -> Result<(), StoreError> {
    Table::read(table.number, &files[&table.number])?;
    table.rows.iter().try_for_each(|row| read_chunk(&files[&row.file], row).map(drop))
}
