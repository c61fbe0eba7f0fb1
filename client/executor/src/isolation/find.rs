//! Which program a job means, in the root of its task.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::spec::IsolationSpec;

/// Where programs are looked for last, whatever PATH says.
const SYSTEM: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Called in the root of the task: in the task's own directories, in what it mounts, then in the system's.
///
/// # Errors
/// When there is none of this name.
pub fn in_root(name: &Path, isolation: &IsolationSpec) -> io::Result<PathBuf> {
    let own = ["/local", "/"].map(PathBuf::from);
    let mounts = isolation.mounts.iter().map(|mount| Path::new("/").join(&mount.target));
    let named = name.components().count() > 1;
    let system = SYSTEM.iter().filter(|_| !named).map(PathBuf::from);
    // An absolute name stays what it is, whatever it is joined to.
    let places = own.into_iter().chain(mounts).chain(system).map(|place| place.join(name));
    let found = places.into_iter().find(|path| path.is_file()).ok_or_else(|| missing(name))?;
    make_runnable(&found)?;
    Ok(found)
}

/// For a command that is run in the task beside it: a path as it is, anything else from PATH.
///
/// # Errors
/// When there is none of this name.
pub fn in_path(name: &str, work_dir: &Path, path: &str) -> io::Result<PathBuf> {
    let runnable = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = match name.contains('/') {
        true => Some(work_dir.join(name)).filter(runnable),
        false => std::env::split_paths(path).map(|directory| directory.join(name)).find(runnable),
    };
    found.filter(|_| !name.is_empty()).ok_or_else(|| missing(Path::new(name)))
}

fn missing(name: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("binary \"{}\" could not be found", name.display()))
}

/// A file of the task's own may have come without the permission; those of the host are left as they are.
fn make_runnable(path: &Path) -> io::Result<()> {
    let real = path.canonicalize()?;
    let own = real.starts_with("/local") || real.parent() == Some(Path::new("/"));
    let mode = real.metadata()?.permissions().mode();
    if own && mode & 0o555 != 0o555 {
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(mode | 0o555))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_path_or_in_the_tasks_own_path() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("tool");
        std::fs::write(&own, "").unwrap();
        let find = |name: &str| in_path(name, dir.path(), "/nowhere:/usr/bin:/bin");
        assert!(find("sh").unwrap().ends_with("bin/sh"));
        assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        for name in ["tool", "./tool", "", "no-such", "/bin"] {
            let error = find(name).unwrap_err();
            assert_eq!(error.to_string(), format!("binary \"{name}\" could not be found"));
        }
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("./tool").unwrap(), dir.path().join("./tool"));
    }
}
