//! What an agent shows of itself to those who look from elsewhere: its log as it is written, its host, its configuration.
//!
//! [`Monitor::layer`] is put beside whatever else prints the log. Nobody follows it most of the time, and then an
//! event costs what it would without: the layer is interested in nothing.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
mod export;
mod file;
mod follow;
mod host;
mod layer;
mod line;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;
use tracing_subscriber::filter::{LevelFilter, Targets};

pub use config::{AgentConfig, Reloaded};
pub use export::{Export, ExportError, ExportSource, Exported, serve_export};
pub use file::{LogFile, LogFileSettings};
pub use follow::{Follow, FollowError, Lines, serve};
pub use host::host_data;

/// Followers of one agent; one more is refused.
pub const FOLLOWERS_MAX: usize = 32;

/// Lines that wait for a slow follower. What comes when it is full is left out, and counted.
pub const LINES_WAITING_MAX: usize = 512;

/// Exports of one agent's log at a time; one more is refused.
pub const EXPORTS_MAX: usize = 4;

/// All that an agent logs. A clone is a handle of the same.
#[derive(Clone, Debug)]
pub struct Monitor {
    followers: Arc<ArcSwap<Vec<Arc<follow::Follower>>>>,
    /// Where the log is written to, if anywhere.
    file: Option<Arc<Path>>,
    exports: Arc<Semaphore>,
}

impl Default for Monitor {
    fn default() -> Monitor {
        Monitor { followers: Arc::default(), file: None, exports: Arc::new(Semaphore::new(EXPORTS_MAX)) }
    }
}

impl Monitor {
    /// Of an agent that writes this file.
    pub fn with_file(self, file: PathBuf) -> Monitor {
        Monitor { file: Some(file.into()), ..self }
    }
}

/// What is worth a line at a level: the libraries log their own affairs below warnings; ours is the
/// cluster. Consensus warns of what is normal when a server starts: its vote changes.
pub fn worthwhile(level: LevelFilter) -> Targets {
    let quiet = [
        "hyper",
        "hyper_util",
        "h2",
        "reqwest",
        "tonic",
        "tower",
        "fjall",
        "lsm_tree",
        "tungstenite",
        "tokio_tungstenite",
        "bollard",
        "rustls",
    ];
    Targets::new()
        .with_default(level)
        .with_targets(quiet.map(|target| (target, level.min(LevelFilter::WARN))))
        .with_target("openraft", level.min(LevelFilter::ERROR))
}
