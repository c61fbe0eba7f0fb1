//! A log that ends before what its history has seen: a disk lost what it had promised to keep, and what is left of the log
//! looks whole.
//!
//! History indexes what is committed, so a lone server had acknowledged all of it.

use std::path::{Path, PathBuf};

use base::Index;
use history::{History, HistoryError};

use crate::identity;
use crate::open_log::log_dir;
use crate::start::StartError;

/// Batches that were committed and are not in the log any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostTail {
    /// The last batch in the log.
    pub kept: Index,
    /// The oldest batch that can be read.
    pub oldest: Index,
    /// The last one that history has seen.
    pub seen: Index,
}

/// What is lost of the log in the directory of a server. A loss that was accepted is none.
///
/// # Errors
/// The history cannot be opened.
pub(crate) fn find(dir: &Path, oldest: Index, kept: Index) -> Result<Option<LostTail>, HistoryError> {
    let seen = History::has_seen(&history_dir(dir))?;
    let accepted = identity::first_index(dir)? > seen;
    Ok((seen > kept && !accepted).then_some(LostTail { kept, oldest, seen }))
}

/// What is lost of the log in a data directory that no server uses.
///
/// # Errors
/// The log or the history cannot be opened.
pub fn lost_tail(data_dir: &Path) -> Result<Option<LostTail>, StartError> {
    let end = raft::log_end(&log_dir(data_dir))?;
    let (oldest, kept) = end.map_or((Index(1), Index::ZERO), |end| (end.oldest, end.index));
    Ok(find(&data_dir.join("server"), oldest, kept)?)
}

/// Where the history lies in the directory of a server.
pub(crate) fn history_dir(dir: &Path) -> PathBuf {
    dir.join("history")
}
