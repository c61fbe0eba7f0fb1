//! The files of this server's log and of its archive.

use std::sync::Arc;

use base::Index;
use http_gateway::HistoryFiles;
use journal::store::StoreError;
use raft::{HistoryFile, HistoryStatus, RaftJournal};

pub(crate) struct LogFiles(pub Arc<RaftJournal>);

impl HistoryFiles for LogFiles {
    fn status(&self) -> HistoryStatus {
        self.0.history()
    }

    fn verify(&self, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        self.0.verify_history(index)
    }

    fn export(&self, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        self.0.export_history(index)
    }
}
