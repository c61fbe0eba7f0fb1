//! What the agent logs, and where to.

use std::path::PathBuf;

use base::Duration;
use monitor::LogFileSettings;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogSettings {
    pub level: tracing::Level,
    /// One JSON object a line.
    pub json: bool,
    /// Lines name the place in the program that wrote them.
    pub include_location: bool,
    /// The log is also written to a file.
    pub file: Option<PathBuf>,
    /// Of the file: 0 for no limit.
    pub rotate_bytes: u64,
    pub rotate_duration: Duration,
    /// Files put away that are kept: all with 0, none if negative.
    pub rotate_max_files: i64,
}

impl LogSettings {
    pub(crate) fn log_file(&self) -> Option<LogFileSettings> {
        let a_day = Duration::from_secs(24 * 60 * 60);
        let rotate_after = if self.rotate_duration > Duration::ZERO { self.rotate_duration } else { a_day };
        Some(LogFileSettings {
            path: self.file.clone()?,
            rotate_bytes: self.rotate_bytes,
            rotate_after: rotate_after.to_std(),
            keep: self.rotate_max_files,
            mode: 0o640,
        })
    }
}
