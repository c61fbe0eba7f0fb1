//! The HTTP API on a socket in the directory of each task. No HTTP lives here: a program that has an API gives it to the
//! node ([`TaskApi`]), and the task hook `api` makes the sockets.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat};
use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The name of the socket in the secrets directory of a task.
pub(crate) const SOCKET: &str = "api.sock";

/// Connections of one task at the same time. Further ones wait in the system's queue.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// Pause after a connection could not be accepted: the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers HTTP for tasks.
pub trait TaskApi: Debug + Send + Sync {
    /// Serves one connection until it ends. Every request has to prove whose it is.
    fn serve(&self, stream: UnixStream) -> BoxFuture<'static, ()>;
}

/// Makes a socket in `secrets`, in place of what is there.
///
/// It is made in a directory beside its place that only we can enter, gets its owner there, and is moved then: nothing that a
/// task puts in the way is written to, or has its owner changed.
///
/// # Errors
/// When the system refuses it.
pub(crate) fn bind(secrets: &Path, owner: Option<(u32, u32)>, mode: u32) -> io::Result<UnixListener> {
    let secrets = open(CWD, secrets)?;
    let mut id = [0; 8];
    getrandom::fill(&mut id).expect("the system gives random bytes");
    let home_name = format!(".api-{:016x}", u64::from_ne_bytes(id));
    mkdirat(&secrets, &home_name, Mode::RWXU)?;
    let listener =
        open(&secrets, Path::new(&home_name)).and_then(|home| bind_in(&home, &secrets, owner, mode));
    rustix::fs::unlinkat(&secrets, &home_name, AtFlags::REMOVEDIR).ok();
    listener
}

fn bind_in(
    home: &OwnedFd,
    secrets: &OwnedFd,
    owner: Option<(u32, u32)>,
    mode: u32,
) -> io::Result<UnixListener> {
    // A task may have put a directory of its own in its place.
    let found = fstat(home)?;
    if found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
        return Err(io::Error::other("the task is in the way"));
    }
    // An address of a socket holds 107 bytes, and paths of allocations are longer.
    let draft = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", home.as_raw_fd()));
    let listener = UnixListener::bind(&draft)?;
    let placed = (|| {
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&draft, Some(uid), Some(gid))?;
        }
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode))?;
        Ok(rustix::fs::renameat(home, SOCKET, secrets, SOCKET)?)
    })();
    if placed.is_err() {
        std::fs::remove_file(&draft).ok();
    }
    placed.map(|()| listener)
}

/// Removes the socket. It is no error when there is none.
pub(crate) fn remove(secrets: &Path) {
    if let Ok(secrets) = open(CWD, secrets) {
        rustix::fs::unlinkat(&secrets, SOCKET, AtFlags::empty()).ok();
    }
}

/// A directory itself, and not what a link leads to.
fn open(below: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(below, path, flags, Mode::empty())?)
}

/// Serves all connections until it is dropped; then these end too.
pub(crate) async fn accept(listener: UnixListener, api: Arc<dyn TaskApi>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes the semaphore");
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = api.serve(stream);
                connections.spawn(async move {
                    let _until_it_ends = slot;
                    serving.await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of a task could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Answers with what it reads, once.
    #[derive(Debug)]
    struct Echo;

    impl TaskApi for Echo {
        fn serve(&self, mut stream: UnixStream) -> BoxFuture<'static, ()> {
            Box::pin(async move {
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                stream.write_all(&byte).await.unwrap();
            })
        }
    }

    async fn echoed(socket: &Path) -> u8 {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        stream.read_u8().await.unwrap()
    }

    #[tokio::test]
    async fn the_socket_replaces_what_a_task_has_put_there_and_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let (secrets, other) = (base.path().join("secrets"), base.path().join("other"));
        std::fs::create_dir(&secrets).unwrap();
        std::fs::write(&other, "theirs").unwrap();
        symlink(&other, secrets.join(SOCKET)).unwrap();
        let listener = bind(&secrets, None, 0o666).unwrap();
        let found = std::fs::symlink_metadata(secrets.join(SOCKET)).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o777, 0o666);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
        assert_eq!(std::fs::read_dir(&secrets).unwrap().count(), 1, "nothing is left of the making");
        let serving = tokio::spawn(accept(listener, Arc::new(Echo)));
        for _ in 0..CONNECTIONS_MAX + 2 {
            assert_eq!(echoed(&secrets.join(SOCKET)).await, b'x', "slots are given back");
        }
        serving.abort();
        remove(&secrets);
        remove(&secrets);
        assert!(!secrets.join(SOCKET).exists());

        // The directory itself is a link: nothing is made where it leads.
        let link = base.path().join("link");
        symlink(&secrets, &link).unwrap();
        bind(&link, None, 0o666).unwrap_err();
        assert_eq!(std::fs::read_dir(&secrets).unwrap().count(), 0);
    }
}
