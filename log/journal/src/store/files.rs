//! The disk as the store sees it: one directory of a few flat files.

use std::fs::{self, File as OsFile, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoreError;

const LOCK: &str = "lock";
/// Zeros written at once when a file is made: few enough system calls, little memory.
const ZEROS: usize = 1 << 20;

/// A directory. Names have no slash. A failing disk is simulated by implementing this.
pub trait Files: Send + Sync + 'static {
    fn list(&self) -> io::Result<Vec<String>>;

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// A file of `bytes` zeros, replacing what had the name. The zeros are written, not promised: a later write
    /// needs no space and a later sync no change of the file's description.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>>;

    /// A file of `bytes` zeros that take no space yet, replacing what had the name: each write may find the disk full.
    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>>;

    /// Replaces what had the name `to`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    /// When this returns, files made, renamed and removed so far stay so.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file of fixed length.
pub trait File: Send + Sync + 'static {
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer`, or fails.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of `bytes`, or fails.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// When this returns, everything written so far stays written.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the operating system, held by this process alone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: OsFile,
}

impl Directory {
    /// Makes the directory if there is none, and takes it for this process.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it.
    pub fn open(path: &Path) -> Result<Directory, StoreError> {
        if !path.exists() {
            make(path).map_err(StoreError::io("create the log's directory"))?;
        }
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = lock.map_err(StoreError::io("open the log's lock file"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Directory { path: path.to_path_buf(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: path.to_path_buf() }),
            Err(TryLockError::Error(source)) => Err(StoreError::io("lock the log's directory")(source)),
        }
    }

    /// Whether a process has the directory now. A lock that is tried for that is let go of at once.
    ///
    /// # Errors
    /// The faults of a disk.
    pub fn is_in_use(path: &Path) -> Result<bool, StoreError> {
        let lock = match OsFile::open(path.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(StoreError::io("open the log's lock file")(error)),
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(StoreError::io("ask for the log's lock")(source)),
        }
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options
    }
}

/// Makes a directory that stays.
fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => OsFile::open(parent)?.sync_all(),
        None => OsFile::open(".")?.sync_all(),
    }
}

fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

impl Files for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Self::options().open(self.path.join(name))?))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = Self::options().create(true).truncate(true).open(self.path.join(name))?;
        let zeros = vec![0; ZEROS];
        let mut at = 0;
        while at < bytes {
            let len = (bytes - at).min(ZEROS as u64);
            file.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        file.sync_all()?;
        Ok(Arc::new(file))
    }

    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        let file = Self::options().create(true).truncate(true).open(self.path.join(name))?;
        file.set_len(bytes)?;
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        OsFile::open(&self.path)?.sync_all()
    }
}

/// A directory that is only looked at: nothing in it changes, and others may use it.
#[derive(Debug)]
pub(super) struct ReadOnly {
    path: PathBuf,
}

impl ReadOnly {
    pub fn new(path: &Path) -> ReadOnly {
        ReadOnly { path: path.to_path_buf() }
    }

    fn refused<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the log is only read"))
    }
}

impl Files for ReadOnly {
    fn list(&self) -> io::Result<Vec<String>> {
        names_in(&self.path)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OsFile::open(self.path.join(name))?))
    }

    fn create(&self, _: &str, _: u64) -> io::Result<Arc<dyn File>> {
        ReadOnly::refused()
    }

    fn create_sparse(&self, _: &str, _: u64) -> io::Result<Arc<dyn File>> {
        ReadOnly::refused()
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        ReadOnly::refused()
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        ReadOnly::refused()
    }

    fn sync_dir(&self) -> io::Result<()> {
        ReadOnly::refused()
    }
}

impl File for OsFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
