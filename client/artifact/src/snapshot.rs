//! Directories on their way to another node: packed there, unpacked here. What is in them was made by tasks, and the other
//! node is a stranger too.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use tar::{Builder, EntryType, Header};

use crate::FetchError;
use crate::below::{Below, Links};
use crate::request::Owner;
use crate::unpack::{Unpacker, damaged, inside};

/// How much is read of the reason that an archive ends with.
const REASON_MAX: u64 = 4096;

/// Writes the directories at `parts` below `root`, with rights, owners and times. What is neither a file nor a directory nor a
/// link is left out, and so is a part that is not there.
///
/// # Errors
/// When something cannot be read, or written.
pub fn pack(root: &Path, parts: &[PathBuf], to: impl Write) -> io::Result<()> {
    let below = Below::new(root, Links::Refused)?;
    let mut archive = Builder::new(to);
    for part in parts {
        match below.open(part, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(_) => pack_tree(&below, part, &mut archive)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(named(part, error)),
        }
    }
    archive.into_inner()?.flush()
}

fn pack_tree(below: &Below, part: &Path, archive: &mut Builder<impl Write>) -> io::Result<()> {
    let mut waiting = vec![part.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let directory = File::from(below.open(&path, OFlags::RDONLY | OFlags::DIRECTORY)?);
        archive.append_data(&mut header(&directory.metadata()?, EntryType::Directory), &path, io::empty())?;
        for entry in below.entries(&path).map_err(|error| named(&path, error))? {
            let inner = path.join(&entry.name);
            match entry.kind {
                FileType::Directory => waiting.push(inner),
                FileType::RegularFile => {
                    pack_file(below, &inner, archive).map_err(|error| named(&inner, error))?
                }
                FileType::Symlink => {
                    pack_link(below, &inner, archive).map_err(|error| named(&inner, error))?
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn pack_file(below: &Below, path: &Path, archive: &mut Builder<impl Write>) -> io::Result<()> {
    let file = File::from(below.open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    // As long as the header says, also if it is cut short or grows meanwhile.
    let content = file.chain(io::repeat(0)).take(metadata.len());
    archive.append_data(&mut header(&metadata, EntryType::Regular), path, content)
}

fn pack_link(below: &Below, path: &Path, archive: &mut Builder<impl Write>) -> io::Result<()> {
    let link = below.open(path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    let stat = rustix::fs::fstat(link.as_fd())?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    header.set_mode(0o777);
    header.set_uid(stat.st_uid.into());
    header.set_gid(stat.st_gid.into());
    let target = String::from_utf8(target.into_bytes());
    // A link to what is no text was not made to be followed.
    target.map_or(Ok(()), |target| archive.append_link(&mut header, path, target))
}

fn header(metadata: &std::fs::Metadata, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(if kind == EntryType::Regular { metadata.len() } else { 0 });
    header.set_mode(metadata.permissions().mode() & 0o7777);
    header.set_uid(metadata.uid().into());
    header.set_gid(metadata.gid().into());
    header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
    header
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()))
}

/// Unpacks what lies in `parts` into `into`, an empty directory; what lies elsewhere is passed over. Owners are kept if this
/// process may give files away.
///
/// # Errors
/// When the archive is damaged or cut short, says that its sender has failed, or has devices, pipes, or names and links that
/// lead out. What is there by then is no longer of use.
pub fn unpack(from: impl Read, into: &Path, parts: &[PathBuf]) -> Result<(), FetchError> {
    let below = Below::new(into, Links::Refused)?;
    let gives_away = rustix::process::geteuid().is_root();
    let mut unpacker = Unpacker::unlimited(&below);
    let mut archive = tar::Archive::new(from);
    for entry in archive.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let path = inside(&entry.path_bytes())?;
        if is_reason(&path) {
            let mut reason = String::new();
            entry.take(REASON_MAX).read_to_string(&mut reason).map_err(damaged)?;
            return Err(FetchError::failed(format!("the other node could not read it: {}", reason.trim())));
        }
        if !parts.iter().any(|part| path.starts_with(part)) {
            continue;
        }
        let id = |id: io::Result<u64>| id.ok().and_then(|id| u32::try_from(id).ok());
        let owner = id(entry.header().uid()).zip(id(entry.header().gid()));
        unpacker.own_by(owner.filter(|_| gives_away).map(|(uid, gid)| Owner { uid, gid }));
        unpacker.entry(entry)?;
    }
    unpacker.finish()
}

/// Nomad's agents end an archive with such a file when they fail after its beginning was sent.
fn is_reason(path: &Path) -> bool {
    let name = path.to_str().unwrap_or_default();
    name.starts_with("NOMAD-") && name.ends_with("-ERROR.log")
}

/// Makes the directories in which [`unpack`] puts things.
///
/// # Errors
/// When there is something in the way.
pub fn make_private(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(rustix::fs::mkdir(path, Mode::RWXU)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn parts(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_tasks_have_left_comes_out_as_it_went_in() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let deep = from.path().join("alloc/data").join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(from.path().join("web/local")).unwrap();
        std::fs::create_dir_all(from.path().join("web/secrets")).unwrap();
        std::fs::write(deep.join("db"), "1".repeat(100_000)).unwrap();
        std::fs::write(from.path().join("web/local/run"), "2").unwrap();
        std::fs::set_permissions(from.path().join("web/local/run"), PermissionsExt::from_mode(0o4750))
            .unwrap();
        std::fs::write(from.path().join("web/secrets/token"), "3").unwrap();
        symlink("../../alloc/data", from.path().join("web/local/near")).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(from.path().join("web/local/run"), Some(7), Some(8)).unwrap();
        }
        rustix::fs::mknodat(
            rustix::fs::CWD,
            from.path().join("web/local/pipe"),
            FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();

        let mut packed = Vec::new();
        pack(from.path(), &parts(&["alloc/data", "web/local", "gone/local"]), &mut packed).unwrap();
        unpack(packed.as_slice(), to.path(), &parts(&["alloc/data", "web/local"])).unwrap();
        let deep = to.path().join("alloc/data").join("d".repeat(120)).join("e".repeat(120));
        assert_eq!(std::fs::read_to_string(deep.join("db")).unwrap().len(), 100_000);
        let run = std::fs::metadata(to.path().join("web/local/run")).unwrap();
        assert_eq!(run.permissions().mode() & 0o7777, 0o750, "nothing runs as somebody else");
        if is_root {
            assert_eq!((run.uid(), run.gid()), (7, 8));
        }
        let near = std::fs::read_link(to.path().join("web/local/near")).unwrap();
        assert_eq!(near, Path::new("../../alloc/data"));
        assert!(!to.path().join("web/local/pipe").exists() && !to.path().join("web/secrets").exists());

        let partly = tempfile::tempdir().unwrap();
        unpack(packed.as_slice(), partly.path(), &parts(&["web/local"])).unwrap();
        assert!(!partly.path().join("alloc").exists(), "what nobody asks for is passed over");
        let cut = tempfile::tempdir().unwrap();
        assert!(unpack(&packed[..packed.len() / 2], cut.path(), &parts(&["alloc/data"])).is_err());
    }

    /// An archive of one entry.
    fn archive(kind: EntryType, name: &str, target: &str, content: &str) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        header.set_cksum();
        let mut archive = Builder::new(Vec::new());
        archive.append(&header, content.as_bytes()).unwrap();
        archive.into_inner().unwrap()
    }

    #[test]
    fn nothing_hostile_gets_out_of_the_directory() {
        let base = tempfile::tempdir().unwrap();
        let into = base.path().join("in");
        let all = parts(&["alloc/data", "../out", "/out"]);
        for (kind, name, target, why) in [
            (EntryType::Regular, "../out", "", "leads out"),
            (EntryType::Regular, "alloc/data/../../../out", "", "leads out"),
            (EntryType::Regular, "/out", "", "leads out"),
            (EntryType::Symlink, "alloc/data/x", "/etc/passwd", "leads out"),
            (EntryType::Symlink, "alloc/data/x", "../../../out", "leads out"),
            (EntryType::Link, "alloc/data/x", "/etc/passwd", "leads out"),
            (EntryType::Char, "alloc/data/null", "", "a device"),
            (EntryType::Fifo, "alloc/data/pipe", "", "a pipe"),
            (EntryType::Regular, "NOMAD-7-ERROR.log", "", "could not read it: hello"),
        ] {
            make_private(&into).unwrap();
            let error = unpack(archive(kind, name, target, "hello").as_slice(), &into, &all).unwrap_err();
            assert!(error.to_string().contains(why), "{name}: {error}");
            assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1, "{name}");
        }
        // A link inside, and then a name through it.
        make_private(&into).unwrap();
        let mut both = archive(EntryType::Symlink, "alloc/data/a", "..", "");
        both.truncate(512);
        both.extend(archive(EntryType::Regular, "alloc/data/a/x", "", "hello"));
        let error = unpack(both.as_slice(), &into, &all).unwrap_err();
        assert!(error.to_string().contains("through a link"), "{error}");
    }
}
