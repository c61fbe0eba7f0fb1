//! Where the files of an allocation are.
//!
//! ```text
//! <alloc_dir>/<alloc id>/   0755
//!   alloc/                  0777, shared: logs/ tmp/ data/
//!   <task>/                 0777: local/ secrets/ private/ tmp/ (01777)
//! ```

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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

impl AllocDir {
    /// # Errors
    /// When `alloc_id` is not a UUID: it becomes a path, so nothing else may pass.
    pub fn new(alloc_dir: &Path, alloc_id: &str) -> Result<AllocDir, base::IdError> {
        let id: base::Uuid = alloc_id.parse()?;
        Ok(AllocDir { root: alloc_dir.join(id.to_string()) })
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
    pub fn build(&self) -> io::Result<()> {
        make(&self.root, 0o755)?;
        for path in [self.shared(), self.logs(), self.root.join("alloc/tmp"), self.root.join("alloc/data")] {
            make(&path, 0o777)?;
            give_to_nobody(&path)?;
        }
        Ok(())
    }

    /// Makes the directories of one task.
    ///
    /// # Errors
    /// Also when the name could lead out of the directory or is that of the shared one.
    pub fn build_task(&self, name: &str) -> io::Result<TaskDir> {
        if name.is_empty() || name == "alloc" || name.starts_with('.') || name.contains(['/', '\0']) {
            let text = format!("task name \"{name}\" can not name a directory");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let dir = self.task(name);
        for path in [&dir.root, &dir.local, &dir.secrets, &dir.private] {
            make(path, 0o777)?;
            give_to_nobody(path)?;
        }
        make(&dir.tmp, 0o1777)?;
        Ok(dir)
    }

    /// Removes everything. It is no error when nothing is there.
    pub fn destroy(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    // Set apart from the making, because the umask of the agent cuts the mode given there.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn give_to_nobody(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";

    #[test]
    fn the_tree_is_made_and_removed_again() {
        let base = tempfile::tempdir().unwrap();
        let dir = AllocDir::new(base.path(), ID).unwrap();
        dir.build().unwrap();
        let task = dir.build_task("web").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir.logs()), 0o777);
        assert_eq!(mode(&task.tmp), 0o1777);
        assert!(base.path().join(ID).join("web/secrets").is_dir());
        dir.build_task("web").unwrap();
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
            assert!(dir.build_task(name).is_err(), "{name}");
        }
    }
}
