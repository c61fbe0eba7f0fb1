//! What was fetched, on its way from the scratch directory to the destination.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::FetchError;
use crate::below::{Below, Links};
use crate::request::Owner;
use crate::unpack::leads_out;

/// Most levels of directories in what was fetched.
const DEPTH_MAX: usize = 512;

/// Looks for links that lead out of the tree, however they do it, and for what is neither file, directory nor link.
///
/// # Errors
/// Names the first one.
pub fn inspect(tree: &Path) -> Result<(), FetchError> {
    let below = Below::new(tree, Links::Inside)?;
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        if directory.components().count() > DEPTH_MAX {
            return Err(FetchError::failed(format!("more than {DEPTH_MAX} levels of directories")));
        }
        for entry in below.entries(&directory)? {
            let path = directory.join(&entry.name);
            match entry.kind {
                FileType::Directory => waiting.push(path),
                FileType::RegularFile => {}
                FileType::Symlink => check_link(&below, &path)?,
                _ => return Err(FetchError::failed(format!("\"{}\" is no file", path.display()))),
            }
        }
    }
    Ok(())
}

fn check_link(below: &Below, path: &Path) -> Result<(), FetchError> {
    let out = || {
        let text = "a link leads out of the artifact (disable_artifact_inspection permits that)";
        FetchError::failed(format!("\"{}\": {text}", path.display()))
    };
    match below.open(path, OFlags::PATH) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // What is not there yet can only be judged by its name.
            let target = read_link(below, path)?;
            if leads_out(path, Path::new(OsStr::from_bytes(&target))) { Err(out()) } else { Ok(()) }
        }
        Err(_) => Err(out()),
    }
}

fn read_link(below: &Below, path: &Path) -> io::Result<Vec<u8>> {
    let parent = below.at(path.parent().unwrap_or(Path::new("")), Links::Refused)?;
    let name = path.file_name().unwrap_or_default();
    Ok(rustix::fs::readlinkat(parent.directory(), name, Vec::new())?.into_bytes())
}

/// Moves all that is in a directory into another one, beside what is there, and in place of files of the same name.
///
/// # Errors
/// When the system refuses it, or a link is in the way.
pub fn merge(from: &Below, to: &Below, owner: Option<Owner>) -> Result<(), FetchError> {
    for entry in from.entries(Path::new(""))? {
        let name = Path::new(&entry.name);
        let failed = |error: io::Error| FetchError::failed(format!("\"{}\": {error}", name.display()));
        match entry.kind {
            FileType::Directory => {
                let mode = File::from(from.open(name, OFlags::RDONLY | OFlags::DIRECTORY)?).metadata()?;
                to.make_dirs(name, 0o755, owner).map_err(failed)?;
                merge(&from.at(name, Links::Refused)?, &to.at(name, Links::Refused).map_err(failed)?, owner)?;
                let made = File::from(to.open(name, OFlags::RDONLY | OFlags::DIRECTORY).map_err(failed)?);
                let mode = (mode.permissions().mode() & 0o777) | 0o700;
                made.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(failed)?;
            }
            FileType::RegularFile => move_file(from, name, to, name, owner).map_err(failed)?,
            FileType::Symlink => {
                let target = read_link(from, name)?;
                to.link(name, OsStr::from_bytes(&target), owner).map_err(failed)?;
            }
            _ => return Err(FetchError::failed(format!("\"{}\" is no file", name.display()))),
        }
    }
    Ok(())
}

