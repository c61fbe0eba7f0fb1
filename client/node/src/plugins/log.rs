//! What a plugin writes to its standard error, on its way into the agent's log: through files, so that a plugin which outlives
//! the agent never writes to nobody.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use executor::rotate;
use executor::spec::LogSpec;
use plugin::hclog::{LINE_BYTES_MAX, Line};
use plugin::proto::base::Empty;
use plugin::proto::go_plugin::{self, StdioData};
use plugin::supervisor::Instance;
use tokio::sync::watch;

/// The name of the stream, of its pipe and of its files.
pub const STREAM: &str = "stderr";

/// How often is looked for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The files of a plugin.
pub fn files(directory: &Path) -> LogSpec {
    let directory = directory.to_path_buf();
    LogSpec { directory, name: STREAM.to_string(), files_max: 2, file_bytes_max: 1 << 20 }
}

/// How far the files were read.
#[derive(Debug)]
pub struct Tail {
    directory: PathBuf,
    file: u64,
    offset: u64,
    /// The beginning of a line.
    begun: Vec<u8>,
}

impl Tail {
    /// Behind what earlier agents have seen, or could have.
    pub fn at_end(directory: &Path) -> Tail {
        let file = indexes(directory).pop().unwrap_or_default();
        let length = directory.join(format!("{STREAM}.{file}")).metadata().map(|file| file.len());
        Tail {
            directory: directory.to_path_buf(),
            file,
            offset: length.unwrap_or_default(),
            begun: Vec::new(),
        }
    }

    /// The whole lines that have come since. A line that is longer than anybody reads comes in pieces.
    pub fn read(&mut self) -> Vec<String> {
        let found = indexes(&self.directory);
        if let Some(first) = found.iter().find(|index| **index >= self.file)
            && *first > self.file
        {
            // What came before was removed.
            (self.file, self.offset) = (*first, 0);
            self.begun.clear();
        }
        let bytes = self.bytes();
        self.offset += bytes.len() as u64;
        // Nothing comes any more to a file that has a successor; a line may go on there.
        if bytes.is_empty()
            && let Some(next) = found.into_iter().find(|index| *index > self.file)
        {
            (self.file, self.offset) = (next, 0);
        }
        self.begun.extend(bytes);
        whole_lines(&mut self.begun)
    }

    fn bytes(&self) -> Vec<u8> {
        let path = self.directory.join(format!("{STREAM}.{}", self.file));
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = File::open(path).and_then(|file| file.read_at(&mut bytes, self.offset));
        bytes.truncate(read.unwrap_or_default());
        bytes
    }
}

fn indexes(directory: &Path) -> Vec<u64> {
    rotate::indexes(directory, STREAM).unwrap_or_default()
}

/// Runs until it is dropped.
pub async fn follow(plugin: String, mut tail: Tail) {
    loop {
        let lines = tail.read();
        if lines.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        for line in lines {
            Line::parse(&line).emit(&plugin);
        }
    }
}

/// What a plugin on go-plugin prints comes over a call instead; unread, it would get stuck. Runs until it is dropped.
pub async fn follow_stdio(plugin: String, mut lives: watch::Receiver<Option<Instance>>) {
    loop {
        let Ok(instance) = lives.wait_for(Option::is_some).await.map(|instance| instance.clone()) else {
            return;
        };
        let Some(instance) = instance else { continue };
        let caller = &instance.running.caller;
        let stream = caller.stream::<_, StdioData>(go_plugin::STDIO, "StreamStdio", Empty {}).await;
        if let Ok(mut stream) = stream {
            let mut begun: [Vec<u8>; 2] = Default::default();
            while let Ok(Some(piece)) = stream.message().await {
                let begun = &mut begun[usize::from(piece.channel == STDERR)];
                begun.extend(piece.data);
                for line in whole_lines(begun) {
                    Line::parse(&line).emit(&plugin);
                }
            }
        }
        let next = lives.wait_for(|now| now.as_ref().map(|now| now.number) != Some(instance.number));
        if next.await.is_err() {
            return;
        }
    }
}

/// Which of the two streams a piece is of.
const STDERR: i32 = 2;

/// Takes the whole lines off what has come.
fn whole_lines(begun: &mut Vec<u8>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(end) = begun
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|end| end + 1)
        .or_else(|| (begun.len() >= LINE_BYTES_MAX).then_some(LINE_BYTES_MAX))
    {
        let line: Vec<u8> = begun.drain(..end).collect();
        lines.push(String::from_utf8_lossy(&line).trim_end_matches('\n').to_string());
    }
    lines
}

#[cfg(test)]
mod tests {
    use executor::rotate::Rotator;

    use super::*;

    #[test]
    fn lines_that_come_in_pieces_are_put_together() {
        let mut begun = b"a\nbc".to_vec();
        assert_eq!((whole_lines(&mut begun), begun.as_slice()), (vec!["a".to_string()], &b"bc"[..]));
        begun.extend(vec![b'x'; LINE_BYTES_MAX]);
        assert_eq!((whole_lines(&mut begun)[0].len(), begun.len()), (LINE_BYTES_MAX, 2));
    }

    #[test]
    fn lines_are_read_once_across_files() {
        let dir = tempfile::tempdir().unwrap();
        let spec = LogSpec { file_bytes_max: 12, ..files(dir.path()) };
        let mut to = Rotator::open(spec).unwrap();
        to.write(b"old\n").unwrap();
        let mut tail = Tail::at_end(dir.path());
        assert!(tail.read().is_empty());
        to.write(b"one\nha").unwrap();
        assert_eq!(tail.read(), ["one"]);
        to.write(b"lf\nthree\n").unwrap();
        let mut lines = Vec::new();
        for _ in 0..4 {
            lines.extend(tail.read());
        }
        assert_eq!(lines, ["half", "three"]);
        assert!(tail.read().is_empty());
    }
}
