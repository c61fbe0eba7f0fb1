//! The images that are kept beside the segments: what a restart begins from.
//!
//! A new image is written under another name, synced, renamed, and the directory synced. Only then is what nobody
//! needs any more removed. Chunks that an earlier image has are not written again; to keep that from leaving ever more
//! files of ever fewer useful bytes, what is still used of a file that is mostly unused goes into the new one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use base::Time;
use bytes::Bytes;
use model::{Chunk, ChunkId, Image};

use super::files::{File, Files};
pub(super) use super::image::{ImageFile, name};
use super::image::{ImageMeta, Row, Table, damaged, numbers, read_chunk};
use super::queue::Op;
use super::record::Chain;
use super::{Done, LogId, Shared, Store, StoreError};
use crate::port::KeepError;

/// An image that is being written.
pub(super) const UNFINISHED: &str = "image.tmp";

/// Images kept: if the newest is damaged, there is another.
pub const IMAGES_KEPT: usize = 2;

/// Files that the chunks of one image lie in at most. What would lie in one more is written anew.
pub const IMAGE_FILES_MAX: usize = 8;

/// Bytes of an image that are synced at once: a log that is synced meanwhile waits for no more.
const SYNC_BYTES: usize = 8 << 20;

/// What is kept, as the tables of the files say.
#[derive(Default)]
pub(super) struct Images {
    /// Newest last.
    kept: Vec<Table>,
    files: BTreeMap<u64, ImageFile>,
    /// The highest number in use.
    last_number: u64,
}

/// Reads the tables of the newest images that are whole.
pub(super) fn load(files: &dyn Files, names: &[String]) -> Result<Images, StoreError> {
    load_with(files, names, |_, error| {
        tracing::warn!(%error, "an image is damaged: the one before it is used if there is one");
    })
}

/// As [`load`], and lists which newer ones are damaged.
pub(super) fn load_with(
    files: &dyn Files,
    names: &[String],
    mut damaged: impl FnMut(u64, StoreError),
) -> Result<Images, StoreError> {
    let numbers = numbers(names);
    let mut images = Images { last_number: numbers.last().copied().unwrap_or(0), ..Images::default() };
    for number in &numbers {
        let file = files.open(&name(*number)).map_err(StoreError::io("open an image"))?;
        let bytes = file.size().map_err(StoreError::io("measure an image"))?;
        images.files.insert(*number, ImageFile { file, bytes });
    }
    for number in numbers.iter().rev() {
        match images.check(*number) {
            Ok(table) => images.kept.insert(0, table),
            Err(error @ StoreError::Damaged { .. }) => damaged(*number, error),
            Err(error) => return Err(error),
        }
        if images.kept.len() == IMAGES_KEPT {
            break;
        }
    }
    Ok(images)
}

impl Images {
    pub fn newest(&self) -> Option<&Table> {
        self.kept.last()
    }

    /// The older of the two images that are kept.
    pub fn older(&self) -> Option<&Table> {
        self.kept.len().checked_sub(2).map(|at| &self.kept[at])
    }

    /// Reads every chunk.
    pub fn verify(&self, table: &Table) -> Result<(), StoreError> {
        table.rows.iter().try_for_each(|row| self.read(row).map(drop))
    }

    /// The oldest first.
    pub fn kept(&self) -> impl Iterator<Item = &Table> {
        self.kept.iter()
    }

    pub fn files(&self) -> BTreeMap<u64, ImageFile> {
        self.files.clone()
    }

    fn newest_meta(&self) -> Option<ImageMeta> {
        self.newest().map(|table| table.meta.clone())
    }

    /// Reads a table, and sees whether the files that it refers to can have what it says.
    fn check(&self, number: u64) -> Result<Table, StoreError> {
        let table = Table::read(number, &self.files[&number])?;
        for row in &table.rows {
            let file = self.files.get(&row.file).filter(|_| row.file <= number);
            let end = row.offset.checked_add(u64::from(row.len));
            if end.is_none_or(|end| file.is_none_or(|file| end > file.bytes)) {
                let why = format!("{:?} would be in {}, which does not reach there", row.id, name(row.file));
                return Err(damaged(number, super::image::HEADER, &why));
            }
        }
        Ok(table)
    }

    fn read(&self, row: &Row) -> Result<Bytes, StoreError> {
        read_chunk(&self.files[&row.file], row)
    }

