//! The mounts of this process, as `/proc` lists them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where something is mounted, as the system has mounted it.
pub struct MountPoints(Vec<PathBuf>);

impl MountPoints {
    pub fn now() -> io::Result<MountPoints> {
        Ok(MountPoints(parse(&std::fs::read_to_string("/proc/self/mountinfo")?).collect()))
    }

    /// Those strictly below `directory`.
    pub fn below(&self, directory: &Path) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(move |point| *point != directory && point.starts_with(directory))
    }
}

/// Where something is mounted strictly below `directory`.
pub fn below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(MountPoints::now()?.below(directory).cloned().collect())
}

fn parse(table: &str) -> impl Iterator<Item = PathBuf> {
    table.lines().filter_map(|line| Some(unescape(line.split(' ').nth(4)?)))
}

/// Spaces and their like are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read() {
        let table = "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:2 /x /mnt/with\\040space\\134 rw shared:1 - ext4 /dev/sdb rw\n";
        let points: Vec<PathBuf> = parse(table).collect();
        assert_eq!(points, [PathBuf::from("/"), PathBuf::from("/mnt/with space\\")]);
    }
}
