//! Paths that a job names, and files of templates. Every path is resolved by the kernel below a directory of the task
//! ([`artifact::below`]), whatever the task does in the meantime: links lead nowhere else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use artifact::below::{Below, Links};
use rustix::fs::OFlags;

use crate::driver::FsIsolation;
use crate::layout::{AllocDir, TaskDir};

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Where templates of a task may read and write.
#[derive(Clone, Debug)]
pub struct Sandbox {
    task: PathBuf,
    shared: PathBuf,
    alloc: PathBuf,
    isolation: FsIsolation,
    /// Everywhere.
    open: bool,
}

/// A path, below a directory that it does not leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    root: PathBuf,
    inside: PathBuf,
}

/// Whose a file is, and who may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    pub mode: u32,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

impl Sandbox {
    pub fn new(alloc: &AllocDir, task: &TaskDir, isolation: FsIsolation, open: bool) -> Sandbox {
        let (task, shared, alloc) = (task.root.clone(), alloc.shared(), alloc.root().to_path_buf());
        Sandbox { task, shared, alloc, isolation, open }
    }

    /// Where a path of a job is: below the directory of the task unless it is absolute. A task that sees its own
    /// directory as the root names it so.
    ///
    /// # Errors
    /// When it is outside of the directory of the task and of the one that the tasks share.
    pub fn locate(&self, path: &str) -> Result<Location, String> {
        let full = normal(&self.absolute(Path::new(path)));
        for root in [&self.task, &self.shared] {
            if let Ok(inside) = full.strip_prefix(root) {
                return Ok(Location { root: root.clone(), inside: inside.to_path_buf() });
            }
        }
        if self.open {
            let inside = full.strip_prefix("/").unwrap_or(&full).to_path_buf();
            return Ok(Location { root: PathBuf::from("/"), inside });
        }
        Err(format!("path \"{path}\" escapes the directory of the allocation"))
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        if !path.is_absolute() {
            return self.task.join(path);
        }
        if self.isolation == FsIsolation::None || path.starts_with(&self.alloc) {
            return path.to_path_buf();
        }
        match path.strip_prefix("/alloc") {
            Ok(inside) => self.shared.join(inside),
            Err(_) => self.task.join(path.strip_prefix("/").unwrap_or(path)),
        }
    }
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

impl Location {
    /// The directory that the path does not leave.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path from there on.
    pub fn inside(&self) -> &Path {
        &self.inside
    }

    /// # Errors
    /// When there is no such file, or it is no regular one, or larger than 64 MiB, or a link leads out.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        // A pipe that nobody writes to must not hold up the reader.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = File::from(Below::new(&self.root, Links::Inside)?.open(&self.inside, flags)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "larger than 64 MiB"));
        }
        Ok(bytes)
    }

    /// Makes the directories that are missing, and puts the file in place of what was there: nobody reads half of it.
    ///
    /// # Errors
    /// When the system refuses it, or a link leads out.
    pub fn write(&self, content: &[u8], ownership: Ownership) -> io::Result<()> {
        let mut draft = Below::new(&self.root, Links::Inside)?.draft(&self.inside, None)?;
        draft.file.write_all(content)?;
        if ownership.uid.is_some() || ownership.gid.is_some() {
            std::os::unix::fs::fchown(&draft.file, ownership.uid, ownership.gid)?;
        }
        draft.file.set_permissions(std::fs::Permissions::from_mode(ownership.mode))?;
        draft.place()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";
    const USUAL: Ownership = Ownership { mode: 0o640, uid: None, gid: None };

    fn sandbox(base: &Path, isolation: FsIsolation, open: bool) -> (TaskDir, Sandbox) {
        let alloc = AllocDir::new(base, ID).unwrap();
        alloc.build().unwrap();
        alloc.build_task("other", None).unwrap();
        let task = alloc.build_task("web", None).unwrap();
        let sandbox = Sandbox::new(&alloc, &task, isolation, open);
        (task, sandbox)
    }

    #[test]
    fn paths_stay_in_the_directories_of_the_task() {
        let base = tempfile::tempdir().unwrap();
        let (task, own) = sandbox(base.path(), FsIsolation::None, false);
        for path in ["local/a", "a/../local/a", task.local.join("a").to_str().unwrap(), "./local/a"] {
            assert_eq!(own.locate(path).unwrap().inside, Path::new("local/a"), "{path}");
        }
        assert!(own.locate("../alloc/data/x").is_ok());
        for path in ["../other/local/a", "/etc/passwd", "../../x", "local/../../../x"] {
            let error = own.locate(path).unwrap_err();
            assert_eq!(error, format!("path \"{path}\" escapes the directory of the allocation"));
        }
        let (_, inside) = sandbox(base.path(), FsIsolation::Image, false);
        assert_eq!(inside.locate("/local/a").unwrap(), own.locate("local/a").unwrap());
        assert_eq!(inside.locate("/alloc/data").unwrap(), own.locate("../alloc/data").unwrap());
        assert_eq!(inside.locate("/etc/passwd").unwrap(), own.locate("etc/passwd").unwrap());
        let (_, open) = sandbox(base.path(), FsIsolation::None, true);
        assert_eq!(open.locate("/etc/passwd").unwrap().root, Path::new("/"));
    }

    #[test]
    fn files_are_written_whole_with_their_rights() {
        let base = tempfile::tempdir().unwrap();
        let (task, own) = sandbox(base.path(), FsIsolation::None, false);
        let place = own.locate("local/deep/er/file").unwrap();
        place.write(b"one", USUAL).unwrap();
        place.write(b"two", Ownership { mode: 0o600, ..USUAL }).unwrap();
        let path = task.local.join("deep/er/file");
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
        assert_eq!(place.read().unwrap(), b"two");
        assert!(own.locate("local").unwrap().read().is_err());
        assert!(own.locate("local/nope").unwrap().read().is_err());
    }

    #[test]
    fn links_lead_nowhere_else() {
        let base = tempfile::tempdir().unwrap();
        let (task, own) = sandbox(base.path(), FsIsolation::None, false);
        std::fs::write(base.path().join("secret"), "s").unwrap();
        std::fs::create_dir(base.path().join("dir")).unwrap();
        symlink(base.path().join("secret"), task.local.join("absolute")).unwrap();
        symlink("../../../secret", task.local.join("up")).unwrap();
        symlink(base.path().join("dir"), task.local.join("dir")).unwrap();
        symlink("../../other/local", task.local.join("sibling")).unwrap();
        for path in ["local/absolute", "local/up", "local/sibling/x"] {
            assert!(own.locate(path).unwrap().read().is_err(), "{path}");
        }
        for path in ["local/dir/x", "local/sibling/x", "local/dir/deep/x"] {
            assert!(own.locate(path).unwrap().write(b"x", USUAL).is_err(), "{path}");
        }
        // A link in place of the file itself is replaced, not followed.
        own.locate("local/up").unwrap().write(b"mine", USUAL).unwrap();
        assert_eq!(std::fs::read(base.path().join("secret")).unwrap(), b"s");
        assert_eq!(std::fs::read(task.local.join("up")).unwrap(), b"mine");
        assert_eq!(std::fs::read_dir(base.path().join("dir")).unwrap().count(), 0);
    }
}
