//! Bounds what each allocation may store, on file systems with quotas of projects: ext4 and XFS.
//!
//! Nothing is remembered that could be lost. The directory of an allocation says which project is its own, and a project is free
//! if the file system counts no file for it, whoever else uses projects there.

mod calls;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Allocations have projects of these numbers.
const FIRST_PROJECT: u32 = 3_000_000_000;
const PROJECTS: u32 = 65_536;

/// So many are tried until one is free: more than a node has allocations.
const TRIES_MAX: u32 = 4096;

/// The quotas of the file system that the allocations are on.
#[derive(Debug)]
pub struct DiskQuotas {
    /// The directory of all allocations, for calls that are about its file system.
    file_system: File,
    choosing: Mutex<()>,
}

impl DiskQuotas {
    /// # Errors
    /// In words for the operator, when the file system cannot bound anything.
    pub fn open(alloc_dir: &Path) -> Result<DiskQuotas, String> {
        let cannot = |why: &str| {
            format!(
                "client.ephemeral_disk_quota: {}: {why}; expected ext4 made with \"-O quota,project\" or XFS, mounted with prjquota, \
                 Linux 5.14 or later, and an agent that is root",
                alloc_dir.display()
            )
        };
        let file_system = File::open(alloc_dir).map_err(|error| cannot(&error.to_string()))?;
        let projects = calls::attributes(&file_system);
        projects.map_err(|error| cannot(&format!("its file system has no projects: {error}")))?;
        match calls::are_in_force(&file_system) {
            Ok(true) => {}
            Ok(false) => return Err(cannot("its file system is mounted without limits for projects")),
            Err(error) => return Err(cannot(&format!("its file system has no quotas: {error}"))),
        }
        let counted = calls::files(&file_system, FIRST_PROJECT);
        counted.map_err(|error| cannot(&format!("quotas cannot be read: {error}")))?;
        Ok(DiskQuotas { file_system, choosing: Mutex::default() })
    }

    /// Gives the directory of an allocation a project of its own, unless it has one, and bounds what can be stored there.
    ///
    /// # Errors
    /// When no project is free, or the system refuses it.
    pub fn bound(&self, directory: &Path, mib: u64) -> io::Result<()> {
        let root = open(directory)?;
        let found = calls::attributes(&root)?;
        let project = if is_ours(found.project) { found.project } else { self.choose(directory, &root)? };
        if !(is_ours(found.project) && found.inherits()) {
            // What an agent has left that did not know of quotas.
            assign_below(&root, project)?;
            // Last of all: an agent that was killed before starts again.
            mark(&root, project, true)?;
        }
        calls::set_limit(&self.file_system, project, Some(mib))
    }

    /// The project of an allocation, if it has one.
    pub fn project_of(&self, directory: &Path) -> Option<u32> {
        let found = calls::attributes(open(directory).ok()?).ok()?;
        is_ours(found.project).then_some(found.project)
    }

    /// Forgets the limit of an allocation that was removed.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn release(&self, project: u32) -> io::Result<()> {
        calls::set_limit(&self.file_system, project, None)
    }

    /// Has a directory count for another allocation: it could not be moved there otherwise.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn hand_over(&self, directory: &Path, to: &Path) -> io::Result<()> {
        let directory = match open(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let Some(project) = self.project_of(to) else { return Ok(()) };
        mark(&directory, project, true)?;
        assign_below(&directory, project)
    }

    fn choose(&self, directory: &Path, root: &OwnedFd) -> io::Result<u32> {
        let _one_at_a_time = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        let name = directory.file_name().unwrap_or_default().as_encoded_bytes();
        // Ids of allocations are random, so agents that share a file system hardly ever try the same one.
        let first = name.iter().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
        for more in 0..TRIES_MAX {
            let project = FIRST_PROJECT + first.wrapping_add(more) % PROJECTS;
            if calls::files(&self.file_system, project)? > 0 {
                continue;
            }
            mark(root, project, false)?;
            // Otherwise another agent has chosen it at this moment, too.
            if calls::files(&self.file_system, project)? == 1 {
                return Ok(project);
            }
        }
        let last = FIRST_PROJECT + (PROJECTS - 1);
        Err(io::Error::other(format!(
            "no project of {FIRST_PROJECT} to {last} was free in {TRIES_MAX} tries"
        )))
    }
}

fn is_ours(project: u32) -> bool {
    (FIRST_PROJECT..FIRST_PROJECT + PROJECTS).contains(&project)
}

fn mark(of: impl AsFd, project: u32, inherits: bool) -> io::Result<()> {
    let attributes = calls::attributes(&of)?;
    calls::set_attributes(&of, attributes.with(project, inherits))
}

/// Gives all that lies below a directory to a project: before it what is in it, so that what tasks make meanwhile belongs there too.
/// What is mounted there stays as it is. Links and devices take no space.
fn assign_below(root: &OwnedFd, project: u32) -> io::Result<()> {
    let mut waiting = vec![PathBuf::from(".")];
    while let Some(path) = waiting.pop() {
        let Some(directory) = open_within(root, &path, OFlags::DIRECTORY)? else { continue };
        if path.as_os_str() != "." {
            mark(&directory, project, true)?;
        }
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let name = Path::new(OsStr::from_bytes(name));
            match entry.file_type() {
                FileType::Directory => waiting.push(path.join(name)),
                FileType::RegularFile => {
                    if let Some(file) = open_within(&directory, name, OFlags::NONBLOCK)? {
                        mark(&file, project, false)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Nothing when the way there leads elsewhere, into something that is mounted, or to nothing: a task may change it meanwhile.
fn open_within(directory: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<Option<OwnedFd>> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let way = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(directory, path, flags, Mode::empty(), way) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::XDEV | Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => {
            Err(io::Error::new(io::Error::from(error).kind(), format!("{}: {error}", path.display())))
        }
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|error| {
        io::Error::new(io::Error::from(error).kind(), format!("{}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also as root: no kernel has quotas there.
    #[test]
    fn a_file_system_without_quotas_is_refused_with_what_it_takes() {
        let refused = DiskQuotas::open(Path::new("/proc")).unwrap_err();
        assert!(
            refused.starts_with("client.ephemeral_disk_quota: /proc: its file system has no "),
            "{refused}"
        );
        assert!(
            refused.contains("ext4 made with \"-O quota,project\" or XFS, mounted with prjquota"),
            "{refused}"
        );
    }

    #[test]
    fn only_projects_of_its_range_are_taken_for_those_of_allocations() {
        assert!(!is_ours(0) && !is_ours(FIRST_PROJECT - 1) && !is_ours(FIRST_PROJECT + PROJECTS));
        assert!(is_ours(FIRST_PROJECT) && is_ours(FIRST_PROJECT + PROJECTS - 1));
    }
}
