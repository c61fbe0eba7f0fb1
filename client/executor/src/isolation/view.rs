//! What a task sees: its own directory as the root, with parts of the host, the system's file systems, and what it shares.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, symlinkat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_move, unmount,
};
use rustix::process::{chdir, chroot, pivot_root};

use super::mounts::MountPoints;
use super::root::{Bind, Place, Root};
use crate::spec::{DeviceSpec, IsolationSpec, LayerSpec, MountSpec, UserIds};

/// The devices of every task, where the host has them.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Trees of the host's kernel: a task has its own, and no layer shows these.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// What of the system's own files tells or changes too much about the host. Not all hosts have all of it.
const MASKED: [&str; 9] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/latency_stats",
    "/proc/acpi",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

const READ_ONLY: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// Makes it, in a mount namespace of the calling process's own, and enters it.
///
/// # Errors
/// Names what could not be shown.
pub fn make(isolation: &IsolationSpec, user: Option<UserIds>) -> io::Result<()> {
    // Before there are mounts of ours, which no layer shows. The table of a host with many tasks takes milliseconds to read.
    let points = MountPoints::now()?;
    // With the directories in memory that are mounted below it.
    mount_bind_recursive(&isolation.root, &isolation.root)?;
    let root = Root::open(&isolation.root)?;
    root.find(Path::new("."))?.restrict(MountFlags::NODEV)?;
    let reader = Reader::of(isolation, user);
    for layer in &isolation.layers {
        show(&root, layer, isolation, (&reader, &points))?;
    }
    devices(&root).map_err(|error| named("/dev", &error))?;
    for given in &isolation.devices {
        device(&root, given).map_err(|error| named(&given.source.display().to_string(), &error))?;
    }
    system(&root)?;
    for mount in &isolation.mounts {
        share(&root, mount)?;
    }
    for path in MASKED {
        if let Ok(place) = root.find(Path::new(path)) {
            mask(&place).map_err(|error| named(path, &error))?;
        }
    }
    for path in READ_ONLY {
        if let Ok(place) = root.find(Path::new(path)) {
            mount_bind(place.path(), place.path())?;
            root.find(Path::new(path))?.restrict(MountFlags::RDONLY)?;
        }
    }
    enter(&root, isolation)
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The calling process's root from now on; what was the root before is gone from its namespace, or beneath.
fn enter(root: &Root, isolation: &IsolationSpec) -> io::Result<()> {
    root.enter()?;
    match isolation.no_pivot_root {
        false => {
            pivot_root(".", ".").map_err(|error| named("pivot_root", &error.into()))?;
            unmount(".", UnmountFlags::DETACH)?;
        }
        true => {
            mount_move(".", "/").map_err(|error| named("moving the root", &error.into()))?;
            chroot(".")?;
        }
    }
    Ok(chdir("/")?)
}

/// A part of the host, without what must not be seen of it.
fn show(
    root: &Root,
    layer: &LayerSpec,
    isolation: &IsolationSpec,
    (reader, points): (&Reader, &MountPoints),
) -> io::Result<()> {
    // The layer shows what a link leads to, as files do that are linked or copied from there.
    let Ok(source) = layer.source.canonicalize() else { return Ok(()) };
    let system = |path: &Path| SYSTEM.iter().any(|tree| path.starts_with(tree));
    let covered =
        |path: &Path| system(path) || isolation.hidden.iter().any(|hidden| path.starts_with(hidden));
    if covered(&source) {
        return Ok(());
    }
    let read_only = Bind { read_only: true, recursive: false };
    match &layer.changes {
        Some(changes) if source.is_dir() => overlay(root, &source, &layer.target, changes)?,
        _ => root.bind(&source, &layer.target, read_only)?,
    }
    let inside = |path: &Path| layer.target.join(path.strip_prefix(&source).unwrap_or(path));
    // Such a view does not hold what is mounted below.
    for point in points.below(&source).filter(|point| !covered(point)) {
        if root.find(&inside(point)).is_ok() && point.exists() {
            root.bind(point, &inside(point), read_only)?;
        }
    }
    let mut hidden: Vec<PathBuf> =
        isolation.hidden.iter().filter(|path| path.starts_with(&source)).cloned().collect();
    for private in &isolation.private {
        if source.starts_with(private) {
            reader.unreadable(&source, &mut hidden);
        } else if private.starts_with(&source) {
            reader.unreadable(private, &mut hidden);
        }
    }
    for path in &hidden {
        if let Ok(place) = root.find(&inside(path)) {
            mask(&place).map_err(|error| named(&path.display().to_string(), &error))?;
        }
    }
    Ok(())
}

/// The directory of the host, and above it what the task changes. Where the file system of the changes can be no such
/// upper layer, the task cannot change anything.
fn overlay(root: &Root, source: &Path, target: &Path, changes: &Path) -> io::Result<()> {
    let (upper, work) = (changes.join("upper"), changes.join("work"));
    if !upper.exists() {
        fs::create_dir_all(&upper)?;
        let of_source = source.metadata()?;
        // The directory itself is that of the upper layer.
        fs::set_permissions(&upper, of_source.permissions())?;
        chown(&upper, Some(of_source.uid()), Some(of_source.gid()))?;
    }
    fs::create_dir_all(&work)?;
    let mut options = Vec::new();
    for (name, path) in [("lowerdir=", source), (",upperdir=", &upper), (",workdir=", &work)] {
        options.extend_from_slice(name.as_bytes());
        options.extend(escaped(path));
    }
    // Without an index no start is refused because an earlier one is still being unmounted.
    options.extend_from_slice(b",index=off");
    let options = CString::new(options)?;
    let place = root.directory(target)?;
    match mount("overlay", place.path(), "overlay", MountFlags::NODEV, options.as_c_str()) {
        Ok(()) => Ok(()),
        Err(error) => {
            // On its own standard error, which is the task's: it is about what the task will see.
            eprintln!("{} is read-only: {error}", target.display());
            root.bind(source, target, Bind { read_only: true, recursive: false })
        }
    }
}

/// A path as an option of the overlay, where colons and commas separate.
fn escaped(path: &Path) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b'\\' | b':' | b',' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    path.as_os_str().as_bytes().iter().flat_map(escape).collect()
}

