//! A line for each event, in a file that is put aside when it is full.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::target::{Outgoing, Undelivered};

/// How much of the end of a file is looked at for its last line: the longest event is far shorter.
const TAIL: u64 = 8 << 20;

pub(crate) struct File {
    path: PathBuf,
    open: fs::File,
    length: u64,
    max_bytes: u64,
    max_files: u32,
}

impl File {
    /// `NAME.ndjson` in the directory: a name has nothing in it that would lead elsewhere.
    pub(crate) fn open(directory: &Path, name: &str, max_bytes: u64, max_files: u32) -> Result<File, String> {
        let path = directory.join(format!("{name}.ndjson"));
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(directory).map_err(failed)?;
        let mut open = create(&path).map_err(failed)?;
        let length = without_torn_line(&mut open).map_err(failed)?;
        Ok(File { path, open, length, max_bytes, max_files })
    }

    pub(crate) fn deliver(&mut self, event: &Outgoing) -> Result<(), Undelivered> {
        let line = [&event.body[..], b"\n"].concat();
        self.append(&line).map_err(|error| {
            let text = format!("{}: {error}", self.path.display());
            // What was written of the line is not followed by another one.
            let _torn =
                self.open.set_len(self.length).and_then(|()| self.open.seek(SeekFrom::End(0)).map(drop));
            Undelivered::Later(text)
        })
    }

    pub(crate) async fn flush(&mut self) -> Result<(), String> {
        let open = self.open.try_clone().map_err(|error| error.to_string())?;
        let synced = tokio::task::spawn_blocking(move || open.sync_data()).await;
        synced
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + line.len() as u64 > self.max_bytes {
            self.rotate()?;
        }
        self.open.write_all(line)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The file becomes `.1`, that `.2`, and so on; the last one goes.
    fn rotate(&mut self) -> io::Result<()> {
        self.open.sync_data()?;
        let numbered = |number: u32| match number {
            0 => self.path.clone(),
            number => PathBuf::from(format!("{}.{number}", self.path.display())),
        };
        let last = self.max_files - 1;
        match fs::remove_file(numbered(last)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for number in (0..last).rev() {
            match fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.open = create(&self.path)?;
        self.length = 0;
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// A line that a crash has left without its end is sent again, whole.
fn without_torn_line(open: &mut fs::File) -> io::Result<u64> {
    let length = open.metadata()?.len();
    let from = length.saturating_sub(TAIL);
    let mut tail = Vec::new();
    open.seek(SeekFrom::Start(from))?;
    open.read_to_end(&mut tail)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n').map_or(from, |at| from + at as u64 + 1);
    if end < length {
        open.set_len(end)?;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u32) -> Outgoing {
        let (id, body) = (format!("{at}.0@9f3c2a71"), format!("{{\"id\":{at:04}}}").into());
        Outgoing { id, body, ..Outgoing::default() }
    }

    fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(ToString::to_string).collect()
    }

    #[test]
    fn a_full_file_is_put_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        // Two lines of twelve bytes.
        let mut file = File::open(dir.path(), "a", 24, 2).unwrap();
        for at in 1..=5 {
            file.deliver(&event(at)).unwrap();
        }
        assert_eq!(lines(&dir.path().join("a.ndjson")), ["{\"id\":0005}"]);
        assert_eq!(lines(&dir.path().join("a.ndjson.1")), ["{\"id\":0003}", "{\"id\":0004}"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn one_file_alone_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = File::open(dir.path(), "a", 24, 1).unwrap();
        for at in 1..=3 {
            file.deliver(&event(at)).unwrap();
        }
        assert_eq!(lines(&dir.path().join("a.ndjson")), ["{\"id\":0003}"]);
    }

    #[test]
    fn a_torn_line_is_cut_off_when_it_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ndjson");
        fs::write(&path, "{\"id\":1}\n{\"id\"").unwrap();
        let mut file = File::open(dir.path(), "a", 1 << 20, 2).unwrap();
        file.deliver(&event(2)).unwrap();
        assert_eq!(lines(&path), ["{\"id\":1}", "{\"id\":0002}"]);
    }
}
