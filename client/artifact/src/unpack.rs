//! Archives. Who made one is a stranger: it makes files, directories and links inside below one directory, and nothing else.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use ruzstd::decoding::StreamingDecoder;
use tar::EntryType;
use zip::ZipArchive;

use crate::FetchError;
use crate::below::{Below, Draft};
use crate::request::{Limits, Owner, Rights};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Tar(Compression),
    Zip,
    /// One compressed file.
    Single(Compression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

/// Longer endings come before the shorter ones that they end with.
const ENDINGS: [(&str, Format); 14] = [
    ("tar.gz", Format::Tar(Compression::Gzip)),
    ("tgz", Format::Tar(Compression::Gzip)),
    ("tar.bz2", Format::Tar(Compression::Bzip2)),
    ("tbz2", Format::Tar(Compression::Bzip2)),
    ("tar.xz", Format::Tar(Compression::Xz)),
    ("txz", Format::Tar(Compression::Xz)),
    ("tar.zst", Format::Tar(Compression::Zstd)),
    ("tzst", Format::Tar(Compression::Zstd)),
    ("tar", Format::Tar(Compression::None)),
    ("zip", Format::Zip),
    ("gz", Format::Single(Compression::Gzip)),
    ("bz2", Format::Single(Compression::Bzip2)),
    ("xz", Format::Single(Compression::Xz)),
    ("zst", Format::Single(Compression::Zstd)),
];

/// Longest target of a link.
const TARGET_MAX: u64 = 4096;

/// The kinds of files, in the bits of a mode.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// What a file of this name is, unless the option `archive` says something else.
///
/// # Errors
/// When the option names no format.
pub fn format(option: Option<&str>, name: &str) -> Result<Option<Format>, FetchError> {
    match option {
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(None),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") | None => {
            let ends = |(ending, _): &(&str, Format)| {
                name.strip_suffix(ending).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'))
            };
            Ok(ENDINGS.into_iter().find(ends).map(|(_, format)| format))
        }
        Some(option) => match ENDINGS.into_iter().find(|(ending, _)| *ending == option) {
            Some((_, format)) => Ok(Some(format)),
            None => {
                let known = ENDINGS.map(|(ending, _)| ending).join(", ");
                Err(FetchError::invalid(format!("archive: \"{option}\" is neither false nor one of {known}")))
            }
        },
    }
}

/// Unpacks into a directory that is empty. `name` is that of the archive; a single file is named by it.
///
/// # Errors
/// When it is damaged, exceeds a limit, or holds what must not be. What is there by then is no longer of use.
pub fn unpack(
    format: Format,
    archive: File,
    name: &str,
    into: &Below,
    limits: &Limits,
) -> Result<(), FetchError> {
    let mut unpacker = Unpacker::new(into, Left::of(limits), !limits.disable_artifact_inspection);
    match format {
        Format::Tar(compression) => {
            let stream = Counted { inner: plain(compression, archive), left: unpacker.left.bytes };
            unpacker.tar(stream)?;
        }
        Format::Zip => unpacker.zip(archive)?,
        Format::Single(compression) => {
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            let stem = if stem.is_empty() { "file" } else { stem };
            unpacker.file(Path::new(stem), 0o644, None, &mut plain(compression, archive))?;
        }
    }
    unpacker.finish()
}

fn plain(compression: Compression, file: File) -> Box<dyn Read> {
    let file = BufReader::new(file);
    match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(file)),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new(file, true)),
        Compression::Zstd => Box::new(Zstd { frame: Frame::Between(file) }),
    }
}

/// All frames of a file, one after the other.
struct Zstd {
    frame: Frame,
}

enum Frame {
    Between(BufReader<File>),
    Inside(Box<StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>>),
    /// Only while one becomes the other.
    Done,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.frame = match std::mem::replace(&mut self.frame, Frame::Done) {
                Frame::Done => return Ok(0),
                Frame::Between(mut file) => {
                    if file.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    Frame::Inside(Box::new(StreamingDecoder::new(file).map_err(io::Error::other)?))
                }
                Frame::Inside(mut decoder) => {
                    let length = decoder.read(buffer)?;
                    if length > 0 || buffer.is_empty() {
                        self.frame = Frame::Inside(decoder);
                        return Ok(length);
                    }
                    Frame::Between(decoder.into_inner())
                }
            };
        }
    }
}

/// What the limits still allow; `None` for no limit.
#[derive(Clone, Copy, Debug)]
struct Left {
    files: Option<u64>,
    parents: Option<u64>,
    bytes: Option<u64>,
}

