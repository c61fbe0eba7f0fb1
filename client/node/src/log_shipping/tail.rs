//! The lines of one stream of a task, read from its rotated log files as they grow.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str::FromStr;

use executor::rotate;

use crate::files::Root;
use crate::layout::AllocDir;

/// What is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A longer line is sent in pieces: datagrams of syslog are not long.
const LINE_BYTES_MAX: usize = 8 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub fn named(name: &str) -> Stream {
        if name == "stderr" { Stream::Stderr } else { Stream::Stdout }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// A file by its number, and a place in it. Stored as `3:1024`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub file: u64,
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Position, Self::Err> {
        let (file, offset) = text.split_once(':').unwrap_or((text, "0"));
        Ok(Position { file: file.parse()?, offset: offset.parse()? })
    }
}

/// Some lines, and the place behind them.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    pub lines: Vec<String>,
    pub next: Position,
    /// Files that were gone before all of them was read.
    pub files_lost: u64,
}

#[derive(Clone, Debug)]
pub struct Tail {
    pub stream: Stream,
    dir: AllocDir,
    stem: String,
    at: Position,
}

impl Tail {
    pub fn new(dir: &AllocDir, task: &str, stream: Stream, at: &str) -> Tail {
        let at = at.parse().unwrap_or_default();
        Tail { stream, dir: dir.clone(), stem: format!("{task}.{}", stream.name()), at }
    }

    /// What came since, without half a line unless it is the last one. `None` when there is nothing.
    pub async fn read(&self, is_over: bool) -> Option<Batch> {
        let tail = self.clone();
        // A disk may be slow.
        tokio::task::spawn_blocking(move || tail.read_now(is_over)).await.ok().flatten()
    }

    pub fn taken(&mut self, batch: &Batch) {
        self.at = batch.next;
    }

    fn read_now(&self, is_over: bool) -> Option<Batch> {
        // Looked for before the reading: a file that has a successor is complete.
        let found = rotate::indexes(&self.dir.logs(), &self.stem).ok()?;
        let file = found.iter().copied().find(|index| *index >= self.at.file)?;
        if file > self.at.file && !found.contains(&self.at.file) {
            let next = Position { file, offset: 0 };
            return Some(Batch { lines: Vec::new(), next, files_lost: file - self.at.file });
        }
        let successor = found.iter().copied().find(|index| *index > file);
        let bytes = self.bytes(file)?;
        let (lines, taken) = lines(&bytes, successor.is_some() || is_over);
        let next = match successor {
            Some(successor) if taken == bytes.len() && bytes.len() < CHUNK_BYTES => {
                Position { file: successor, offset: 0 }
            }
            _ => Position { file, offset: self.at.offset + taken as u64 },
        };
        (next != self.at).then_some(Batch { lines, next, files_lost: 0 })
    }

    fn bytes(&self, file: u64) -> Option<Vec<u8>> {
        // The directory is the task's: no link in it leads out.
        let root = Root::open(self.dir.root()).ok()?;
        let file: File = root.open_file(&format!("alloc/logs/{}.{file}", self.stem)).ok()?;
        let mut bytes = vec![0; CHUNK_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], self.at.offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        bytes.truncate(filled);
        Some(bytes)
    }
}

/// The whole lines, with what is behind the last one if nothing will follow; and how many bytes that is.
fn lines(bytes: &[u8], is_all: bool) -> (Vec<String>, usize) {
    let (mut lines, mut taken) = (Vec::new(), 0);
    while taken < bytes.len() {
        let rest = &bytes[taken..];
        let within = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let (line, length) = match within.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&rest[..end], end + 1),
            None if within.len() == LINE_BYTES_MAX => (within, LINE_BYTES_MAX),
            None if is_all && bytes.len() < CHUNK_BYTES => (within, within.len()),
            None => break,
        };
        taken += length;
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\r');
        if !text.is_empty() {
            lines.push(text.to_string());
        }
    }
    (lines, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(at: &str) -> (tempfile::TempDir, Tail) {
        let base = tempfile::tempdir().unwrap();
        let dir = AllocDir::new(base.path(), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        dir.build().unwrap();
        (base, Tail::new(&dir, "t", Stream::Stdout, at))
    }

    fn put(tail: &Tail, index: u64, text: &str) {
        std::fs::write(tail.dir.logs().join(format!("t.stdout.{index}")), text).unwrap();
    }

    #[test]
    fn whole_lines_are_taken_and_the_last_half_when_nothing_follows() {
        let (_base, mut tail) = tail("");
        assert_eq!(tail.read_now(false), None, "there is no file yet");
        put(&tail, 0, "one\n\ntwo\nha");
        let batch = tail.read_now(false).unwrap();
        assert_eq!((batch.lines.join(" "), batch.next.to_string()), ("one two".into(), "0:9".into()));
        tail.taken(&batch);
        assert_eq!(tail.read_now(false), None);
        assert_eq!(tail.read_now(true).unwrap().lines, ["ha"]);
        put(&tail, 0, "one\n\ntwo\nhalf\n");
        put(&tail, 1, "three\n");
        let batch = tail.read_now(false).unwrap();
        assert_eq!((batch.lines.join(" "), batch.next.to_string()), ("half".into(), "1:0".into()));
        tail.taken(&batch);
        assert_eq!(tail.read_now(false).unwrap().lines, ["three"]);
    }

    #[test]
    fn files_that_were_rotated_away_are_counted() {
        let (_base, mut tail) = tail("2:7");
        put(&tail, 5, "five\n");
        let batch = tail.read_now(false).unwrap();
        assert_eq!((batch.files_lost, batch.next.to_string()), (3, "5:0".into()));
        tail.taken(&batch);
        assert_eq!(tail.read_now(false).unwrap().lines, ["five"]);
    }

    #[test]
    fn a_line_that_is_too_long_comes_in_pieces() {
        let text = "x".repeat(LINE_BYTES_MAX + 3);
        let (pieces, taken) = lines(text.as_bytes(), false);
        assert_eq!((pieces.len(), taken), (1, LINE_BYTES_MAX));
        let (pieces, taken) = lines(text.as_bytes(), true);
        assert_eq!((pieces[1].len(), taken), (3, text.len()));
    }
}
