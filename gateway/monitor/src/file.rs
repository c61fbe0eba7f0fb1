//! The log file of an agent, and when a new one is begun.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// What the file is called where only a folder is given.
const NAME: &str = "nomad.log";

/// Where the log goes and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileSettings {
    pub path: PathBuf,
    /// A file with more bytes is put away; 0 for no limit.
    pub rotate_bytes: u64,
    /// A file that was written to for longer is put away.
    pub rotate_after: Duration,
    /// Files put away that are kept: all with 0, none if negative.
    pub keep: i64,
    /// The permissions of a new file.
    pub mode: u32,
}

impl LogFileSettings {
    /// The file that is written to; a path that is a folder, or ends like one, gets a name in it.
    pub fn file(&self) -> PathBuf {
        let ends_as_folder = self.path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if ends_as_folder || self.path.is_dir() { self.path.join(NAME) } else { self.path.clone() }
    }
}

/// Expects whole lines, one with each write: a line is never split over two files.
#[derive(Debug)]
pub struct LogFile {
    settings: LogFileSettings,
    path: PathBuf,
    file: File,
    bytes: u64,
    begun: Instant,
    /// Said once, not with every line.
    is_stuck: bool,
}

impl LogFile {
    /// Goes on with a file that is there.
    ///
    /// # Errors
    /// It cannot be opened, or its folder cannot be made.
    pub fn open(settings: LogFileSettings) -> io::Result<LogFile> {
        let path = settings.file();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let (file, bytes) = open(&path, settings.mode)?;
        Ok(LogFile { settings, path, file, bytes, begun: Instant::now(), is_stuck: false })
    }

    fn is_full(&self, more: usize) -> bool {
        let limit = self.settings.rotate_bytes;
        let is_long = limit > 0 && self.bytes.saturating_add(more as u64) > limit;
        self.bytes > 0 && (is_long || self.begun.elapsed() >= self.settings.rotate_after)
    }

    /// Puts the file away under the moment at which it was closed.
    fn rotate(&mut self) -> io::Result<()> {
        let (stem, end) = self.name_parts();
        let mut name = stem;
        name.push(Timestamp::now().as_nanosecond().to_string());
        name.push(end);
        match fs::rename(&self.path, self.path.with_file_name(name)) {
            // It was put away before, and then no new one could be opened.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        (self.file, self.bytes) = open(&self.path, self.settings.mode)?;
        self.begun = Instant::now();
        self.prune()
    }

    /// Around the moment in the name of a file that was put away.
    fn name_parts(&self) -> (OsString, OsString) {
        let mut stem = self.path.file_stem().unwrap_or_default().to_os_string();
        stem.push("-");
        let mut end = OsString::new();
        if let Some(extension) = self.path.extension() {
            end.push(".");
            end.push(extension);
        }
        (stem, end)
    }

    fn prune(&self) -> io::Result<()> {
        let keep = match self.settings.keep {
            0 => return Ok(()),
            keep => usize::try_from(keep).unwrap_or(0),
        };
        let mut old = self.put_away()?;
        old.sort();
        let excess = old.len().saturating_sub(keep);
        old.into_iter().take(excess).try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// With the moment of each, in nanoseconds.
    fn put_away(&self) -> io::Result<Vec<(u128, PathBuf)>> {
        let (stem, end) = self.name_parts();
        let (stem, end) = (stem.to_string_lossy(), end.to_string_lossy());
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let moment = name.strip_prefix(&*stem).and_then(|rest| rest.strip_suffix(&*end));
            if let Some(moment) = moment.and_then(|moment| moment.parse().ok()) {
                found.push((moment, entry.path()));
            }
        }
        Ok(found)
    }
}

fn open(path: &Path, mode: u32) -> io::Result<(File, u64)> {
    let file = File::options().append(true).create(true).mode(mode).open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

impl Write for LogFile {
    /// All of the line or nothing. A file that cannot be put away is written on: a line in a long file is worth more than
    /// none.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.is_full(line.len()) {
            let rotated = self.rotate();
            if let (Err(error), false) = (&rotated, self.is_stuck) {
                // What logs is what fails here.
                eprintln!("{} cannot be rotated: {error}", self.path.display());
            }
            self.is_stuck = rotated.is_err();
        }
        if let Err(error) = self.file.write_all(line) {
            self.file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(path: PathBuf, keep: i64) -> LogFileSettings {
        LogFileSettings { path, rotate_bytes: 10, rotate_after: Duration::from_secs(3600), keep, mode: 0o640 }
    }

    fn texts(folder: &Path) -> Vec<String> {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn a_full_file_is_put_away_and_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("agent-notes.log");
        let mut log = LogFile::open(settings(folder.path().join("agent.log"), 2)).unwrap();
        for line in ["one one\n", "two two\n", "three three three\n", "four\n", "five five\n"] {
            fs::write(&other, "not a log").unwrap();
            log.write_all(line.as_bytes()).unwrap();
        }
        let kept = ["three three three\n", "four\n", "not a log", "five five\n"];
        assert_eq!(texts(folder.path()), kept, "what is put away carries the moment at which it was");
    }

    #[test]
    fn all_are_kept_or_none() {
        for (keep, files) in [(0, 3), (-1, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = LogFile::open(settings(folder.path().to_path_buf(), keep)).unwrap();
            for _ in 0..3 {
                log.write_all(b"123456789\n").unwrap();
            }
            assert_eq!(texts(folder.path()).len(), files, "{keep}");
            assert!(folder.path().join(NAME).exists());
        }
    }

    #[test]
    fn a_file_is_put_away_after_its_time_and_one_that_is_there_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let long = LogFileSettings { rotate_bytes: 0, ..settings(folder.path().join("a/agent.log"), 0) };
        LogFile::open(long.clone()).unwrap().write_all(b"first\n").unwrap();
        LogFile::open(long.clone()).unwrap().write_all(b"second\n").unwrap();
        assert_eq!(texts(&folder.path().join("a")), ["first\nsecond\n"]);
        let over = LogFileSettings { rotate_after: Duration::ZERO, ..long };
        LogFile::open(over).unwrap().write_all(b"third\n").unwrap();
        assert_eq!(texts(&folder.path().join("a")), ["first\nsecond\n", "third\n"]);
    }
}