impl Left {
    fn of(limits: &Limits) -> Left {
        let bound = |limit: u64| Some(limit).filter(|limit| *limit > 0);
        let files = bound(limits.decompression_file_count_limit);
        Left { files, parents: files, bytes: bound(limits.decompression_size_limit) }
    }
}

fn take(left: &mut Option<u64>, amount: u64) -> bool {
    match left {
        None => true,
        Some(left) => {
            let enough = *left >= amount;
            *left = left.saturating_sub(amount);
            enough
        }
    }
}

fn too_large() -> io::Error {
    io::Error::other("unpacked, it is larger than decompression_size_limit allows")
}

fn too_many() -> FetchError {
    FetchError::failed("the archive has more files than decompression_file_count_limit allows")
}

/// Counts what an archive is when it is unpacked, also the parts of it that become no file.
struct Counted<R> {
    inner: R,
    left: Option<u64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        if take(&mut self.left, length as u64) { Ok(length) } else { Err(too_large()) }
    }
}

pub(crate) struct Unpacker<'a> {
    into: &'a Below,
    left: Left,
    /// Directories that stand in names, made or not.
    parents: BTreeSet<PathBuf>,
    /// Rights of directories and whose they are, set when all of their files are there.
    directories: Vec<(PathBuf, Rights, Option<Owner>)>,
    checks_links: bool,
    /// Whose the next file becomes; `None` for the agent's own.
    owner: Option<Owner>,
}