/// Nothing can be read of it, or written to it.
fn mask(place: &Place) -> io::Result<()> {
    match place.is_directory()? {
        true => {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            Ok(mount("tmpfs", place.path(), "tmpfs", flags, c"size=0,mode=555")?)
        }
        false => Ok(mount_bind("/dev/null", place.path())?),
    }
}

/// A directory of its own in memory, with the host's devices that do no harm. Each of them is a mount, and nowhere else
/// does a device work: so no list of devices is needed that may be opened, and none that a task makes is of use to it.
fn devices(root: &Root) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::STRICTATIME;
    let dev = root.directory(Path::new("/dev"))?;
    mount("tmpfs", dev.path(), "tmpfs", flags, c"mode=755,size=65536k")?;
    for name in DEVICES {
        let (own, of_host) = (Path::new("/dev").join(name), Path::new("/dev").join(name));
        if of_host.exists() {
            mount_bind(&of_host, root.file(&own)?.path())?;
        }
    }
    let dev = root.find(Path::new("/dev"))?;
    for (target, name) in LINKS {
        symlinkat(target, CWD, dev.path().join(name))?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let pts = root.directory(Path::new("/dev/pts"))?;
    mount("devpts", pts.path(), "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620,gid=5")?;
    let shm = root.directory(Path::new("/dev/shm"))?;
    mount("shm", shm.path(), "tmpfs", flags | MountFlags::NODEV, c"mode=1777,size=65536k")?;
    let queues = root.directory(Path::new("/dev/mqueue"))?;
    Ok(mount("mqueue", queues.path(), "mqueue", flags | MountFlags::NODEV, None)?)
}

/// One that the task was given: as the others it is a mount, of the host's own file.
fn device(root: &Root, given: &DeviceSpec) -> io::Result<()> {
    let target = Path::new("/").join(&given.target);
    let place = match given.source.metadata()?.is_dir() {
        true => root.directory(&target)?,
        false => root.file(&target)?,
    };
    Ok(mount_bind(&given.source, place.path())?)
}

fn system(root: &Root) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    for (kind, path, flags) in [("proc", "/proc", flags), ("sysfs", "/sys", flags | MountFlags::RDONLY)] {
        let place = root.directory(Path::new(path))?;
        mount(kind, place.path(), kind, flags, None).map_err(|error| named(path, &error.into()))?;
    }
    Ok(())
}

fn share(root: &Root, shared: &MountSpec) -> io::Result<()> {
    let target = Path::new("/").join(&shared.target);
    root.bind(&shared.source, &target, Bind { read_only: shared.read_only, recursive: true })?;
    let kind = match shared.follows_host {
        true => MountPropagationFlags::DOWNSTREAM,
        false => MountPropagationFlags::PRIVATE,
    };
    Ok(mount_change(root.find(&target)?.path(), kind | MountPropagationFlags::REC)?)
}

/// For whom something of the host is shown.
struct Reader {
    user: Option<UserIds>,
    groups: Vec<u32>,
}

impl Reader {
    fn of(isolation: &IsolationSpec, user: Option<UserIds>) -> Reader {
        let mut groups = isolation.groups.clone();
        groups.extend(user.map(|user| user.gid));
        Reader { user, groups }
    }

    /// As the file's own permissions have it: a task may have capabilities that would pass over them.
    fn may(&self, found: &Metadata, bits: u32) -> bool {
        let Some(user) = self.user.filter(|user| user.uid != 0) else { return true };
        let mode = found.permissions().mode();
        let shift = match () {
            () if found.uid() == user.uid => 6,
            () if self.groups.contains(&found.gid()) => 3,
            () => 0,
        };
        mode >> shift & bits == bits
    }

    /// Adds what is below `directory` and not for this reader. What cannot be looked at is left to its own permissions.
    fn unreadable(&self, directory: &Path, out: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
            match found.file_type() {
                kind if kind.is_dir() && self.may(&found, 0o5) => self.unreadable(&path, out),
                kind if kind.is_dir() => out.push(path),
                kind if kind.is_file() && !self.may(&found, 0o4) => out.push(path),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_user_may_read_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            match name.contains('.') {
                true => fs::write(&path, "x").unwrap(),
                false => fs::create_dir(&path).unwrap(),
            }
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        put("open", 0o755);
        put("open/public.txt", 0o644);
        put("open/shadow.txt", 0o640);
        put("closed", 0o700);
        let unreadable = |uid, gid| {
            let reader = Reader { user: Some(UserIds { uid, gid }), groups: vec![gid] };
            let mut out = Vec::new();
            reader.unreadable(dir.path(), &mut out);
            out.sort();
            out
        };
        let own = dir.path().metadata().unwrap();
        let (shadow, closed) = (dir.path().join("open/shadow.txt"), dir.path().join("closed"));
        assert_eq!(unreadable(own.uid() + 1, own.gid() + 1), [closed.clone(), shadow]);
        assert_eq!(unreadable(own.uid() + 1, own.gid()), [closed], "its group may read it");
        assert!(unreadable(0, 0).is_empty());
    }

    #[test]
    fn paths_are_escaped_for_the_overlay() {
        assert_eq!(escaped(Path::new("/a:b,c\\d")), br"/a\:b\,c\\d");
    }
}
