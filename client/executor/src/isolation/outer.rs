//! The first of the two processes: all that has to be there before process 1 of the new namespace is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};

use super::{INNER, Order};
use crate::cgroup;
use crate::spec::{IsolationSpec, SUBCOMMAND};

/// The program in the executor's directory, for [`own_program`].
const PROGRAM: &str = "program";

const OWN: &str = "/proc/self/exe";

/// Returns the number of the inner process.
pub fn run(order: &Order) -> io::Result<i32> {
    let isolation = order.spec.isolation.clone().unwrap_or_default();
    if let Some(group) = &order.spec.cgroup {
        cgroup::enter(group)?;
    }
    unshare(namespaces(&isolation))?;
    let program = own_program(&order.directory)?;
    let inner =
        Command::new(program).arg(SUBCOMMAND).arg(INNER).env_clear().stdin(Stdio::inherit()).spawn()?;
    Ok(inner.id() as i32)
}

fn namespaces(isolation: &IsolationSpec) -> CloneFlags {
    let mut wanted = CloneFlags::CLONE_NEWNS;
    wanted.set(CloneFlags::CLONE_NEWPID, !isolation.host_pids);
    wanted.set(CloneFlags::CLONE_NEWIPC, !isolation.host_ipc);
    wanted
}

/// Our own program, where nothing can be written to it, in a mount namespace that was just made: a task can make a
/// process of ours run it once more inside, and would have it by `/proc/<pid>/exe` otherwise.
///
/// # Errors
/// When it cannot be mounted there.
pub fn own_program(directory: &Path) -> io::Result<PathBuf> {
    // What we mount stays here; what the host mounts and unmounts is followed, so that we keep no disk of it busy.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let program = match on_disk()? {
        Some(path) => {
            let program = directory.join(PROGRAM);
            File::create(&program)?;
            mount_bind(path, &program)?;
            program
        }
        None => {
            let program = directory.join(format!("{PROGRAM}.{}", std::process::id()));
            fs::copy(OWN, &program)?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
            mount_bind(&program, &program)?;
            program
        }
    };
    mount_remount(&program, MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV, "")?;
    Ok(program)
}

/// The path of this program; `None` when another one is there, of a newer release. The file itself belongs to the mounts of
/// the namespace that was left, so it can be mounted by its path only.
fn on_disk() -> io::Result<Option<PathBuf>> {
    let path = fs::read_link(OWN)?;
    let own = fs::metadata(OWN)?;
    let same = |found: &fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
    Ok(fs::metadata(&path).is_ok_and(|found| same(&found)).then_some(path))
}