/// Moves one file. The directories above are made.
///
/// # Errors
/// When the system refuses it, or a link is in the way.
pub fn move_file(from: &Below, name: &Path, to: &Below, path: &Path, owner: Option<Owner>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let mut file = File::from(from.open(name, flags)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mode = std::fs::Permissions::from_mode(metadata.permissions().mode() & 0o777);
    if let Some(Owner { uid, gid }) = owner {
        std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
    }
    // Only now: a change of the owner clears bits.
    file.set_permissions(mode.clone())?;
    let last = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let parent = to.make_dirs(path.parent().unwrap_or(Path::new("")), 0o755, owner)?;
    let source = from.at(name.parent().unwrap_or(Path::new("")), Links::Refused)?;
    match rustix::fs::renameat(source.directory(), name.file_name().unwrap_or_default(), &parent, last) {
        Ok(()) => Ok(()),
        // Another file system, such as a volume in memory.
        Err(Errno::XDEV) => {
            let mut draft = to.draft(path, owner)?;
            io::copy(&mut file, &mut draft.file)?;
            if let Some(Owner { uid, gid }) = owner {
                std::os::unix::fs::fchown(&draft.file, Some(uid), Some(gid))?;
            }
            draft.file.set_permissions(mode)?;
            draft.place()
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The only file of a tree.
///
/// # Errors
/// When there is none, or more than one.
pub fn only_file(tree: &Below) -> Result<PathBuf, FetchError> {
    let (mut found, mut waiting) = (None, vec![PathBuf::new()]);
    while let Some(directory) = waiting.pop() {
        for entry in tree.entries(&directory)? {
            let path = directory.join(&entry.name);
            match entry.kind {
                FileType::Directory => waiting.push(path),
                FileType::RegularFile if found.is_none() => found = Some(path),
                _ => {
                    return Err(FetchError::failed(
                        "mode = \"file\": expected an archive of exactly one file",
                    ));
                }
            }
        }
    }
    found.ok_or_else(|| FetchError::failed("mode = \"file\": the archive has no file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("tree/sub/deep")).unwrap();
        std::fs::write(base.path().join("tree/sub/file"), "x").unwrap();
        base
    }

    #[test]
    fn links_that_lead_out_are_found_however_they_do_it() {
        for (links, good) in [
            (&[("sub/a", "file"), ("b", "sub/deep"), ("c", "not/there/yet")][..], true),
            (&[("a", "/etc/passwd")], false),
            (&[("sub/a", "../../other")], false),
            (&[("a", "../nowhere")], false),
            // Each of them alone leads nowhere else, by its text.
            (&[("sub/d", ".."), ("a", "sub/d/../x")], false),
            (&[("a", "a")], false),
        ] {
            let base = tree();
            std::fs::write(base.path().join("x"), "secret").unwrap();
            std::fs::write(base.path().join("other"), "secret").unwrap();
            for (path, target) in links {
                symlink(target, base.path().join("tree").join(path)).unwrap();
            }
            assert_eq!(inspect(&base.path().join("tree")).is_ok(), good, "{links:?}");
        }
    }

    #[test]
    fn trees_are_merged_without_bits_that_lend_rights_and_not_through_links() {
        let base = tree();
        let (from, to) = (base.path().join("tree"), base.path().join("to"));
        std::fs::create_dir_all(to.join("sub")).unwrap();
        std::fs::write(to.join("sub/file"), "old").unwrap();
        std::fs::write(to.join("sub/own"), "stays").unwrap();
        std::fs::set_permissions(from.join("sub/file"), std::fs::Permissions::from_mode(0o6755)).unwrap();
        symlink("file", from.join("sub/link")).unwrap();
        let below = |path: &Path| Below::new(path, Links::Refused).unwrap();
        merge(&below(&from), &below(&to), None).unwrap();
        assert_eq!(std::fs::read(to.join("sub/link")).unwrap(), b"x");
        assert_eq!(std::fs::read(to.join("sub/own")).unwrap(), b"stays");
        assert_eq!(to.join("sub/file").metadata().unwrap().permissions().mode() & 0o7777, 0o755);

        let base = tree();
        let (from, to, out) = (base.path().join("tree"), base.path().join("to"), base.path().join("out"));
        std::fs::create_dir(&to).unwrap();
        std::fs::create_dir(&out).unwrap();
        symlink(&out, to.join("sub")).unwrap();
        assert!(merge(&below(&from), &below(&to), None).is_err());
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    }

    #[test]
    fn one_file_is_expected_in_mode_file() {
        let base = tree();
        let below = Below::new(&base.path().join("tree"), Links::Refused).unwrap();
        assert_eq!(only_file(&below).unwrap(), Path::new("sub/file"));
        std::fs::write(base.path().join("tree/second"), "y").unwrap();
        assert!(only_file(&below).is_err());
    }
}
