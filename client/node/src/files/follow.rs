//! Reading a file that may still grow.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use api::StreamFrame;
use model::document::Bytes;

use super::root::failed;
use super::{Frames, FsError};

/// Content of one frame at most.
const FRAME_BYTES: usize = 64 * 1024;

/// How often a file is checked for more content.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A place in an open file.
#[derive(Clone, Debug)]
pub struct Cursor {
    pub file: Arc<File>,
    /// As callers wrote it.
    pub name: String,
    pub offset: u64,
}

/// The reader of the frames has disconnected.
pub struct Gone;

impl Cursor {
    pub fn new(file: File, name: String, offset: u64) -> Cursor {
        Cursor { file: Arc::new(file), name, offset }
    }

    pub fn size(&self) -> Result<u64, FsError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|error| failed(&self.name, error))
    }

    /// Sends what there is from the cursor on, at most `limit` bytes, and moves the cursor behind it.
    pub async fn send_rest(&mut self, limit: u64, to: &Frames) -> Result<Result<u64, Gone>, FsError> {
        let mut sent = 0;
        while sent < limit {
            let want = FRAME_BYTES.min(usize::try_from(limit - sent).unwrap_or(FRAME_BYTES));
            let data = self.read(want).await?;
            if data.is_empty() {
                break;
            }
            self.offset += data.len() as u64;
            sent += data.len() as u64;
            let frame = StreamFrame {
                offset: self.offset as i64,
                data: Bytes(data),
                file: self.name.clone(),
                file_event: String::new(),
            };
            if to.send(frame).await.is_err() {
                return Ok(Err(Gone));
            }
        }
        Ok(Ok(sent))
    }

    /// Away from the runtime: a disk may take its time.
    async fn read(&self, want: usize) -> Result<Vec<u8>, FsError> {
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        let read = move || {
            let mut data = vec![0; want];
            let length = file.read_at(&mut data, offset)?;
            data.truncate(length);
            std::io::Result::Ok(data)
        };
        let read = tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.into()));
        read.map_err(|error| failed(&self.name, error))
    }

    /// Sends an event of the file, such as its deletion.
    pub async fn send_event(&self, event: &str, to: &Frames) -> Result<(), Gone> {
        let frame = StreamFrame {
            offset: self.offset as i64,
            file: self.name.clone(),
            file_event: event.to_string(),
            ..StreamFrame::default()
        };
        to.send(frame).await.map_err(|_| Gone)
    }
}
