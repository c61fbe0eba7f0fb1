//! The rotated log files of a task as one stream of frames.

use super::follow::{Cursor, LOOK_EVERY};
use super::{Frames, FsError, Origin, Root};
use crate::layout::AllocDir;
use executor::rotate;

/// Which part of which stream.
#[derive(Clone, Debug)]
pub struct LogsRequest {
    pub task: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    pub offset: i64,
    pub origin: Origin,
    pub follow: bool,
}

/// A stream that was found and may be read.
#[derive(Debug)]
pub struct OpenedLogs {
    dir: AllocDir,
    root: Root,
    stem: String,
    index: u64,
    cursor: Cursor,
    follow: bool,
}

/// # Errors
/// When there are no logs, or the request is invalid.
pub fn open(dir: &AllocDir, request: &LogsRequest) -> Result<OpenedLogs, FsError> {
    if !matches!(request.stream.as_str(), "stdout" | "stderr") {
        return Err(FsError::Invalid("must provide log type (stdout/stderr)".to_string()));
    }
    let offset = u64::try_from(request.offset)
        .map_err(|_| FsError::Invalid("offset must not be negative".to_string()))?;
    let root = Root::open(dir.root())?;
    let stem = format!("{}.{}", request.task, request.stream);
    let mut sizes = Vec::new();
    for index in indexes(dir, &stem) {
        // One that was rotated away in between is simply not there.
        let Ok(cursor) = open_index(&root, &stem, index) else { continue };
        sizes.push((index, cursor.size()?));
    }
    let (index, offset) = place(&sizes, offset, request.origin)
        .ok_or_else(|| FsError::Missing(format!("log entry for task \"{}\" not found", request.task)))?;
    let mut cursor = open_index(&root, &stem, index)?;
    cursor.offset = offset;
    Ok(OpenedLogs { dir: dir.clone(), root, stem, index, cursor, follow: request.follow })
}

fn indexes(dir: &AllocDir, stem: &str) -> Vec<u64> {
    rotate::indexes(&dir.logs(), stem).unwrap_or_default()
}

fn open_index(root: &Root, stem: &str, index: u64) -> Result<Cursor, FsError> {
    let path = format!("alloc/logs/{stem}.{index}");
    Ok(Cursor::new(root.open_file(&path)?, path, 0))
}

/// The file and the place in it at `offset` bytes into the concatenation of all, or before its end.
fn place(sizes: &[(u64, u64)], offset: u64, origin: Origin) -> Option<(u64, u64)> {
    let total: u64 = sizes.iter().map(|(_, size)| size).sum();
    let mut left = match origin {
        Origin::Start => offset,
        Origin::End => total.saturating_sub(offset),
    };
    for (index, size) in sizes {
        if left < *size {
            return Some((*index, left));
        }
        left -= size;
    }
    // At or beyond the end: wait there for more.
    sizes.last().copied()
}

impl OpenedLogs {
    /// Sends the stream; when following, until the reader disconnects.
    ///
    /// # Errors
    /// When reading fails half-way.
    pub async fn send(mut self, to: &Frames) -> Result<(), FsError> {
        loop {
            // Looked for before the reading: a file that has a successor is complete.
            let found = indexes(&self.dir, &self.stem);
            let next = found.iter().copied().find(|index| *index > self.index);
            let Ok(_) = self.cursor.send_rest(u64::MAX, to).await? else { return Ok(()) };
            match next.map(|index| (index, open_index(&self.root, &self.stem, index))) {
                Some((index, Ok(cursor))) => (self.index, self.cursor) = (index, cursor),
                // Rotated away already: the next look finds another.
                Some((_, Err(FsError::NotFound(_)))) => {}
                Some((_, Err(error))) => return Err(error),
                None if !self.follow => return Ok(()),
                // What remained of the allocation was cleared away: nothing will ever follow.
                None if found.is_empty() => {
                    self.cursor.send_event("file deleted", to).await.ok();
                    return Ok(());
                }
                None => tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = to.closed() => return Ok(()),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::files::FRAMES_MAX;

    fn logs() -> (tempfile::TempDir, AllocDir) {
        let base = tempfile::tempdir().unwrap();
        let dir = AllocDir::new(base.path(), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        dir.build().unwrap();
        for (index, text) in [(3, "aaaa"), (4, "bbb"), (5, "cc")] {
            std::fs::write(dir.logs().join(format!("web.stdout.{index}")), text).unwrap();
        }
        (base, dir)
    }

    fn request(offset: i64, origin: Origin, follow: bool) -> LogsRequest {
        LogsRequest { task: "web".into(), stream: "stdout".into(), offset, origin, follow }
    }

    async fn text(frames: &mut mpsc::Receiver<api::StreamFrame>, wanted: usize) -> String {
        let mut found = Vec::new();
        while found.len() < wanted {
            let Some(frame) = frames.recv().await else { break };
            found.extend(frame.data.0);
        }
        String::from_utf8(found).unwrap()
    }

    fn send(opened: OpenedLogs) -> mpsc::Receiver<api::StreamFrame> {
        let (to, frames) = mpsc::channel(FRAMES_MAX);
        tokio::spawn(async move { opened.send(&to).await.unwrap() });
        frames
    }

    #[tokio::test]
    async fn an_offset_counts_over_all_files() {
        let (_base, dir) = logs();
        for (offset, origin, expected) in [
            (0, Origin::Start, "aaaabbbcc"),
            (5, Origin::Start, "bbcc"),
            (7, Origin::Start, "cc"),
            (9, Origin::Start, ""),
            (3, Origin::End, "bcc"),
            (99, Origin::End, "aaaabbbcc"),
            (0, Origin::End, ""),
        ] {
            let mut frames = send(open(&dir, &request(offset, origin, false)).unwrap());
            assert_eq!(text(&mut frames, usize::MAX).await, expected, "{offset} {origin:?}");
        }
    }

    #[tokio::test]
    async fn following_goes_on_into_the_next_file() {
        let (_base, dir) = logs();
        let mut frames = send(open(&dir, &request(0, Origin::End, true)).unwrap());
        std::fs::write(dir.logs().join("web.stdout.5"), "ccdd").unwrap();
        assert_eq!(text(&mut frames, 2).await, "dd");
        std::fs::write(dir.logs().join("web.stdout.6"), "ee").unwrap();
        assert_eq!(text(&mut frames, 2).await, "ee");
    }

    #[tokio::test]
    async fn following_ends_when_the_logs_are_cleared_away() {
        let (_base, dir) = logs();
        let mut frames = send(open(&dir, &request(0, Origin::End, true)).unwrap());
        dir.destroy().unwrap();
        assert_eq!(frames.recv().await.unwrap().file_event, "file deleted");
        assert!(frames.recv().await.is_none());
    }

    #[test]
    fn missing_logs_differ_from_wrong_requests() {
        let (_base, dir) = logs();
        let other = LogsRequest { task: "db".into(), ..request(0, Origin::Start, false) };
        assert_eq!(open(&dir, &other).unwrap_err().status(), 404);
        let wrong = LogsRequest { stream: "stdin".into(), ..request(0, Origin::Start, false) };
        assert_eq!(open(&dir, &wrong).unwrap_err().status(), 400);
    }
}
