//! Network namespaces by path: each is a file that the kernel's object is mounted on, as `ip netns` has them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where they are, as Nomad and `ip netns` have it.
pub const DIRECTORY: &str = "/run/netns";

/// What `statfs` says of a mounted namespace.
const NSFS: i128 = 0x6e73_6673;

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// The path of the namespace of an allocation.
pub fn path(alloc_id: &str) -> PathBuf {
    Path::new(DIRECTORY).join(alloc_id)
}

/// True when a namespace is mounted there.
pub fn is_mounted(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| i128::from(found.f_type) == NSFS)
}

/// Makes a new namespace and mounts it at `path`.
pub fn create(path: &Path) -> io::Result<()> {
    on_a_thread(|| {
        // The thread ends with this, and its namespace lives on in the mount.
        unshare(CloneFlags::CLONE_NEWNET)?;
        mount(Path::new(OWN), path)
    })
}

/// Mounts a namespace that something else has made, such as that of a process.
pub fn adopt(of: &Path, path: &Path) -> io::Result<()> {
    let file = File::open(of)?;
    mount(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), path)
}

fn mount(from: &Path, path: &Path) -> io::Result<()> {
    prepare_directory()?;
    File::options().write(true).create(true).truncate(false).open(path)?;
    mount_bind(from, path).map_err(|error| {
        std::fs::remove_file(path).ok();
        error.into()
    })
}

/// Mounts below the directory are seen in all mount namespaces of the host: otherwise one that was made meanwhile would
/// keep ours alive.
fn prepare_directory() -> io::Result<()> {
    let directory = Path::new(DIRECTORY);
    std::fs::create_dir_all(directory)?;
    let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    if mount_change(directory, flags).is_err() {
        mount_bind_recursive(directory, directory)?;
        mount_change(directory, flags)?;
    }
    Ok(())
}

/// Removes the mount and its file. It is no error when they are gone; processes in the namespace keep it.
pub fn remove(path: &Path) -> io::Result<()> {
    // An agent that died between two mounts leaves one above the other.
    while is_mounted(path) {
        unmount(path, UnmountFlags::DETACH)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs `act` in the namespace at `path`.
pub fn within<T: Send>(path: &Path, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    on_a_thread(|| {
        let namespace = File::open(path)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        act()
    })
}

/// A namespace belongs to a thread, so it has one of its own, which nobody uses afterwards.
fn on_a_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, act)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread in another namespace panicked")))
    })
}
