//! A page of the operator's own in place of ours: a folder that is served as it is.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::Form;

/// Largest file that is served, in bytes: each answer holds the whole of it.
pub const FILE_BYTES_MAX: u64 = 32 << 20;

/// The page itself, which finds its views by their addresses.
const PAGE: &str = "index.html";

/// What every answer says. As [`crate::HEADERS`], but for what pages that others have built need: styles inside of elements, pictures
/// in addresses, and other agents, whose logs and files they read.
pub const FOLDER_HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; connect-src *; img-src 'self' data:; font-src 'self'; script-src 'self'; \
         style-src 'self' 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'",
    ),
    crate::HEADERS[1],
    crate::HEADERS[2],
    crate::HEADERS[3],
];

/// Types by the ends of names. A header forbids browsers to guess, so what is not here can only be saved.
const TYPES: [(&str, &str); 19] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("txt", "text/plain; charset=utf-8"),
    ("xml", "text/xml; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("wasm", "application/wasm"),
];
const UNKNOWN: &str = "application/octet-stream";

/// A folder with a page in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Without links.
    root: PathBuf,
}

/// A file of it, as it was read.
pub struct FolderFile {
    pub content_type: &'static str,
    pub form: Form,
}

impl Folder {
    /// # Errors
    /// It is not there, or has no page.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let root = fs::canonicalize(path)?;
        if !root.join(PAGE).is_file() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("it has no file {PAGE}")));
        }
        Ok(Folder { root })
    }

    /// What is at this path below `/ui/`: a file of the folder, or the page, which finds the view. `None` for what is not in the
    /// folder, whatever leads there. Reads the disk.
    ///
    /// # Errors
    /// It cannot be read, or is larger than [`FILE_BYTES_MAX`].
    pub fn at(&self, path: &str) -> io::Result<Option<FolderFile>> {
        let wanted = Path::new(path);
        // An absolute path would take the place of the folder's.
        if path.contains('\0') || !wanted.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(None);
        }
        match fs::canonicalize(self.root.join(wanted)) {
            Ok(found) if !found.starts_with(&self.root) => Ok(None),
            Ok(found) if found.is_file() => self.read(&found),
            Ok(_) => self.page(),
            Err(error) if is_nothing(&error) => self.page(),
            Err(error) => Err(error),
        }
    }

    fn page(&self) -> io::Result<Option<FolderFile>> {
        match fs::canonicalize(self.root.join(PAGE)) {
            Ok(page) if page.starts_with(&self.root) => self.read(&page),
            Ok(_) => Ok(None),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Option<FolderFile>> {
        let mut bytes = Vec::new();
        // It may grow while it is read.
        File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let why = format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(Some(FolderFile { content_type: content_type(path), form: Form::new(bytes) }))
    }
}

/// There is no such file. A name may be longer than a file system has any.
fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

fn content_type(path: &Path) -> &'static str {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == end).map_or(UNKNOWN, |(_, content_type)| content_type)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn text(folder: &Folder, path: &str) -> Option<String> {
        let found = folder.at(path).unwrap()?;
        Some(String::from_utf8(found.form.bytes).unwrap())
    }

    #[test]
    fn files_are_served_and_everything_else_is_the_page() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Folder::open(&dir.path().join("none")).is_err());
        assert_eq!(Folder::open(dir.path()).unwrap_err().to_string(), "it has no file index.html");
        let home = dir.path().join("page");
        fs::create_dir_all(home.join("assets/sub")).unwrap();
        fs::write(home.join("index.html"), "page").unwrap();
        fs::write(home.join("assets/app.JS"), "script").unwrap();
        fs::write(home.join("assets/odd"), "bytes").unwrap();
        let folder = Folder::open(&home).unwrap();
        assert_eq!(text(&folder, "assets/app.JS").as_deref(), Some("script"));
        for view in ["", "jobs/a.b@default", "assets", "assets/sub/", "index.html/x", &"x".repeat(300)] {
            assert_eq!(text(&folder, view).as_deref(), Some("page"), "{view}");
        }
        let types = ["index.html", "assets/app.JS", "assets/odd"]
            .map(|path| folder.at(path).unwrap().unwrap().content_type);
        assert_eq!(types, [TYPES[0].1, TYPES[1].1, UNKNOWN]);
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("page");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("index.html"), "page").unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        symlink("../secret", home.join("link")).unwrap();
        symlink("..", home.join("up")).unwrap();
        symlink("index.html", home.join("inside")).unwrap();
        let folder = Folder::open(&home).unwrap();
        let secret = dir.path().join("secret").display().to_string();
        for path in ["../secret", "x/../../secret", "..", "link", "up", "up/secret", "a\0b", secret.as_str()]
        {
            assert_eq!(text(&folder, path), None, "{path}");
        }
        assert_eq!(text(&folder, "inside").as_deref(), Some("page"));
    }

    #[test]
    fn a_file_that_is_too_large_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("index.html"), "page").unwrap();
        File::create(dir.path().join("large.js")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        let refused = Folder::open(dir.path()).unwrap().at("large.js").err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    }
}
