//! Files below a directory. Every path is resolved by the kernel from that directory on, whatever somebody does to it in
//! the meantime: neither `..` nor links lead out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use crate::request::Owner;

/// Opened only to find the way.
const PASSAGE: OFlags = OFlags::DIRECTORY.union(OFlags::PATH).union(OFlags::CLOEXEC);

/// How much of a name a draft has in its own: a name has at most 255 bytes.
const NAME_MAX: usize = 200;

/// A directory whose paths do not leave it.
#[derive(Debug)]
pub struct Below {
    root: OwnedFd,
    links: Links,
}

/// What becomes of symbolic links on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// They are followed as long as they stay inside.
    Inside,
    /// They are errors.
    Refused,
}

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry {
    pub name: OsString,
    pub kind: FileType,
}

impl Below {
    /// # Errors
    /// When there is no such directory.
    pub fn new(root: &Path, links: Links) -> io::Result<Below> {
        Ok(Below { root: rustix::fs::openat(CWD, root, PASSAGE, Mode::empty())?, links })
    }

    /// The directory at `path`, as one that is not left either.
    ///
    /// # Errors
    /// As for [`open`](Below::open).
    pub fn at(&self, path: &Path, links: Links) -> io::Result<Below> {
        Ok(Below { root: self.open(path, PASSAGE)?, links })
    }

    /// # Errors
    /// When the system refuses it, or the path leads out or through a link that is not allowed.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = match self.links {
            Links::Inside => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Links::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(file) => Ok(file),
            Err(Errno::XDEV | Errno::LOOP) => {
                let why = match self.links {
                    Links::Inside => "a link leads out of the directory of the task",
                    Links::Refused => "it leads through a link, or out of its directory",
                };
                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes what is missing of a directory and of those above it.
    ///
    /// # Errors
    /// As for [`open`](Below::open).
    pub fn make_dirs(&self, path: &Path, mode: u32, owner: Option<Owner>) -> io::Result<OwnedFd> {
        let mut reached = PathBuf::from(".");
        for part in path.components() {
            let above = reached.clone();
            reached.push(part);
            match self.open(&reached, PASSAGE) {
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let above = self.open(&above, PASSAGE)?;
            match rustix::fs::mkdirat(&above, part.as_os_str(), Mode::from_raw_mode(mode)) {
                Ok(()) => give(above.as_fd(), part.as_os_str(), owner)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.open(&reached, PASSAGE)
    }

    /// A file that takes the place of what is at `path` when it is complete: nobody reads half of it. The directories above
    /// are made.
    ///
    /// # Errors
    /// As for [`open`](Below::open).
    pub fn draft(&self, path: &Path, owner: Option<Owner>) -> io::Result<Draft> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        let parent = self.make_dirs(path.parent().unwrap_or(Path::new("")), 0o755, owner)?;
        let mut draft = OsString::from(".");
        // The longest name has no room for more.
        draft.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(NAME_MAX)]));
        draft.push(".new");
        match rustix::fs::unlinkat(&parent, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        // Never more than the owner may until the rights are set.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&parent, &draft, flags, Mode::from_raw_mode(0o600))?);
        Ok(Draft { parent, name: name.to_os_string(), draft, file, placed: false })
    }

    /// The directory itself, to name its entries.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Makes a symbolic link in place of what is there, if that is no directory.
    pub(crate) fn link(&self, path: &Path, target: &OsStr, owner: Option<Owner>) -> io::Result<()> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let parent = self.make_dirs(path.parent().unwrap_or(Path::new("")), 0o755, owner)?;
        match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        rustix::fs::symlinkat(target, &parent, name)?;
        give(parent.as_fd(), name, owner)
    }

    /// What is in the directory at `path`, in the order of names.
    ///
    /// # Errors
    /// As for [`open`](Below::open).
    pub fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let directory = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = Vec::new();
        for entry in Dir::new(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    let at = self.open(path, PASSAGE)?;
                    let stat = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            found.push(Entry { name: name.to_os_string(), kind });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

/// Changes the owner of an entry itself, never of what a link leads to.
pub(crate) fn give(directory: BorrowedFd<'_>, name: &OsStr, owner: Option<Owner>) -> io::Result<()> {
    let Some(Owner { uid, gid }) = owner else { return Ok(()) };
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    Ok(rustix::fs::chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// A file that has not taken its place yet. Dropped before, it is removed.
#[derive(Debug)]
pub struct Draft {
    parent: OwnedFd,
    name: OsString,
    draft: OsString,
    pub file: File,
    placed: bool,
}

impl Draft {
    /// Replaces what is there: a link is replaced too, not followed.
    ///
    /// # Errors
    /// When the system refuses it, because a directory is there for example.
    pub fn place(mut self) -> io::Result<()> {
        rustix::fs::renameat(&self.parent, &self.draft, &self.parent, &self.name)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.placed {
            rustix::fs::unlinkat(&self.parent, &self.draft, AtFlags::empty()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out() {
        let base = tempfile::tempdir().unwrap();
        let (inside, outside) = (base.path().join("in"), base.path().join("out"));
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        symlink(&outside, inside.join("absolute")).unwrap();
        symlink("../out", inside.join("up")).unwrap();
        symlink("a", inside.join("near")).unwrap();
        for links in [Links::Inside, Links::Refused] {
            let below = Below::new(&inside, links).unwrap();
            for path in ["../out", "/etc", "absolute", "up", "up/x", "a/../../out", "absolute/x"] {
                assert!(below.open(Path::new(path), PASSAGE).is_err(), "{path}");
                assert!(below.make_dirs(&Path::new(path).join("new"), 0o755, None).is_err(), "{path}");
                assert!(below.draft(&Path::new(path).join("file"), None).is_err(), "{path}");
            }
            assert_eq!(below.open(Path::new("near/b"), PASSAGE).is_ok(), links == Links::Inside);
            below.make_dirs(Path::new("a/b/c/d"), 0o755, None).unwrap();
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_draft_is_placed_whole_or_not_at_all() {
        let base = tempfile::tempdir().unwrap();
        let below = Below::new(base.path(), Links::Refused).unwrap();
        let mut draft = below.draft(Path::new("x/file"), None).unwrap();
        draft.file.write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(std::fs::read_dir(base.path().join("x")).unwrap().count(), 0);
        symlink("/etc/passwd", base.path().join("x/file")).unwrap();
        let mut draft = below.draft(Path::new("x/file"), None).unwrap();
        draft.file.write_all(b"whole").unwrap();
        draft.place().unwrap();
        assert_eq!(std::fs::read(base.path().join("x/file")).unwrap(), b"whole");
        let names: Vec<_> =
            below.entries(Path::new("x")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["file"]);
    }
}