    /// Files that the next image must not refer to: mostly unused ones, and the least used ones of too many.
    fn folded(&self, stays: &HashMap<ChunkId, Row>) -> BTreeSet<u64> {
        let mut used: BTreeMap<u64, u64> = BTreeMap::new();
        stays.values().for_each(|row| *used.entry(row.file).or_default() += u64::from(row.len));
        let mut order: Vec<(u64, u64)> = used.into_iter().map(|(file, used)| (used, file)).collect();
        order.sort_unstable();
        let too_many = (order.len() + 1).saturating_sub(IMAGE_FILES_MAX);
        let mostly_unused = |used: u64, file: u64| used * 2 < self.files[&file].bytes;
        let folded = order.iter().enumerate();
        let folded = folded.filter(|(nth, (used, file))| *nth < too_many || mostly_unused(*used, *file));
        folded.map(|(_, (_, file))| *file).collect()
    }

    /// Takes a new image, and lets go of what is not needed any more: names of files to remove.
    fn take(&mut self, table: Table, file: ImageFile) -> Vec<String> {
        self.last_number = table.number;
        self.files.insert(table.number, file);
        self.kept.push(table);
        let surplus = self.kept.len().saturating_sub(IMAGES_KEPT);
        self.kept.drain(..surplus);
        let own = self.kept.iter().map(|table| table.number);
        let needed: BTreeSet<u64> =
            own.chain(self.kept.iter().flat_map(|table| table.used().into_keys())).collect();
        let unneeded: Vec<u64> =
            self.files.keys().filter(|number| !needed.contains(number)).copied().collect();
        unneeded.iter().for_each(|number| drop(self.files.remove(number)));
        unneeded.into_iter().map(name).collect()
    }
}

/// An image about to be written.
struct Plan {
    table: Table,
    /// The chunks that go into its own file, in order.
    write: Vec<Bytes>,
    total: u64,
}

impl Store {
    /// Keeps the state at an entry of this server's log beside the log. A chunk without bytes must be in the newest image.
    ///
    /// Blocks, for as long as the disk takes; the log goes on meanwhile. Segments are removed as
    /// [`super::Settings::retention`] says; `now` is what their age counts to.
    ///
    /// # Errors
    /// The image kept before stays the one that counts.
    pub fn keep(&self, meta: ImageMeta, chunks: Vec<Chunk>, now: Time) -> Result<(), KeepError> {
        let _one = self.shared.keeping.lock();
        let kept = self.image();
        if let Some(kept) = kept.filter(|kept| kept.index >= meta.index || kept.last >= meta.last) {
            return Err(KeepError::NotNewer { index: meta.index, kept: kept.index });
        }
        {
            let contents = self.shared.contents.lock();
            if !contents.has(meta.last) {
                return Err(KeepError::NotCommitted(meta.index));
            }
            let index = contents.batch_at(meta.last.index);
            if index != meta.index {
                let why = format!("entry {} stands after batch {index}, not {}", meta.last.index, meta.index);
                return Err(KeepError::Failed(why));
            }
        }
        self.write(meta, None, chunks)?;
        self.retain(now);
        Ok(())
    }

    /// Keeps an image that came from the leader. If the log has its last entry, nothing else happens; if not, everything
    /// in the log is void, and it goes on after the image. `done` says when that is safe; until then nothing else may be
    /// asked for.
    ///
    /// Blocks as [`Store::keep`] does.
    ///
    /// # Errors
    /// Nothing has changed.
    pub fn install(&self, meta: ImageMeta, chunks: Vec<Chunk>, done: Done) -> Result<(), KeepError> {
        let one = self.shared.keeping.lock();
        let chain =
            meta.chain.ok_or_else(|| KeepError::Failed("the image does not contain its chain".into()))?;
        let has = self.installable(&meta, chain)?;
        let base = self.write(meta, (!has).then_some(chain), chunks)?;
        // The caller may now ask for the next one.
        drop(one);
        if has {
            done();
            return Ok(());
        }
        self.ask(Op::Reset { base, done }).map_err(|error| KeepError::Failed(error.to_string()))
    }

