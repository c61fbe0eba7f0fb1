//! Where the files of an allocation are.
//!
//! ```text
//! <alloc_dir>/<alloc id>/   0755
//!   alloc/                  0777, shared: logs/ tmp/ data/
//!   <task>/                 0777: local/ secrets/ private/ tmp/ (01777)
//! ```
//!
//! For an agent that is root, `secrets/` and `private/` are file systems in memory.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, openat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// The directory of one allocation.
#[derive(Clone, Debug)]
pub struct AllocDir {
    root: PathBuf,
}

/// The directory of one task.
#[derive(Clone, Debug)]
pub struct TaskDir {
    pub root: PathBuf,
    pub local: PathBuf,
    pub secrets: PathBuf,
    pub private: PathBuf,
    pub tmp: PathBuf,
}

/// `nobody` and `nogroup`: who owns what an agent running as root makes for tasks.
const NOBODY: u32 = 65534;

/// The size of a directory in memory of which the job does not say any.
pub const SECRETS_MIB: u64 = 1;

const INODES_PER_MIB: u64 = 1024;

impl AllocDir {
    /// # Errors
    /// When `alloc_id` is not a UUID: it becomes a path, so nothing else may pass.
    pub fn new(alloc_dir: &Path, alloc_id: &str) -> Result<AllocDir, base::IdError> {
        let id: base::Uuid = alloc_id.parse()?;
        Ok(AllocDir { root: alloc_dir.join(id.to_string()) })
    }

