use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::FsError;
use crate::LocalNode;
use crate::alloc::handle::AllocHandle;

/// How much is sent at once, and how many of that wait for a slow reader.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 8;

/// The directories that a sticky allocation leaves to the one that replaces it, below its own.
pub fn sticky_parts<'a>(tasks: impl Iterator<Item = &'a String>) -> Vec<PathBuf> {
    let locals = tasks.map(|task| PathBuf::from(task).join("local"));
    std::iter::once(PathBuf::from("alloc/data")).chain(locals).collect()
}

/// What an allocation leaves behind, as a tar archive, for the node that its replacement was placed on. The servers give
/// that node a token that only they and this node can make.
///
/// # Errors
/// When the token is another one, or there is no such allocation here.
pub fn snapshot(
    local: &LocalNode,
    alloc_id: &str,
    token: &str,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, FsError> {
    if !wire::is_migrate_token(token, &local.context.node().secret_id, alloc_id) {
        return Err(FsError::Denied);
    }
    let alloc = local.allocs.get(alloc_id);
    let alloc = alloc.ok_or_else(|| FsError::Missing(format!("unknown allocation ID {alloc_id:?}")))?;
    let (to, pieces) = mpsc::channel(PIECES_MAX);
    tokio::task::spawn_blocking(move || pack(&alloc, &to));
    Ok(pieces)
}

fn pack(alloc: &AllocHandle, to: &mpsc::Sender<io::Result<Bytes>>) {
    let parts = sticky_parts(alloc.tasks.states().keys());
    let writer = BufWriter::with_capacity(PIECE_BYTES, Pieces(to));
    if let Err(error) = artifact::snapshot::pack(alloc.dir.root(), &parts, writer) {
        tracing::warn!(dir = %alloc.dir.root().display(), %error, "a snapshot of an allocation is cut short");
        // The reader may have gone; that is then the error.
        to.blocking_send(Err(error)).ok();
    }
}

/// Passes on what is written.
struct Pieces<'a>(&'a mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
