//! The output of a container, which its monitor writes into a file: that goes on while no engine and no agent run.
//!
//! Each line has its time before it, the stream it is of, and whether it is whole. A file that has become too long is
//! replaced by a new one.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::containers::Fault;
use super::super::containers::logs::Output;
use super::engine::Engine;
use crate::driver::Logs;

/// How often is looked for more while there is some, and the longest between two looks.
const LOOK_SOON: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(200);

/// Before an engine that did not answer is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(500);

const CHUNK_BYTES: usize = 64 * 1024;

/// The output of one container.
#[derive(Debug)]
pub struct Follower {
    pub engine: Engine,
    pub container: String,
    pub logs: Logs,
    /// Where it is noted how far the output was written.
    pub note: PathBuf,
    /// Cancelled when the container has ended.
    pub ended: CancellationToken,
}

impl Follower {
    /// Returns when the container has ended and all its output is written.
    pub async fn run(self) {
        let mut output = match Output::open(&self.logs, &self.note) {
            Ok(output) => output,
            Err(error) => {
                tracing::warn!(container = self.container, %error, "the output of a task is not written");
                return;
            }
        };
        output.begin_again();
        let Some(file) = self.file().await else { return };
        let mut tail = Tail::default();
        let mut wait = LOOK_SOON;
        loop {
            // Asked first: what came between the last look and the end is read.
            let is_last = self.ended.is_cancelled();
            if tail.read(&file, &mut output) {
                wait = LOOK_SOON;
                output.note_now_and_then();
                tokio::task::yield_now().await;
                continue;
            }
            if is_last {
                return output.write_note();
            }
            output.note_now_and_then();
            tokio::select! {
                () = sleep(wait) => {}
                () = self.ended.cancelled() => {}
            }
            wait = (wait * 2).min(LOOK_MAX);
        }
    }

    /// Where the monitor writes; None when the container is gone, or keeps no file.
    async fn file(&self) -> Option<PathBuf> {
        loop {
            match self.engine.inspect(&self.container).await {
                Ok(found) => {
                    let path = found.host_config.log_config.path;
                    return (!path.is_empty()).then(|| PathBuf::from(path));
                }
                Err(Fault::Missing(_)) => return None,
                Err(_) => sleep(RETRY_EVERY).await,
            }
        }
    }
}

/// How far the files have been read.
#[derive(Debug, Default)]
struct Tail {
    file: Option<File>,
    /// Of a line that is not whole yet.
    rest: Vec<u8>,
}

impl Tail {
    /// Takes what is there; false when there was nothing.
    fn read(&mut self, path: &Path, output: &mut Output) -> bool {
        let Some(file) = self.file.as_mut() else {
            self.file = File::open(path).ok();
            return self.file.is_some();
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        match file.read(&mut chunk) {
            Ok(0) => self.next_file(path, output),
            Ok(length) => {
                self.rest.extend_from_slice(&chunk[..length]);
                self.take_lines(output);
                true
            }
            Err(error) => {
                tracing::debug!(%error, "output of a task was not read");
                false
            }
        }
    }

    /// True when another file has taken the place of the one that is read to its end.
    fn next_file(&mut self, path: &Path, output: &mut Output) -> bool {
        let number = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
        let Ok(found) = File::open(path) else { return false };
        if self.file.as_ref().and_then(number) == number(&found) {
            return false;
        }
        // It may have grown between its end and the look at its successor.
        if self.file.as_mut().is_some_and(|file| file.read_to_end(&mut self.rest).unwrap_or(0) > 0) {
            self.take_lines(output);
            return true;
        }
        self.file = Some(found);
        true
    }

    fn take_lines(&mut self, output: &mut Output) {
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.rest.split_off(end);
        for line in std::mem::replace(&mut self.rest, rest).split_inclusive(|byte| *byte == b'\n') {
            take(line, output);
        }
    }
}

/// `TIME STREAM TAG TEXT`; the tag is `F` for a whole line and `P` for a piece of one.
fn take(line: &[u8], output: &mut Output) {
    let Some((time, stream, text)) = split(line) else { return };
    match stream {
        b"stderr" => output.stderr.take_at(time, text),
        _ => output.stdout.take_at(time, text),
    }
}

fn split(line: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (time, stream, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let whole = tag.first() == Some(&b'F');
    let text = if whole { text } else { text.strip_suffix(b"\n").unwrap_or(text) };
    Some((std::str::from_utf8(time).ok()?, stream, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use executor::spec::LogSpec;

    #[test]
    fn lines_and_pieces_are_taken_from_one_file_after_another() {
        let dir = tempfile::tempdir().unwrap();
        let spec = |name: &str| LogSpec {
            directory: dir.path().into(),
            name: name.into(),
            files_max: 9,
            file_bytes_max: 1000,
        };
        let logs = Logs { stdout: spec("t.stdout"), stderr: spec("t.stderr") };
        let mut output = Output::open(&logs, &dir.path().join("note")).unwrap();
        let (path, mut tail) = (dir.path().join("log"), Tail::default());
        let time = "2026-11-25T12:00:00.000000001+00:00";
        std::fs::write(&path, format!("{time} stdout F one\n{time} stderr F er r\n{time} stdout P tw"))
            .unwrap();
        while tail.read(&path, &mut output) {}
        let next = dir.path().join("next");
        let mut old = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut old, format!("o\n{time} stdout F  more\n").as_bytes()).unwrap();
        std::fs::write(&next, format!("{time} stdout F three\n")).unwrap();
        std::fs::rename(&next, &path).unwrap();
        while tail.read(&path, &mut output) {}
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            (read("t.stdout.0").as_str(), read("t.stderr.0").as_str()),
            ("one\ntwo more\nthree\n", "er r\n")
        );
    }
}
