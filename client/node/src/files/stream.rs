//! One file as frames.

use std::os::unix::fs::MetadataExt;

use super::follow::{Cursor, LOOK_EVERY};
use super::{Frames, FsError, Origin, Root};

/// Which part of which file.
#[derive(Clone, Debug)]
pub struct StreamRequest {
    pub path: String,
    pub offset: i64,
    pub origin: Origin,
    /// In bytes; all that is there unless it is positive.
    pub limit: i64,
    pub follow: bool,
}

/// A file that was found and may be read.
#[derive(Debug)]
pub struct OpenedFile {
    root: Root,
    request: StreamRequest,
    cursor: Cursor,
}

/// # Errors
/// When the file cannot be read, or the request is invalid.
pub fn open(root: Root, request: StreamRequest) -> Result<OpenedFile, FsError> {
    if request.path.is_empty() {
        return Err(FsError::Invalid("must provide a file name".to_string()));
    }
    let file = match root.open_file(&request.path) {
        // A file that is not there is a wrong parameter of this request, where listing says 404.
        Err(FsError::NotFound(path)) => return Err(FsError::Invalid(format!("file \"{path}\" not found"))),
        opened => opened?,
    };
    let mut cursor = Cursor::new(file, request.path.clone(), 0);
    let offset = u64::try_from(request.offset)
        .map_err(|_| FsError::Invalid("offset must not be negative".to_string()))?;
    cursor.offset = match request.origin {
        Origin::Start => offset,
        Origin::End => cursor.size()?.saturating_sub(offset),
    };
    Ok(OpenedFile { root, request, cursor })
}

impl OpenedFile {
    /// Sends the file; when following, until the reader disconnects or the file is removed.
    ///
    /// # Errors
    /// When reading fails half-way.
    pub async fn send(mut self, to: &Frames) -> Result<(), FsError> {
        let mut left = match self.request.limit {
            ..=0 => u64::MAX,
            limit => limit as u64,
        };
        let mut size = self.cursor.size()?;
        loop {
            let Ok(sent) = self.cursor.send_rest(left, to).await? else { return Ok(()) };
            left -= sent;
            if sent > 0 {
                size = size.max(self.cursor.offset);
            }
            if !self.request.follow || left == 0 {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = to.closed() => return Ok(()),
            }
            let before = std::mem::replace(&mut size, self.cursor.size()?);
            // A reader may begin beyond the end, and wait there: only what became shorter was truncated.
            if size < before && size < self.cursor.offset {
                self.cursor.offset = 0;
                if self.cursor.send_event("file truncated", to).await.is_err() {
                    return Ok(());
                }
            }
            if self.is_deleted()? {
                self.cursor.send_event("file deleted", to).await.ok();
                return Ok(());
            }
        }
    }

    /// True when the path is another file by now, or none.
    fn is_deleted(&self) -> Result<bool, FsError> {
        let own = self.cursor.file.metadata();
        match (self.root.open_file(&self.request.path).map(|file| file.metadata()), own) {
            (Ok(Ok(now)), Ok(own)) => Ok((now.ino(), now.dev()) != (own.ino(), own.dev())),
            (Err(FsError::NotFound(_)), _) => Ok(true),
            (Err(error), _) => Err(error),
            _ => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::StreamFrame;
    use tokio::sync::mpsc;

    use super::*;
    use crate::files::FRAMES_MAX;

    fn request(path: &str, offset: i64, origin: Origin, limit: i64, follow: bool) -> StreamRequest {
        StreamRequest { path: path.into(), offset, origin, limit, follow }
    }

    async fn content(dir: &std::path::Path, request: StreamRequest) -> Vec<StreamFrame> {
        let (to, mut frames) = mpsc::channel(FRAMES_MAX);
        let opened = open(Root::open(dir).unwrap(), request).unwrap();
        tokio::spawn(async move { opened.send(&to).await.unwrap() });
        let mut found = Vec::new();
        while let Some(frame) = frames.recv().await {
            found.push(frame);
        }
        found
    }

    #[tokio::test]
    async fn a_part_of_a_file_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "0123456789").unwrap();
        for (offset, origin, limit, expected) in [
            (0, Origin::Start, 0, "0123456789"),
            (3, Origin::Start, 4, "3456"),
            (4, Origin::End, 0, "6789"),
            (99, Origin::End, 2, "01"),
            (4, Origin::Start, -1, "456789"),
        ] {
            let frames = content(dir.path(), request("f", offset, origin, limit, false)).await;
            assert_eq!(frames.len(), 1);
            assert_eq!(frames[0].data.0, expected.as_bytes());
            assert_eq!(frames[0].file, "f");
        }
        for (offset, origin) in [(10, Origin::Start), (i64::MAX, Origin::Start), (0, Origin::End)] {
            assert!(content(dir.path(), request("f", offset, origin, 0, false)).await.is_empty(), "{offset}");
        }
    }

    #[tokio::test]
    async fn a_followed_file_is_sent_as_it_grows_shrinks_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "one").unwrap();
        let (to, mut frames) = mpsc::channel(FRAMES_MAX);
        let opened = open(Root::open(dir.path()).unwrap(), request("f", 0, Origin::Start, 0, true)).unwrap();
        tokio::spawn(async move { opened.send(&to).await.unwrap() });
        assert_eq!(frames.recv().await.unwrap().data.0, b"one");
        std::fs::write(&path, "onetwo").unwrap();
        let frame = frames.recv().await.unwrap();
        assert_eq!((frame.data.0.as_slice(), frame.offset), (&b"two"[..], 6));
        std::fs::write(&path, "x").unwrap();
        assert_eq!(frames.recv().await.unwrap().file_event, "file truncated");
        assert_eq!(frames.recv().await.unwrap().data.0, b"x");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(frames.recv().await.unwrap().file_event, "file deleted");
        assert!(frames.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_beyond_the_end_waits_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "one").unwrap();
        let (to, mut frames) = mpsc::channel(FRAMES_MAX);
        let opened = open(Root::open(dir.path()).unwrap(), request("f", 5, Origin::Start, 0, true)).unwrap();
        tokio::spawn(async move { opened.send(&to).await.unwrap() });
        tokio::time::pause();
        tokio::time::sleep(LOOK_EVERY * 3).await;
        std::fs::write(&path, "one two").unwrap();
        let frame = frames.recv().await.unwrap();
        assert_eq!((frame.data.0.as_slice(), frame.file_event.as_str()), (&b"wo"[..], ""));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(frames.recv().await.unwrap().file_event, "file deleted");
    }
}
