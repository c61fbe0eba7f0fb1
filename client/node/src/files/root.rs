use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use api::AllocFileInfo;
use model::document::Timestamp;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::FsError;

/// Bytes that are read to find out what a file holds.
const SNIFF_BYTES: usize = 512;

/// The directory of one allocation as seen from outside. Every path is resolved by the kernel below it:
/// `..` and links are followed inside of it and never out of it, whatever a task does in the meantime.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    directory: OwnedFd,
}

impl Root {
    /// # Errors
    /// [`FsError::Missing`] when the allocation has no directory (any more).
    pub fn open(path: &Path) -> Result<Root, FsError> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let missing = |_| FsError::Missing("the allocation's directory does not exist".to_string());
        let path = path.canonicalize().map_err(missing)?;
        let directory =
            rustix::fs::openat(CWD, &path, flags, Mode::empty()).map_err(|errno| missing(errno.into()))?;
        Ok(Root { path, directory })
    }

    fn open_below(&self, path: &str, flags: OFlags) -> Result<File, FsError> {
        let inside = path.trim_start_matches('/');
        let inside = if inside.is_empty() { "." } else { inside };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        match rustix::fs::openat2(&self.directory, inside, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::XDEV | Errno::LOOP) => Err(FsError::Escapes),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(FsError::NotFound(path.to_string())),
            Err(errno) => Err(failed(path, errno.into())),
        }
    }

    /// Opens a file for reading. Secrets and directories are rejected.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn open_file(&self, path: &str) -> Result<File, FsError> {
        // A pipe that nobody writes to must not hold up the reader.
        let file = self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        // By where it really lies, so that a link to a secret is one too.
        let real = std::fs::read_link(proc_path(&file)).map_err(|error| failed(path, error))?;
        let inside = real.strip_prefix(&self.path).map_err(|_| FsError::Escapes)?;
        let mut parts = inside.components().filter_map(|part| part.as_os_str().to_str());
        let (first, second) = (parts.next(), parts.next());
        if first != Some("alloc") && matches!(second, Some("secrets" | "private")) {
            return Err(FsError::Secret(path.to_string()));
        }
        let kind = file.metadata().map_err(|error| failed(path, error))?;
        if !kind.is_file() {
            return Err(FsError::Invalid(format!("file \"{path}\" is not a regular file")));
        }
        Ok(file)
    }

    /// What a directory holds, by name.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn list(&self, path: &str) -> Result<Vec<AllocFileInfo>, FsError> {
        let directory = self.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let entries = std::fs::read_dir(proc_path(&directory)).map_err(|error| failed(path, error))?;
        let mut found: Vec<AllocFileInfo> = entries
            .flatten()
            // What vanished since it was listed is not listed.
            .filter_map(|entry| {
                Some(info(entry.file_name().to_string_lossy().into(), &entry.metadata().ok()?))
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// One file or directory, with a guess at what it contains.
    ///
    /// # Errors
    /// See [`FsError`].
    pub fn stat(&self, path: &str) -> Result<AllocFileInfo, FsError> {
        let file = self.open_below(path, OFlags::PATH)?;
        let metadata = file.metadata().map_err(|error| failed(path, error))?;
        let name = Path::new(path).file_name().map_or("/".into(), |name| name.to_string_lossy().into_owned());
        let mut info = info(name, &metadata);
        if metadata.is_file() {
            let content = self.open_file(path).map(|file| sniff(path, &file)).unwrap_or_default();
            info.content_type = content;
        }
        Ok(info)
    }
}

pub(super) fn failed(path: &str, source: io::Error) -> FsError {
    FsError::Io { path: path.to_string(), source }
}

fn proc_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn info(name: String, metadata: &std::fs::Metadata) -> AllocFileInfo {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    AllocFileInfo {
        name,
        is_dir: metadata.is_dir(),
        size: metadata.len() as i64,
        file_mode: mode_text(metadata),
        mod_time: Timestamp::from(base::Time(modified.map_or(0, |since| since.as_nanos() as i64))),
        content_type: String::new(),
    }
}

/// The mode as Go prints it: letters for what it is, then nine for who may do what.
fn mode_text(metadata: &std::fs::Metadata) -> String {
    let (kind, mode) = (metadata.file_type(), metadata.permissions().mode());
    let letters = [
        (kind.is_dir(), "d"),
        (kind.is_symlink(), "L"),
        (kind.is_block_device() || kind.is_char_device(), "D"),
        (kind.is_fifo(), "p"),
        (kind.is_socket(), "S"),
        (mode & 0o4000 != 0, "u"),
        (mode & 0o2000 != 0, "g"),
        (kind.is_char_device(), "c"),
        (mode & 0o1000 != 0, "t"),
    ];
    let mut text: String = letters.iter().filter(|(holds, _)| *holds).map(|(_, letter)| *letter).collect();
    if text.is_empty() {
        text.push('-');
    }
    for (bit, letter) in (0..9).rev().zip("rwxrwxrwx".chars()) {
        text.push(if mode & (1 << bit) != 0 { letter } else { '-' });
    }
    text
}

fn sniff(path: &str, file: &File) -> String {
    if path.ends_with(".json") {
        return "application/json".to_string();
    }
    let mut start = [0; SNIFF_BYTES];
    let length = file.read_at(&mut start, 0).unwrap_or(0);
    let start = &start[..length];
    let magic: [(&[u8], &str); 6] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"\x1f\x8b\x08", "application/x-gzip"),
        (b"PK\x03\x04", "application/zip"),
    ];
    if let Some((_, kind)) = magic.iter().find(|(magic, _)| start.starts_with(magic)) {
        return (*kind).to_string();
    }
    let opening = start.trim_ascii_start().get(..9).unwrap_or_default().to_ascii_lowercase();
    if opening.starts_with(b"<!doctype") || opening.starts_with(b"<html") {
        return "text/html; charset=utf-8".to_string();
    }
    let binary =
        start.iter().any(|byte| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b));
    if binary { "application/octet-stream" } else { "text/plain; charset=utf-8" }.to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("alloc1");
        for sub in ["alloc/logs", "web/local", "web/secrets"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        std::fs::write(base.path().join("outside"), "x").unwrap();
        std::fs::write(dir.join("alloc/logs/web.stdout.0"), "hello").unwrap();
        std::fs::write(dir.join("web/secrets/token"), "s3cret").unwrap();
        std::fs::write(dir.join("web/local/a.json"), "{}").unwrap();
        symlink("../secrets/token", dir.join("web/local/inner")).unwrap();
        symlink("../../alloc/logs/web.stdout.0", dir.join("web/local/log")).unwrap();
        symlink("/etc/passwd", dir.join("web/local/absolute")).unwrap();
        symlink("../../../outside", dir.join("web/local/up")).unwrap();
        let root = Root::open(&dir).unwrap();
        (base, root)
    }

    #[test]
    fn no_path_escapes() {
        let (_base, root) = tree();
        for path in
            ["../outside", "web/../../outside", "/web/local/absolute", "web/local/up", "../alloc1/web"]
        {
            for error in [root.open_file(path).unwrap_err(), root.stat(path).unwrap_err()] {
                assert!(matches!(error, FsError::Escapes), "{path}: {error}");
            }
        }
        assert!(root.open_file("web/local/log").is_ok(), "links inside are followed");
        assert!(matches!(root.list("..").unwrap_err(), FsError::Escapes));
    }

    #[test]
    fn secrets_are_not_read_not_even_through_a_link() {
        let (_base, root) = tree();
        for path in ["web/secrets/token", "web/local/inner", "/web/local/../secrets/token"] {
            let error = root.open_file(path).unwrap_err();
            assert_eq!(error.to_string(), format!("Reading secret file prohibited: {path}"));
            assert_eq!(error.status(), 403);
        }
    }

    #[test]
    fn directories_are_listed_and_files_described() {
        let (_base, root) = tree();
        let names: Vec<String> = root.list("/").unwrap().into_iter().map(|info| info.name).collect();
        assert_eq!(names, ["alloc", "web"]);
        let info = root.stat("/web/local/a.json").unwrap();
        assert_eq!((info.name.as_str(), info.size, info.is_dir), ("a.json", 2, false));
        assert_eq!(info.content_type, "application/json");
        assert!(info.file_mode.starts_with("-rw"), "{}", info.file_mode);
        assert!(root.stat("web").unwrap().file_mode.starts_with("drwx"));
        assert!(root.stat("").unwrap().is_dir);
        assert_eq!(root.stat("alloc/logs/web.stdout.0").unwrap().content_type, "text/plain; charset=utf-8");
        assert_eq!(root.stat("nope").unwrap_err().status(), 404);
        assert_eq!(root.open_file("web").unwrap_err().status(), 400);
    }
}
