//! The files of an allocation, for those who may read them over the API.
//!
//! [`Root`] opens paths, none outside of the allocation; [`stream`] and [`logs`] turn files into frames.

mod follow;
pub mod logs;
mod root;
pub mod snapshot;
pub mod stream;

pub use root::Root;

/// Why a file cannot be read. [`FsError::code`] is the HTTP status for it.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    #[error("Path escapes the alloc directory")]
    Escapes,
    #[error("Reading secret file prohibited: {0}")]
    Secret(String),
    #[error("file \"{0}\" not found")]
    NotFound(String),
    #[error("Permission denied")]
    Denied,
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
}

impl FsError {
    pub fn status(&self) -> u16 {
        match self {
            FsError::Escapes | FsError::Invalid(_) => 400,
            FsError::Secret(_) | FsError::Denied => 403,
            FsError::NotFound(_) | FsError::Missing(_) => 404,
            FsError::Io { .. } => 500,
        }
    }
}

/// Whether an offset counts from the beginning or back from the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    Start,
    End,
}

impl std::str::FromStr for Origin {
    type Err = FsError;

    fn from_str(text: &str) -> Result<Origin, FsError> {
        match text {
            "" | "start" => Ok(Origin::Start),
            "end" => Ok(Origin::End),
            _ => Err(FsError::Invalid("origin must be start or end".to_string())),
        }
    }
}

/// Where frames go. Bounded: a slow reader stops the reading of files.
pub type Frames = tokio::sync::mpsc::Sender<api::StreamFrame>;

/// Frames that wait for a slow reader; 8 of 64 KiB make half a MiB.
pub const FRAMES_MAX: usize = 8;
