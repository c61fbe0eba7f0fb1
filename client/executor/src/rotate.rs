//! Log files that never grow beyond a size, of which only the newest are kept.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::spec::LogSpec;

/// This close to the limit only whole lines are put into a file: so that a line is not torn apart between
/// two files, unless it alone is longer than this.
const WHOLE_LINES_WITHIN: u64 = 32 * 1024;

/// Writes one stream of a task. Continues the newest file that is there.
#[derive(Debug)]
pub struct Rotator {
    spec: LogSpec,
    index: u64,
    file: File,
    size: u64,
}

impl Rotator {
    pub fn open(mut spec: LogSpec) -> io::Result<Rotator> {
        // A file that can hold nothing would be followed by another for ever.
        spec.file_bytes_max = spec.file_bytes_max.max(1);
        let index = indexes(&spec.directory, &spec.name)?.pop().unwrap_or(0);
        let (index, file, size) = open_from(&spec, index)?;
        Ok(Rotator { spec, index, file, size })
    }

    /// The number of the file that is written, and how many bytes it holds.
    pub fn position(&self) -> (u64, u64) {
        (self.index, self.size)
    }

    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let take = self.fitting(bytes);
            if take == 0 {
                self.rotate()?;
                continue;
            }
            self.file.write_all(&bytes[..take])?;
            self.size += take as u64;
            bytes = &bytes[take..];
        }
        Ok(())
    }

    /// How much of `bytes` belongs into the current file; 0 asks for the next one.
    fn fitting(&self, bytes: &[u8]) -> usize {
        let room = self.spec.file_bytes_max.saturating_sub(self.size);
        if bytes.len() as u64 <= room {
            return bytes.len();
        }
        let room = room as usize;
        match bytes[..room].iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => newline + 1,
            None if (room as u64) < WHOLE_LINES_WITHIN && self.size > 0 => 0,
            None => room,
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        (self.index, self.file, self.size) = open_from(&self.spec, self.index + 1)?;
        let kept = indexes(&self.spec.directory, &self.spec.name)?;
        let surplus = kept.len().saturating_sub(self.spec.files_max.max(1) as usize);
        for index in &kept[..surplus] {
            std::fs::remove_file(path(&self.spec, *index)).ok();
        }
        Ok(())
    }
}

/// The first file from `index` on that is not a directory and not full.
fn open_from(spec: &LogSpec, mut index: u64) -> io::Result<(u64, File, u64)> {
    loop {
        let path = path(spec, index);
        let blocked = match std::fs::symlink_metadata(&path) {
            // The directory is the task's to write: a link there may lead anywhere, so it is not followed.
            Ok(found) => !found.is_file() || found.len() >= spec.file_bytes_max,
            Err(_) => false,
        };
        if !blocked {
            let mut options = OpenOptions::new();
            let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
            let file = options.append(true).create(true).mode(0o644).custom_flags(no_follow).open(&path)?;
            let size = file.metadata()?.len();
            return Ok((index, file, size));
        }
        index += 1;
    }
}

fn path(spec: &LogSpec, index: u64) -> PathBuf {
    spec.directory.join(format!("{}.{index}", spec.name))
}

/// The numbers `n` of the files `<name>.<n>` in `directory`, lowest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn indexes(directory: &Path, name: &str) -> io::Result<Vec<u64>> {
    let mut found: Vec<u64> = std::fs::read_dir(directory)?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix('.')?.parse().ok())
        .collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(directory: &Path, files_max: u64, file_bytes_max: u64) -> LogSpec {
        LogSpec { directory: directory.into(), name: "web.stdout".into(), files_max, file_bytes_max }
    }

    fn read(directory: &Path, index: u64) -> String {
        std::fs::read_to_string(directory.join(format!("web.stdout.{index}"))).unwrap()
    }

    #[test]
    fn only_the_newest_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut rotator = Rotator::open(spec(dir.path(), 2, 10)).unwrap();
        for n in 0..5 {
            rotator.write(format!("line {n}\n").as_bytes()).unwrap();
        }
        assert_eq!(indexes(dir.path(), "web.stdout").unwrap(), [3, 4]);
        assert_eq!((read(dir.path(), 3), read(dir.path(), 4)), ("line 3\n".into(), "line 4\n".into()));
    }

    #[test]
    fn lines_are_kept_whole_and_giants_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut rotator = Rotator::open(spec(dir.path(), 10, 10)).unwrap();
        rotator.write(b"ab\ncd\nefghij\n").unwrap();
        assert_eq!((read(dir.path(), 0), read(dir.path(), 1)), ("ab\ncd\n".into(), "efghij\n".into()));
        rotator.write(&[b'x'; 25]).unwrap();
        assert_eq!(read(dir.path(), 2), "xxxxxxxxxx");
        assert_eq!(read(dir.path(), 4), "xxxxx");
    }

    #[test]
    fn writing_goes_on_where_an_earlier_writer_stopped() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("web.stdout.6"), "full enough").unwrap();
        std::fs::write(dir.path().join("web.stdout.x"), "").unwrap();
        std::fs::create_dir(dir.path().join("web.stdout.7")).unwrap();
        Rotator::open(spec(dir.path(), 10, 10)).unwrap().write(b"a").unwrap();
        Rotator::open(spec(dir.path(), 10, 10)).unwrap().write(b"b").unwrap();
        assert_eq!(read(dir.path(), 8), "ab");
    }
}
