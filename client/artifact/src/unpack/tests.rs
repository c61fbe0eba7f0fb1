//! Hostile archives, and one of each kind that is not.

use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::below::Links;

const USUAL_MODE: u32 = 0o640;

fn limits(files: u64, bytes: u64) -> Limits {
    Limits { decompression_file_count_limit: files, decompression_size_limit: bytes, ..Limits::usual() }
}

/// A directory to unpack into, beside one that nothing may be written to.
struct Place {
    base: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("in")).unwrap();
        std::fs::create_dir(base.path().join("out")).unwrap();
        std::fs::write(base.path().join("out/secret"), "secret").unwrap();
        Place { base }
    }

    fn inside(&self) -> PathBuf {
        self.base.path().join("in")
    }

    fn unpack_named(&self, name: &str, archive: &[u8], limits: &Limits) -> Result<(), FetchError> {
        let path = self.base.path().join("archive");
        std::fs::write(&path, archive).unwrap();
        let format = format(None, name).unwrap().unwrap();
        let into = Below::new(&self.inside(), Links::Refused).unwrap();
        let result = unpack(format, File::open(&path).unwrap(), name, &into, limits);
        let secret = self.base.path().join("out/secret");
        assert_eq!(std::fs::read(&secret).unwrap(), b"secret", "{name}");
        assert_eq!(secret.metadata().unwrap().nlink(), 1);
        assert_eq!(std::fs::read_dir(self.base.path().join("out")).unwrap().count(), 1);
        let mut beside: Vec<_> =
            std::fs::read_dir(self.base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        assert_eq!(beside, ["archive", "in", "out"]);
        result
    }

    fn unpack(&self, archive: &[u8]) -> Result<(), FetchError> {
        self.unpack_named("a.tar", archive, &Limits::usual())
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.inside().join(path)).unwrap()
    }
}

/// An entry, its name and target taken as they are: the crate's own ways reject what is hostile.
fn entry(kind: EntryType, name: &str, target: &str, mode: u32, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let raw = header.as_old_mut();
    raw.name[..name.len()].copy_from_slice(name.as_bytes());
    raw.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    header.set_mtime(1_000_000_000);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(EntryType::Regular, name, "", USUAL_MODE, content)
}

fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn compressed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(0);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        }
    }
}