impl<'a> Unpacker<'a> {
    fn new(into: &'a Below, left: Left, checks_links: bool) -> Unpacker<'a> {
        Unpacker { into, left, parents: BTreeSet::new(), directories: Vec::new(), checks_links, owner: None }
    }

    /// Without limits; links that lead out are errors.
    pub(crate) fn unlimited(into: &'a Below) -> Unpacker<'a> {
        Unpacker::new(into, Left { files: None, parents: None, bytes: None }, true)
    }

    /// Whose what follows becomes.
    pub(crate) fn own_by(&mut self, owner: Option<Owner>) {
        self.owner = owner;
    }

    fn tar(&mut self, stream: impl Read) -> Result<(), FetchError> {
        let mut archive = tar::Archive::new(stream);
        for entry in archive.entries().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            self.entry(entry)?;
        }
        Ok(())
    }

    /// One entry of a tar archive.
    pub(crate) fn entry<R: Read>(&mut self, mut entry: tar::Entry<'_, R>) -> Result<(), FetchError> {
        let (kind, name) = (entry.header().entry_type(), entry.path_bytes().into_owned());
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            return Ok(());
        }
        let path = inside(&name)?;
        let mode = entry.header().mode().unwrap_or(0o644);
        let target = entry.link_name_bytes().map(|target| target.into_owned()).unwrap_or_default();
        match kind {
            EntryType::Directory => self.directory(&path, mode)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                // Old archives know directories by their last letter only.
                if name.ends_with(b"/") {
                    self.directory(&path, mode)?;
                } else {
                    let time = entry.header().mtime().ok();
                    self.file(&path, mode, time, &mut entry)?;
                }
            }
            EntryType::Symlink => self.link(&path, OsStr::from_bytes(&target))?,
            EntryType::Link => self.copy(&path, &inside(&target)?)?,
            _ => return Err(no_file(&path)),
        }
        Ok(())
    }

    fn zip(&mut self, archive: File) -> Result<(), FetchError> {
        let mut archive = ZipArchive::new(BufReader::new(archive)).map_err(damaged)?;
        if self.left.files.is_some_and(|left| archive.len() as u64 > left) {
            return Err(too_many());
        }
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at).map_err(damaged)?;
            let path = inside(entry.name_raw())?;
            let mode = entry.unix_mode();
            match mode.unwrap_or(0) & KIND {
                _ if entry.is_dir() => self.directory(&path, mode.unwrap_or(0o755))?,
                DIRECTORY => self.directory(&path, mode.unwrap_or(0o755))?,
                0 | REGULAR => self.file(&path, mode.unwrap_or(0o644), None, &mut entry)?,
                LINK => {
                    let mut target = Vec::new();
                    (&mut entry).take(TARGET_MAX + 1).read_to_end(&mut target).map_err(damaged)?;
                    self.link(&path, OsStr::from_bytes(&target))?;
                }
                _ => return Err(no_file(&path)),
            }
        }
        Ok(())
    }

    /// Counts an entry, and the directories that only its name tells of.
    fn count(&mut self, path: &Path) -> Result<(), FetchError> {
        if !take(&mut self.left.files, 1) {
            return Err(too_many());
        }
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            if self.parents.contains(parent) {
                break;
            }
            if !take(&mut self.left.parents, 1) {
                return Err(too_many());
            }
            self.parents.insert(parent.to_path_buf());
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path, mode: u32) -> Result<(), FetchError> {
        self.count(path)?;
        self.into.make_dirs(path, 0o755, None).map_err(|error| at(path, error))?;
        if !path.as_os_str().is_empty() {
            self.directories.push((path.to_path_buf(), mode, self.owner));
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        mode: u32,
        time: Option<u64>,
        content: &mut dyn Read,
    ) -> Result<(), FetchError> {
        self.count(path)?;
        let mut draft = self.into.draft(path, None).map_err(|error| at(path, error))?;
        self.write(&mut draft, content).map_err(|error| at(path, error))?;
        let placed = || {
            if let Some(Owner { uid, gid }) = self.owner {
                std::os::unix::fs::fchown(&draft.file, Some(uid), Some(gid))?;
            }
            // Nothing of a stranger may run as somebody else.
            draft.file.set_permissions(std::fs::Permissions::from_mode(mode & 0o777))?;
            let time = time.and_then(|time| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time)));
            if let Some(time) = time {
                // Some times are beyond what a file system can say.
                draft.file.set_modified(time).ok();
            }
            draft.place()
        };
        placed().map_err(|error| at(path, error))
    }

    fn write(&mut self, draft: &mut Draft, content: &mut dyn Read) -> io::Result<()> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = match content.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if !take(&mut self.left.bytes, length as u64) {
                return Err(too_large());
            }
            draft.file.write_all(&piece[..length])?;
        }
    }

    fn link(&mut self, path: &Path, target: &OsStr) -> Result<(), FetchError> {
        self.count(path)?;
        let says = target.to_string_lossy();
        if target.is_empty() || target.len() as u64 > TARGET_MAX || target.as_bytes().contains(&0) {
            return Err(FetchError::failed(format!("\"{}\": a link without a target", path.display())));
        }
        if self.checks_links && leads_out(path, Path::new(target)) {
            return Err(FetchError::failed(format!(
                "\"{}\": a link leads out, to \"{says}\"",
                path.display()
            )));
        }
        self.into.link(path, target, self.owner).map_err(|error| at(path, error))
    }

    /// A hard link becomes a file of its own: two names of one file would share what is done to either.
    fn copy(&mut self, path: &Path, original: &Path) -> Result<(), FetchError> {
        let found = self.into.open(original, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW);
        let mut file = File::from(found.map_err(|error| at(original, error))?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(no_file(original));
        }
        self.file(path, metadata.permissions().mode(), None, &mut file)
    }

    pub(crate) fn finish(mut self) -> Result<(), FetchError> {
        for (path, mode, owner) in self.directories.drain(..).rev() {
            let directory = self.into.open(&path, OFlags::RDONLY | OFlags::DIRECTORY);
            let directory = File::from(directory.map_err(|error| at(&path, error))?);
            if let Some(Owner { uid, gid }) = owner {
                std::os::unix::fs::fchown(&directory, Some(uid), Some(gid))?;
            }
            // Its owner has to be able to remove it.
            directory.set_permissions(std::fs::Permissions::from_mode((mode & 0o777) | 0o700))?;
        }
        Ok(())
    }
}

/// A name in an archive, as a path that goes down only.
pub(crate) fn inside(name: &[u8]) -> Result<PathBuf, FetchError> {
    let shown = String::from_utf8_lossy(name);
    if name.contains(&0) {
        return Err(FetchError::failed(format!("\"{}\" is no name of a file", shown.escape_debug())));
    }
    let mut path = PathBuf::new();
    for part in Path::new(OsStr::from_bytes(name)).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => {
                return Err(FetchError::failed(format!("\"{shown}\": a name in the archive leads out")));
            }
        }
    }
    Ok(path)
}

/// Whether a link leads out, as far as texts tell; other links on its way are looked at when all of them are there.
pub fn leads_out(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

fn no_file(path: &Path) -> FetchError {
    let text = format!("\"{}\" is a device, a pipe or something else that is no file", path.display());
    FetchError::failed(text)
}

fn at(path: &Path, error: io::Error) -> FetchError {
    FetchError::failed(format!("\"{}\": {error}", path.display()))
}

pub(crate) fn damaged(error: impl std::fmt::Display) -> FetchError {
    FetchError::failed(format!("the archive cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