    /// Whether the log has the last entry of an image from the leader.
    fn installable(&self, meta: &ImageMeta, chain: Chain) -> Result<bool, KeepError> {
        if let Some(kept) = self.image().filter(|kept| kept.last > meta.last) {
            return Err(KeepError::NotNewer { index: meta.index, kept: kept.index });
        }
        let (has, safe, committed) = {
            let contents = self.shared.contents.lock();
            (contents.has(meta.last), contents.written > meta.last.index, contents.notes.committed)
        };
        if has && !safe {
            return Err(too_early(meta.last));
        }
        if has {
            let own = self.shared.position_before(meta.last.index + 1);
            let own = own.map_err(|error| KeepError::Failed(error.to_string()))?;
            if own.chain != chain {
                let why = format!("entry {} of this log is another than the image's", meta.last.index);
                return Err(KeepError::Failed(why));
            }
        } else if let Some(committed) = committed.filter(|committed| committed.index >= meta.last.index) {
            let why = format!("it would make entry {} void, which is committed", committed.index);
            return Err(KeepError::Failed(why));
        }
        Ok(has)
    }

    /// Writes an image of this server's log, or with `chain` one that the log does not reach.
    fn write(
        &self,
        meta: ImageMeta,
        chain: Option<Chain>,
        chunks: Vec<Chunk>,
    ) -> Result<super::position::Position, KeepError> {
        let files = self.files()?;
        let last = meta.last;
        let own = || self.shared.position_before(last.index + 1).map(|position| position.chain);
        let plan = match chain {
            Some(chain) => self.plan(meta, chain, true, chunks)?,
            // Not written yet means not known to be safe: what an image holds must not be missing from the log.
            None if self.shared.contents.lock().written <= last.index => return Err(too_early(last)),
            None => {
                self.plan(meta, own().map_err(|error| KeepError::Failed(error.to_string()))?, false, chunks)?
            }
        };
        let file = match self.write_file(&*files, &plan) {
            Ok(file) => file,
            Err(error) => {
                // What is left of it goes with the next one or at the next start.
                let _ = files.remove(UNFINISHED);
                return Err(error);
            }
        };
        let position = plan.table.position();
        let file = ImageFile { file, bytes: plan.total };
        let unneeded = self.shared.images.lock().take(plan.table, file);
        let mut contents = self.shared.contents.lock();
        contents.notes.committed = contents.notes.committed.max(Some(last));
        drop(contents);
        for name in unneeded {
            if let Err(error) = files.remove(&name) {
                tracing::warn!(%error, name, "an image that is not needed any more is not removed");
            }
        }
        Ok(position)
    }

    /// Decides which chunks are written and where the others stand.
    fn plan(
        &self,
        meta: ImageMeta,
        chain: Chain,
        installed: bool,
        chunks: Vec<Chunk>,
    ) -> Result<Plan, KeepError> {
        let images = self.shared.images.lock();
        let number = images.last_number + 1;
        let before = images.newest();
        let known = |id: &ChunkId| before.and_then(|table| table.by_id.get(id)).copied();
        let mut places: HashMap<ChunkId, Row> =
            chunks.iter().filter_map(|chunk| Some((chunk.id, known(&chunk.id)?))).collect();
        let folded = images.folded(&places);
        let mut write = Vec::new();
        let mut offset = Table::front_len(meta.members.len(), chunks.len());
        for Chunk { id, bytes } in &chunks {
            if places.get(id).is_some_and(|row| !folded.contains(&row.file)) {
                continue;
            }
            let bytes = match (bytes, places.get(id)) {
                (Some(bytes), _) if ChunkId::of(bytes) == *id => bytes.clone(),
                (Some(_), _) => return Err(KeepError::Failed(format!("the bytes of {id:?} are others"))),
                (None, Some(row)) => images.read(row).map_err(|error| {
                    tracing::warn!(%error, "a chunk of an image is damaged: it has to come with its bytes");
                    KeepError::UnknownChunk(*id)
                })?,
                (None, None) => return Err(KeepError::UnknownChunk(*id)),
            };
            let len = u32::try_from(bytes.len())
                .map_err(|_| KeepError::Failed(format!("{id:?} is larger than 4 GiB")))?;
            let row = Row { id: *id, file: number, offset, len, crc: crc32c::crc32c(&bytes) };
            places.insert(*id, row);
            offset += u64::from(len);
            write.push(bytes);
        }
        let rows = chunks.iter().map(|chunk| places[&chunk.id]).collect();
        let table = Table::new(number, meta, chain, installed, rows);
        Ok(Plan { table, write, total: offset })
    }

