//! The root of a task while it is being made: paths in it are looked up as the task will, so that no link which an earlier
//! start has left there leads out of it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_bind, mount_bind_recursive, mount_remount};

/// In it, absolute paths and links begin at its own root.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// # Errors
    /// When it is no directory.
    pub fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root(openat(CWD, path, flags, Mode::empty())?))
    }

    /// What is at `path` now, mounts included.
    pub fn find(&self, path: &Path) -> io::Result<Place> {
        self.look(path, OFlags::PATH)
    }

    fn look(&self, path: &Path, flags: OFlags) -> io::Result<Place> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(Place(openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?))
    }

    /// The directory of this path, made with all above it if it is missing.
    pub fn directory(&self, path: &Path) -> io::Result<Place> {
        let mut reached = self.look(Path::new("."), OFlags::PATH | OFlags::DIRECTORY)?;
        let mut so_far = PathBuf::new();
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => return Err(not_a_place(path)),
            };
            so_far.push(name);
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let found = match self.look(&so_far, flags) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    mkdirat(&reached.0, name, Mode::from_raw_mode(0o755))?;
                    self.look(&so_far, flags)
                }
                found => found,
            };
            reached = found.map_err(|error| at(path, &error))?;
        }
        Ok(reached)
    }

    /// The file of this path, empty if it was missing.
    pub fn file(&self, path: &Path) -> io::Result<Place> {
        let (directory, name) = path.parent().zip(path.file_name()).ok_or_else(|| not_a_place(path))?;
        match self.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = self.directory(directory)?;
                let flags =
                    OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                openat(&directory.0, name, flags, Mode::from_raw_mode(0o644))
                    .map_err(|e| at(path, &e.into()))?;
                self.find(path)
            }
            found => found,
        }
    }

    /// Shows a file or directory of the host at `target`. No device in it works.
    pub fn bind(&self, source: &Path, target: &Path, bind: Bind) -> io::Result<()> {
        let shown = || -> io::Result<()> {
            let place = match source.metadata()?.is_dir() {
                true => self.directory(target)?,
                false => self.file(target)?,
            };
            match bind.recursive {
                true => mount_bind_recursive(source, place.path())?,
                false => mount_bind(source, place.path())?,
            }
            let extra = if bind.read_only { MountFlags::RDONLY } else { MountFlags::empty() };
            self.find(target)?.restrict(extra | MountFlags::NODEV)
        };
        shown().map_err(|error| {
            io::Error::new(error.kind(), format!("{} as {}: {error}", source.display(), target.display()))
        })
    }

    pub fn enter(&self) -> io::Result<()> {
        Ok(rustix::process::fchdir(&self.0)?)
    }
}

/// How something is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bind {
    pub read_only: bool,
    /// With what is mounted below it.
    pub recursive: bool,
}

/// A file or directory in the root.
#[derive(Debug)]
pub struct Place(OwnedFd);

impl Place {
    /// A path that leads to it, whatever happens to its name.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    pub fn is_directory(&self) -> io::Result<bool> {
        Ok(self.path().metadata()?.is_dir())
    }

    /// Adds flags to those of the mount that it is the top of.
    pub fn restrict(&self, extra: MountFlags) -> io::Result<()> {
        let flags = flags_of(rustix::fs::fstatvfs(&self.0)?.f_flag);
        Ok(mount_remount(self.path(), MountFlags::BIND | flags | extra, "")?)
    }
}

/// A new mount of something has the flags of that, and keeps only those that are named again.
fn flags_of(shown: rustix::fs::StatVfsMountFlags) -> MountFlags {
    use rustix::fs::StatVfsMountFlags as Shown;
    let pairs = [
        (Shown::RDONLY, MountFlags::RDONLY),
        (Shown::NOSUID, MountFlags::NOSUID),
        (Shown::NODEV, MountFlags::NODEV),
        (Shown::NOEXEC, MountFlags::NOEXEC),
        (Shown::NOATIME, MountFlags::NOATIME),
        (Shown::NODIRATIME, MountFlags::NODIRATIME),
        (Shown::RELATIME, MountFlags::RELATIME),
    ];
    pairs.into_iter().filter(|(flag, _)| shown.contains(*flag)).map(|(_, flag)| flag).collect()
}

fn not_a_place(path: &Path) -> io::Error {
    let text = format!("{} is no path inside of a root", path.display());
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    // Opening ends there with what a directory says of itself when it is none.
    let text = match error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) {
        true => "is no directory".to_string(),
        false => error.to_string(),
    };
    io::Error::new(error.kind(), format!("{}: {text}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_a_root_do_not_lead_out_of_it() {
        let (outside, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), dir.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("/elsewhere", dir.path().join("dev")).unwrap();
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        // The link leads to a path that does not exist in the root, and nothing is made for it.
        root.directory(Path::new("/etc/deep")).unwrap_err();
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        root.file(Path::new("/dev/deep/null")).unwrap();
        assert!(dir.path().join("elsewhere/deep/null").is_file(), "one that stays inside is followed");
        root.directory(Path::new("/a/../../b")).unwrap_err();
    }

    #[test]
    fn directories_are_made_as_far_as_they_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(root.directory(Path::new("/run/systemd/resolve")).unwrap().is_directory().unwrap());
        assert!(root.directory(Path::new("run")).unwrap().is_directory().unwrap());
        std::fs::write(dir.path().join("file"), "").unwrap();
        let error = root.directory(Path::new("/file/x")).unwrap_err();
        assert_eq!(error.to_string(), "/file/x: is no directory");
    }
}
