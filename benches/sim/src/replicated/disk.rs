//! Disks whose promises are worth nothing: what a bug in the store, or a cheap drive, would be.

use std::io;
use std::sync::Arc;

use journal::store::simulated::Disk;
use journal::store::{File, Files};

use crate::planted::Bug;

/// What a server's log is given for a disk.
pub fn files(disk: Disk, bug: Option<Bug>) -> Arc<dyn Files> {
    match bug {
        Some(bug @ (Bug::SkippedSync | Bug::SkippedNames | Bug::FailedSyncIgnored)) => {
            Arc::new(Lying { disk, bug })
        }
        _ => Arc::new(disk),
    }
}

struct Lying {
    disk: Disk,
    bug: Bug,
}

struct LyingFile {
    file: Arc<dyn File>,
    bug: Bug,
}

impl Lying {
    fn file(&self, file: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(LyingFile { file: file?, bug: self.bug }))
    }
}

impl Files for Lying {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.file(self.disk.open(name))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.file(self.disk.create(name, bytes))
    }

    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.file(self.disk.create_sparse(name, bytes))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.bug == Bug::SkippedNames { Ok(()) } else { self.disk.sync_dir() }
    }
}

impl File for LyingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        match self.bug {
            Bug::SkippedSync => Ok(()),
            Bug::FailedSyncIgnored => self.file.sync().or(Ok(())),
            _ => self.file.sync(),
        }
    }
}