    /// Directories that lie as those of an allocation do, somewhere else.
    pub(crate) fn at(root: PathBuf) -> AllocDir {
        AllocDir { root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn shared(&self) -> PathBuf {
        self.root.join("alloc")
    }

    pub fn logs(&self) -> PathBuf {
        self.root.join("alloc/logs")
    }

    pub fn task(&self, name: &str) -> TaskDir {
        let root = self.root.join(name);
        TaskDir {
            local: root.join("local"),
            secrets: root.join("secrets"),
            private: root.join("private"),
            tmp: root.join("tmp"),
            root,
        }
    }

    /// Makes the shared directories. Those that exist stay as they are.
    ///
    /// # Errors
    /// Also when a task has put something else in the place of one.
    pub fn build(&self) -> io::Result<()> {
        make(&self.root, 0o755, None)?;
        for path in [self.shared(), self.logs(), self.root.join("alloc/tmp"), self.root.join("alloc/data")] {
            make(&path, 0o777, Some(NOBODY))?;
        }
        Ok(())
    }

    /// Puts the directories for what is nobody else's business into memory, as far as this process may. Those that are there
    /// already stay, with what is in them.
    ///
    /// # Errors
    /// When the system refuses it for another reason than a lack of rights.
    pub fn mount_task(&self, dir: &TaskDir, owner: Option<u32>, secrets_mib: u64) -> io::Result<()> {
        for (path, mib) in [(&dir.secrets, secrets_mib), (&dir.private, SECRETS_MIB)] {
            if in_memory(path, mib)? {
                make(path, 0o777, owner.or(Some(NOBODY)))?;
            }
        }
        Ok(())
    }

    /// Makes the directories of one task, for a user of its own or for `nobody`.
    ///
    /// # Errors
    /// Also when the name could lead out of the directory or is that of the shared one, or when the task has put something
    /// else in the place of one.
    pub fn build_task(&self, name: &str, owner: Option<u32>) -> io::Result<TaskDir> {
        if name.is_empty() || name == "alloc" || name.starts_with('.') || name.contains(['/', '\0']) {
            let text = format!("task name \"{name}\" can not name a directory");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let dir = self.task(name);
        make(&self.root, 0o755, None)?;
        for path in [&dir.root, &dir.local, &dir.secrets, &dir.private] {
            make(path, 0o777, owner.or(Some(NOBODY)))?;
        }
        make(&dir.tmp, 0o1777, None)?;
        Ok(dir)
    }

    /// Removes everything. It is no error when nothing is there.
    ///
    /// # Errors
    /// When something cannot be unmounted or removed.
    pub fn destroy(&self) -> io::Result<()> {
        if self.root.exists() {
            unmount_below(&self.root, |_| true)?;
        }
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A task may write beside most of these, and put a link there: what that leads to would get the rights of the task.
fn make(path: &Path, mode: u32, owner: Option<u32>) -> io::Result<()> {
    let made = || -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::create_dir_all(path)?,
            made => made?,
        }
        let directory = open(path)?;
        // Set apart from the making, because the umask of the agent cuts the mode given there.
        fchmod(&directory, Mode::from_raw_mode(mode))?;
        if let Some(id) = owner.filter(|_| rustix::process::geteuid().is_root()) {
            fchown(&directory, Some(Uid::from_raw(id)), Some(Gid::from_raw(id)))?;
        }
        Ok(())
    };
    made().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Mounts a file system in memory there, unless something is mounted already. False where this process may mount nothing:
/// then the directory stays as it is, on the disk.
fn in_memory(path: &Path, mib: u64) -> io::Result<bool> {
    let parent = path.parent().map(open).transpose()?;
    let directory = open(path)?;
    let device = |of: &OwnedFd| Ok::<_, io::Error>(fstat(of)?.st_dev);
    if parent.is_some_and(|parent| device(&parent).ok() != device(&directory).ok()) {
        return Ok(true);
    }
    let place = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The many small files that fit, and no more: each takes memory of the kernel.
    let options = format!("size={mib}m,nr_inodes={},mode=0777", mib * INODES_PER_MIB);
    let mounted = |options: &str| {
        let options = CString::new(options)?;
        Ok::<_, io::Error>(mount("secrets", &place, "tmpfs", flags, options.as_c_str())?)
    };
    let refused = match mounted(&format!("{options},noswap")) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            static NOTED: Once = Once::new();
            NOTED.call_once(|| tracing::warn!("secrets may be swapped: the kernel is older than 6.4"));
            match mounted(&options) {
                Ok(()) => return Ok(true),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    if refused.kind() != io::ErrorKind::PermissionDenied {
        return Err(io::Error::new(refused.kind(), format!("{} in memory: {refused}", path.display())));
    }
    static NOTED: Once = Once::new();
    NOTED.call_once(|| tracing::warn!("secrets of tasks are on the disk: this agent may mount nothing"));
    Ok(false)
}

/// Unmounts what is mounted below a directory, as far as `is_wanted` says so of its path there.
///
/// # Errors
/// When the system refuses it.
pub fn unmount_below(directory: &Path, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
    let directory = directory.canonicalize()?;
    let mut points = executor::mounts_below(&directory)?;
    // What lies in another mount, or over it, is gone first.
    points.reverse();
    for point in points {
        if point.strip_prefix(&directory).is_ok_and(&is_wanted) {
            unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
    }
    Ok(())
}

/// Unmounts what agents have left that were killed, of allocations that nobody knows any more.
///
/// # Errors
/// When the system refuses it.
pub fn unmount_unknown(alloc_dir: &Path, known: &BTreeSet<String>) -> io::Result<()> {
    let is_known = |path: &Path| {
        let first = path.components().next().and_then(|part| part.as_os_str().to_str());
        first.is_some_and(|id| known.contains(id))
    };
    unmount_below(alloc_dir, |path| !is_known(path))
}

/// The directory itself, and not what a link leads to.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";

    #[test]
    fn the_tree_is_made_and_removed_again() {
        let base = tempfile::tempdir().unwrap();
        let dir = AllocDir::new(base.path(), ID).unwrap();
        dir.build().unwrap();
        let task = dir.build_task("web", None).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir.logs()), 0o777);
        assert_eq!(mode(&task.tmp), 0o1777);
        assert!(base.path().join(ID).join("web/secrets").is_dir());
        dir.build_task("web", None).unwrap();
        dir.destroy().unwrap();
        assert!(!dir.root().exists());
        dir.destroy().unwrap();
    }

    #[test]
    fn names_that_lead_elsewhere_are_rejected() {
        let base = tempfile::tempdir().unwrap();
        assert!(AllocDir::new(base.path(), "../etc").is_err());
        let dir = AllocDir::new(base.path(), ID).unwrap();
        for name in ["", "..", "alloc", "a/b", "/etc"] {
            assert!(dir.build_task(name, None).is_err(), "{name}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_opens_nothing_else() {
        let (base, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mode = || std::fs::metadata(outside.path()).unwrap().permissions().mode() & 0o7777;
        let before = mode();
        let dir = AllocDir::new(base.path(), ID).unwrap();
        dir.build().unwrap();
        let task = dir.build_task("web", None).unwrap();
        std::fs::remove_dir(&task.local).unwrap();
        symlink(outside.path(), &task.local).unwrap();
        let error = dir.build_task("web", None).unwrap_err().to_string();
        assert!(error.contains("web/local: Not a directory"), "{error}");
        std::fs::remove_dir(dir.root().join("alloc/data")).unwrap();
        symlink(outside.path(), dir.root().join("alloc/data")).unwrap();
        dir.build().unwrap_err();
        assert_eq!(mode(), before);
    }
}
