//! Which program a job means.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::driver::StartError;

/// The program that `name` means: in the task's own directories, then as an absolute path, then in PATH.
///
/// # Errors
/// When there is none, or it cannot be made executable.
pub fn find_command(name: &str, task_dir: &Path, path: Option<&str>) -> Result<PathBuf, StartError> {
    let own = [task_dir.join("local").join(name), task_dir.join(name)];
    let named = Path::new(name);
    let absolute = named.is_absolute().then(|| named.to_path_buf());
    let searched = path.filter(|_| !name.contains('/')).unwrap_or_default();
    let in_path = std::env::split_paths(searched).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    let found = own.into_iter().chain(absolute).chain(in_path).find(|path| path.is_file());
    let found = found.ok_or_else(|| StartError::fatal(format!("binary \"{name}\" could not be found")))?;
    let mode = found.metadata().map_err(StartError::fatal)?.permissions().mode();
    if mode & 0o555 != 0o555 {
        let runnable = std::fs::Permissions::from_mode(mode | 0o555);
        std::fs::set_permissions(&found, runnable).map_err(StartError::fatal)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_task_comes_before_one_of_the_host() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("local")).unwrap();
        let find = |name: &str| find_command(name, dir.path(), Some("/usr/bin:/bin"));
        assert!(find("sh").unwrap().ends_with("bin/sh"));
        assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        let own = dir.path().join("local/sh");
        std::fs::write(&own, "").unwrap();
        assert_eq!(find("sh").unwrap(), own);
        assert_eq!(own.metadata().unwrap().permissions().mode() & 0o555, 0o555, "made runnable");
        assert_eq!(find("no-such").unwrap_err().to_string(), "binary \"no-such\" could not be found");
    }
}
