//! The files of this server's log and of its archive.

use std::path::Path;
use std::sync::Arc;

use base::Index;
use http_gateway::{Entries, HistoryFiles};
use journal::store::StoreError;
use raft::{HistoryFile, HistoryStatus, RaftJournal};

use crate::identity;
use crate::settings::{Archive, ArchivePlace, HistorySettings};
use crate::start::StartError;

/// Where the archive is, of the server whose data directory that is.
///
/// # Errors
/// A bucket cannot be asked.
pub(crate) fn archive(settings: Option<&Archive>, dir: &Path) -> Result<Option<raft::Archive>, StartError> {
    let Some(Archive { place, max_bytes }) = settings else { return Ok(None) };
    let place = match place {
        ArchivePlace::Folder(path) => raft::ArchivePlace::Directory(path.clone()),
        ArchivePlace::Bucket(settings) => {
            let data = |source| StartError::Data { path: dir.to_path_buf(), source };
            let own = identity::server_id(dir).map_err(data)?.to_string();
            let files = bucket::Bucket::new(settings, &own).map_err(StartError::Archive)?;
            raft::ArchivePlace::Files(Arc::new(files))
        }
    };
    Ok(Some(raft::Archive { place, max_bytes: *max_bytes }))
}

/// What is kept of history that is gone, beside the log of the server whose directory that is.
pub(crate) fn keep(settings: &HistorySettings, dir: &Path) -> raft::Keep {
    raft::Keep { dir: dir.join("kept"), kinds: settings.keep, max_bytes: settings.keep_max_bytes }
}

pub(crate) struct LogFiles(pub Arc<RaftJournal>);

impl HistoryFiles for LogFiles {
    fn status(&self) -> HistoryStatus {
        self.0.history()
    }

    fn verify(&self, of: Entries, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        match of {
            Entries::All => self.0.verify_history(index),
            Entries::Kept => self.0.verify_kept(index),
        }
    }

    fn export(&self, of: Entries, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        match of {
            Entries::All => self.0.export_history(index),
            Entries::Kept => self.0.export_kept(index),
        }
    }
}
