//! The web page: the files that `gateway/ui/check` builds from `page/`, as they are committed in `dist/`, with what HTTP says about
//! each of them.
//!
//! Here live the bytes, their types, their digests and the headers of every answer. What must never live here: a
//! router (that is in `http-gateway`), and anything that the page could ask an API for.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod folder;

use std::fmt;
use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;

pub use folder::{FILE_BYTES_MAX, FOLDER_HEADERS, Folder, FolderFile};

/// Most bytes of all files together, compressed: what a browser on a slow line has to wait for.
pub const GZIPPED_MAX: usize = 120 * 1024;

/// The path below which files are. Everything else below `/ui/` is a view, which the page itself finds by its address.
pub const ASSETS: &str = "assets/";

/// What every answer says. Nothing is loaded from anywhere else, nothing runs that is not in a file, and no other page may show
/// this one inside of itself.
pub const HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; \
         frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    // Kept, and asked about each time: a page must not talk to another release of the server than its own for long.
    ("cache-control", "no-cache"),
];

/// A file of the page.
pub struct Asset {
    path: &'static str,
    pub content_type: &'static str,
    pub plain: Form,
    pub gzipped: Form,
}

/// Bytes as they are sent, and what names exactly these bytes.
pub struct Form {
    pub bytes: Vec<u8>,
    /// A strong one: another compression has another.
    pub etag: String,
}

impl Form {
    fn new(bytes: Vec<u8>) -> Form {
        let digest = blake3::hash(&bytes).to_hex();
        Form { etag: format!("\"{}\"", &digest[..32]), bytes }
    }
}

impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asset").field("path", &self.path).finish_non_exhaustive()
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("etag", &self.etag).finish_non_exhaustive()
    }
}

impl Asset {
    fn new(path: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Asset {
        Asset { path, content_type, plain: Form::new(bytes.to_vec()), gzipped: Form::new(compressed(bytes)) }
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory takes what is written to it")
}

static FILES: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    [
        Asset::new("index.html", "text/html; charset=utf-8", include_bytes!("../dist/index.html")),
        Asset::new(
            "assets/app.js",
            "text/javascript; charset=utf-8",
            include_bytes!("../dist/assets/app.js"),
        ),
        Asset::new("assets/app.css", "text/css; charset=utf-8", include_bytes!("../dist/assets/app.css")),
        Asset::new("assets/icon.svg", "image/svg+xml", include_bytes!("../dist/assets/icon.svg")),
    ]
});

/// What is at this path below `/ui/`: a file, or the page, which finds the view. `None` for a file that there is not.
pub fn at(path: &str) -> Option<&'static Asset> {
    let wanted = if path.starts_with(ASSETS) { path } else { "index.html" };
    FILES.iter().find(|file| file.path == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_page_is_small() {
        let all: usize = FILES.iter().map(|file| file.gzipped.bytes.len()).sum();
        assert!(all <= GZIPPED_MAX, "{all} bytes gzipped");
    }

    #[test]
    fn every_file_that_was_built_is_served_and_no_other() {
        let dist = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
        let names = |dir: &std::path::Path| -> Vec<String> {
            let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            let files = entries.filter(|path| path.is_file());
            files.map(|path| path.strip_prefix(&dist).unwrap().to_str().unwrap().to_string()).collect()
        };
        let mut built = [names(&dist), names(&dist.join("assets"))].concat();
        built.sort();
        let mut served: Vec<_> = FILES.iter().map(|file| file.path).collect();
        served.sort_unstable();
        assert_eq!(served, built);
    }

    #[test]
    fn the_page_names_no_other_host_and_holds_no_script() {
        let page = at("").unwrap();
        let text = str::from_utf8(&page.plain.bytes).unwrap();
        for part in ["http://", "https://", "style=", "<style", " on"] {
            assert!(!text.contains(part), "{part}");
        }
        assert_eq!(text.matches("<script").count(), 1);
        assert!(text.contains("<script type=\"module\" src=\"/ui/assets/app.js\"></script>"));
    }

    #[test]
    fn views_are_the_page_and_files_are_themselves() {
        assert_eq!(at("jobs/a.b@default").unwrap().path, "index.html");
        assert_eq!(at("assets/app.js").unwrap().path, "assets/app.js");
        assert!(at("assets/app.js.map").is_none());
        assert!(at("assets/").is_none());
    }
}