fn zip_of(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
        if mode & KIND == LINK {
            writer.add_symlink(*name, std::str::from_utf8(content).unwrap(), options).unwrap();
        } else {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn formats_are_known_by_names_and_by_the_option() {
    for (name, expected) in [
        ("a.tar.gz", Some(Format::Tar(Compression::Gzip))),
        ("a.b.tgz", Some(Format::Tar(Compression::Gzip))),
        ("a.tar", Some(Format::Tar(Compression::None))),
        ("a.gz", Some(Format::Single(Compression::Gzip))),
        ("a.zip", Some(Format::Zip)),
        ("a.txt", None),
        ("zip", None),
        (".zip", None),
        ("", None),
    ] {
        assert_eq!(format(None, name).unwrap(), expected, "{name}");
        assert_eq!(format(Some("false"), name).unwrap(), None);
        assert_eq!(format(Some("zip"), name).unwrap(), Some(Format::Zip));
    }
    assert!(format(Some("rar"), "a.zip").unwrap_err().to_string().contains("\"rar\""));
}

#[test]
fn every_format_is_unpacked() {
    let archive = tar(&[
        entry(EntryType::Directory, "dir/", "", 0o555, b""),
        file("dir/file", b"hello"),
        entry(EntryType::Regular, "dir/run", "", 0o4755, b"#!"),
        entry(EntryType::Symlink, "dir/link", "file", 0o777, b""),
        entry(EntryType::Link, "hard", "dir/file", 0o777, b""),
        file("deep/er/file", b"deep"),
    ]);
    use Compression::{Bzip2, Gzip, None, Xz, Zstd};
    for (ending, compression) in [
        ("tar", None),
        ("tar.gz", Gzip),
        ("tgz", Gzip),
        ("tar.bz2", Bzip2),
        ("tbz2", Bzip2),
        ("tar.xz", Xz),
        ("txz", Xz),
        ("tar.zst", Zstd),
        ("tzst", Zstd),
    ] {
        let place = Place::new();
        let bytes = compressed(compression, &archive);
        place.unpack_named(&format!("a.{ending}"), &bytes, &Limits::usual()).unwrap();
        assert_eq!(place.read("dir/link"), "hello", "{ending}");
        assert_eq!(place.read("hard"), "hello");
        assert_eq!(place.read("deep/er/file"), "deep");
        let of = |path: &str| place.inside().join(path).metadata().unwrap();
        assert_eq!(of("dir/file").mode() & 0o7777, USUAL_MODE);
        assert_eq!(of("dir/run").mode() & 0o7777, 0o755, "without the bit that lends rights");
        assert_eq!(of("dir").mode() & 0o7777, 0o755, "it can be removed again");
        assert_eq!(of("dir/file").mtime(), 1_000_000_000);
        assert_eq!(of("hard").nlink(), 1, "a file of its own");
    }
    for (ending, compression) in [("gz", Gzip), ("bz2", Bzip2), ("xz", Xz), ("zst", Zstd)] {
        let place = Place::new();
        // Two streams, one after the other, are one file.
        let bytes = [compressed(compression, b"hello "), compressed(compression, b"world")].concat();
        place.unpack_named(&format!("a.txt.{ending}"), &bytes, &Limits::usual()).unwrap();
        assert_eq!(place.read("a.txt"), "hello world", "{ending}");
    }
    let place = Place::new();
    let entries: [(&str, u32, &[u8]); 3] =
        [("dir/file", 0o100_640, b"hello"), ("run", 0o104_755, b"#!"), ("link", 0o120_777, b"dir/file")];
    place.unpack_named("a.zip", &zip_of(&entries), &Limits::usual()).unwrap();
    assert_eq!(place.read("link"), "hello");
    assert_eq!(place.inside().join("run").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn names_and_links_that_lead_out_are_rejected() {
    let link = |name: &str, target: &str| entry(EntryType::Symlink, name, target, 0o777, b"");
    for (what, entries) in [
        ("dots", vec![file("../out/secret", b"x")]),
        ("dots inside", vec![file("a/../../out/secret", b"x")]),
        ("absolute", vec![file("/tmp/sojourn-artifact-test", b"x")]),
        ("absolute link", vec![link("a", "/etc/passwd")]),
        ("link out", vec![link("a", "../out/secret")]),
        ("deep link out", vec![link("d/a", "../../out/secret")]),
        ("hard link out", vec![entry(EntryType::Link, "a", "../out/secret", 0o777, b"")]),
        ("absolute hard link", vec![entry(EntryType::Link, "a", "/etc/passwd", 0o777, b"")]),
        ("file through a link", vec![link("a", "b"), file("b/x", b""), file("a/y", b"x")]),
        ("hard link through a link", vec![link("a", "b"), entry(EntryType::Link, "c", "a", 0o777, b"")]),
        ("no target", vec![link("a", "")]),
    ] {
        let place = Place::new();
        let error = place.unpack(&tar(&entries)).expect_err(what);
        assert!(matches!(error, FetchError::Failed(_)), "{what}: {error}");
    }
    assert!(!Path::new("/tmp/sojourn-artifact-test").exists());
    // Two links that are harmless by their texts lead out together; a file through them does not get there.
    let place = Place::new();
    let chain = [link("d/up", ".."), link("a", "d/up/../out"), file("a/secret", b"x")];
    assert!(place.unpack(&tar(&chain)).is_err());
    for name in ["../out/secret", "/etc/cron.d/x", "a/../../out/secret"] {
        let place = Place::new();
        let archive = zip_of(&[(name, 0o100_644, b"x")]);
        assert!(place.unpack_named("a.zip", &archive, &Limits::usual()).is_err(), "{name}");
    }
    let place = Place::new();
    let archive = zip_of(&[("a", 0o120_777, b"../out/secret")]);
    assert!(place.unpack_named("a.zip", &archive, &Limits::usual()).is_err());
}

#[test]
fn links_that_were_there_before_are_not_followed() {
    let place = Place::new();
    symlink("../out", place.inside().join("dir")).unwrap();
    symlink("../out/secret", place.inside().join("file")).unwrap();
    assert!(place.unpack(&tar(&[file("dir/secret", b"x")])).is_err());
    place.unpack(&tar(&[file("file", b"x")])).unwrap();
    assert_eq!(place.read("file"), "x", "replaced");
}

#[test]
fn devices_and_pipes_are_rejected() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::new(b'?')] {
        let place = Place::new();
        let error = place.unpack(&tar(&[entry(kind, "a", "", 0o666, b"")])).unwrap_err().to_string();
        assert!(error.contains("no file"), "{error}");
        assert_eq!(std::fs::read_dir(place.inside()).unwrap().count(), 0);
    }
}

#[test]
fn bombs_end_at_the_limits() {
    let zeros = vec![0; 1 << 20];
    let big = tar(&[file("big", &zeros)]);
    for (name, bytes) in [
        ("a.tar", big.clone()),
        ("a.tgz", compressed(Compression::Gzip, &big)),
        ("a.txz", compressed(Compression::Xz, &big)),
        ("a.gz", compressed(Compression::Gzip, &zeros)),
        ("a.zip", zip_of(&[("big", 0o100_644, &zeros)])),
        // What becomes no file counts too.
        ("b.tar", tar(&[entry(EntryType::XGlobalHeader, "x", "", 0o644, &zeros)])),
    ] {
        let place = Place::new();
        let error = place.unpack_named(name, &bytes, &limits(10, 100_000)).unwrap_err().to_string();
        assert!(error.contains("decompression_size_limit"), "{name}: {error}");
        assert_eq!(std::fs::read_dir(place.inside()).unwrap().count(), 0, "{name}: half a file");
    }
    let many: Vec<Vec<u8>> = (0..11).map(|at| file(&format!("f{at}"), b"")).collect();
    let names: Vec<String> = (0..11).map(|at| format!("f{at}")).collect();
    let zipped: Vec<(&str, u32, &[u8])> =
        names.iter().map(|name| (name.as_str(), 0o100_644, &b""[..])).collect();
    let deep = format!("{}f", "d/".repeat(40));
    for (name, bytes) in
        [("a.tar", tar(&many)), ("a.zip", zip_of(&zipped)), ("b.tar", tar(&[file(&deep, b"")]))]
    {
        let error = Place::new().unpack_named(name, &bytes, &limits(10, 0)).unwrap_err().to_string();
        assert!(error.contains("decompression_file_count_limit"), "{name}: {error}");
        Place::new().unpack_named(name, &bytes, &limits(0, 0)).unwrap();
    }
}

#[test]
fn what_is_damaged_fails() {
    for name in ["a.tar", "a.tgz", "a.tbz2", "a.txz", "a.tzst", "a.zip", "a.gz", "a.bz2", "a.xz", "a.zst"] {
        let error = Place::new().unpack_named(name, &[0x5a; 2000], &Limits::usual());
        assert!(error.is_err(), "{name}");
    }
    let archive = compressed(Compression::Gzip, &tar(&[file("a", &[7; 3000])]));
    let cut = &archive[..archive.len() / 2];
    assert!(Place::new().unpack_named("a.tgz", cut, &Limits::usual()).is_err());
}