    fn write_file(&self, files: &dyn Files, plan: &Plan) -> Result<Arc<dyn File>, KeepError> {
        let file = files.create_sparse(UNFINISHED, plan.total).map_err(unwritten)?;
        let mut buffer = plan.table.bytes(plan.total);
        let mut at = 0;
        for chunk in &plan.write {
            if buffer.len() + chunk.len() > SYNC_BYTES {
                file.write_at(&buffer, at).map_err(unwritten)?;
                self.synced(file.sync())?;
                at += buffer.len() as u64;
                buffer.clear();
            }
            buffer.extend_from_slice(chunk);
        }
        file.write_at(&buffer, at).map_err(unwritten)?;
        self.synced(file.sync())?;
        let last = plan.table.meta.last;
        if !plan.table.installed && !self.shared.contents.lock().has(last) {
            return Err(too_early(last));
        }
        files.rename(UNFINISHED, &name(plan.table.number)).map_err(unwritten)?;
        self.synced(files.sync_dir())?;
        Ok(file)
    }

    pub(super) fn files(&self) -> Result<Arc<dyn Files>, KeepError> {
        self.files.lock().clone().ok_or_else(|| KeepError::Failed(StoreError::Stopped.to_string()))
    }

    /// After a failed sync it is unknown what is on the disk: neither an image nor the log can go on.
    pub(super) fn synced(&self, sync: io::Result<()>) -> Result<(), KeepError> {
        sync.map_err(|error| {
            let why = format!("sync an image: {error}");
            self.shared.die(&why);
            KeepError::Failed(why)
        })
    }

    /// What the newest image holds the outcome of.
    pub fn image(&self) -> Option<ImageMeta> {
        self.shared.images.lock().newest_meta()
    }

    /// The newest image, every chunk held to its checksum. If it is damaged, the one before it, provided that the
    /// log has every entry after that; from then on it counts as the newest.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when none can be used.
    pub fn read_image(&self) -> Result<Option<(ImageMeta, Image)>, StoreError> {
        self.shared.read_image()
    }

    /// The newest image and its chunks in order, to ask another server which it lacks.
    pub fn chunk_ids(&self) -> Option<(ImageMeta, Vec<ChunkId>)> {
        let images = self.shared.images.lock();
        let table = images.newest()?;
        Some((table.meta.clone(), table.rows.iter().map(|row| row.id).collect()))
    }

    /// A chunk of an image that is kept, held to its checksum; `None` when none has it.
    pub fn chunk(&self, id: ChunkId) -> Result<Option<Bytes>, StoreError> {
        let found = {
            let images = self.shared.images.lock();
            let row = images.kept.iter().rev().find_map(|table| table.by_id.get(&id)).copied();
            row.map(|row| (images.files[&row.file].clone(), row))
        };
        found.map(|(file, row)| read_chunk(&file, &row)).transpose()
    }
}

impl Shared {
    /// See [`Store::read_image`].
    pub fn read_image(&self) -> Result<Option<(ImageMeta, Image)>, StoreError> {
        let _one = self.keeping.lock();
        loop {
            let (table, files) = {
                let images = self.images.lock();
                let Some(table) = images.newest() else { return Ok(None) };
                (table.clone(), images.files())
            };
            let chunk = |row: &Row| -> Result<Chunk, StoreError> {
                Ok(Chunk { id: row.id, bytes: Some(read_chunk(&files[&row.file], row)?) })
            };
            let chunks: Result<Vec<Chunk>, StoreError> = table.rows.iter().map(chunk).collect();
            match chunks {
                Ok(chunks) => {
                    return Ok(Some((table.meta.clone(), Image { index: table.meta.index, chunks })));
                }
                Err(error) => self.fall_back(error)?,
            }
        }
    }

    /// Makes the older image the newest, or passes on why there is no way to go on from it.
    fn fall_back(&self, error: StoreError) -> Result<(), StoreError> {
        let mut images = self.images.lock();
        let older = images.older().map(|table| table.meta.last);
        let enough = match older {
            Some(last) => self.contents.lock().has_all_after(last),
            None => self.contents.lock().base.next == 0,
        };
        if !enough || !matches!(error, StoreError::Damaged { .. }) {
            return Err(error);
        }
        tracing::warn!(%error, "the newest image is damaged: what came before it is used");
        images.kept.pop();
        Ok(())
    }
}

fn too_early(last: LogId) -> KeepError {
    KeepError::Failed(format!("entry {} is not yet safe on this server: try again", last.index))
}

fn unwritten(error: io::Error) -> KeepError {
    match error.kind() {
        io::ErrorKind::StorageFull => KeepError::DiskFull,
        _ => KeepError::Failed(format!("write an image: {error}")),
    }
}
