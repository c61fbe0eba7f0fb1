//! Fetches what an allocation of another node has left behind.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use artifact::snapshot::{make_private, unpack};
use base::reasons;
use bytes::{Buf, Bytes};
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::sync::mpsc;

use super::AllocContext;
use crate::files::snapshot::sticky_parts;
use crate::layout::AllocDir;

/// How long the other node may take to accept a connection, and how long it may send nothing.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const SILENT_MAX: Duration = Duration::from_secs(60);

/// Pieces that wait to be unpacked.
const PIECES_MAX: usize = 8;

/// How much of a refusal is shown.
const REFUSAL_MAX: usize = 512;

/// Fetches the data of the allocation `previous` into a directory that lies beside those of the tasks: what arrives is put
/// in its place when all of it is there.
///
/// # Errors
/// In words for the events of the tasks.
pub(super) async fn fetch(alloc: &AllocContext, previous: &str) -> Result<AllocDir, String> {
    let context = &alloc.context;
    let token = context.migrate_token(&alloc.id).ok_or("the servers have given no token for it")?;
    let servers = context.servers.get().ok_or("there are no servers")?;
    let node = servers.node_of(previous).await?;
    if node.http_addr.is_empty() {
        return Err(format!("node {} has no address of its HTTP API", node.id));
    }
    let scheme = if node.tls_enabled { "https" } else { "http" };
    let url = format!("{scheme}://{}/v1/client/allocation/{previous}/snapshot", node.http_addr);
    let request = client(alloc)?.get(&url).header("X-Nomad-Token", token);
    let mut answer = request.send().await.map_err(|error| reasons(&error))?;
    if !answer.status().is_success() {
        let status = answer.status();
        let said = answer.chunk().await.ok().flatten().unwrap_or_default();
        let said = String::from_utf8_lossy(&said[..said.len().min(REFUSAL_MAX)]).trim().to_string();
        return Err(format!("node {} answers {}: {said}", node.id, status.as_u16()));
    }
    let arriving = AllocDir::at(alloc.dir.root().join(ARRIVING));
    let (to, pieces) = mpsc::channel(PIECES_MAX);
    let (root, parts) = (arriving.root().to_path_buf(), sticky_parts(alloc.roles.keys()));
    let unpacking = tokio::task::spawn_blocking(move || unpack_all(pieces, &root, &parts));
    let sent = send(&mut answer, &to).await;
    drop(to);
    let unpacked = unpacking.await.map_err(|error| error.to_string())?;
    // What ended the unpacking may be what broke the stream.
    sent.and(unpacked)?;
    Ok(arriving)
}

/// The directory of what arrives; no task can be called so.
const ARRIVING: &str = ".arriving";

fn client(alloc: &AllocContext) -> Result<Client, String> {
    let builder = Client::builder().no_proxy().redirect(Policy::none()).user_agent("Sojourn");
    let builder = builder.connect_timeout(CONNECT_WITHIN).read_timeout(SILENT_MAX);
    let trusted = match &alloc.context.settings.tls {
        Some(own) => own.dial_https(),
        None => tls::client::config_trusting(&[]),
    };
    let trusted = trusted.map_err(|error| format!("certificates: {error}"))?;
    builder.tls_backend_preconfigured(trusted).build().map_err(|error| reasons(&error))
}

async fn send(answer: &mut reqwest::Response, to: &mpsc::Sender<Option<Bytes>>) -> Result<(), String> {
    while let Some(piece) = answer.chunk().await.map_err(|error| reasons(&error))? {
        if to.send(Some(piece)).await.is_err() {
            // The unpacking says why.
            return Ok(());
        }
    }
    to.send(None).await.ok();
    Ok(())
}

fn unpack_all(pieces: mpsc::Receiver<Option<Bytes>>, root: &Path, parts: &[PathBuf]) -> Result<(), String> {
    make_private(root).map_err(|error| error.to_string())?;
    unpack(Arriving { pieces, piece: Bytes::new(), over: false }, root, parts)
        .map_err(|error| error.to_string())
}

/// What arrives, to be read where a thread may wait for it.
struct Arriving {
    pieces: mpsc::Receiver<Option<Bytes>>,
    piece: Bytes,
    over: bool,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.over {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.piece = piece,
                Some(None) => self.over = true,
                // An end that nobody has said is none.
                None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            }
        }
        let length = self.piece.len().min(buffer.len());
        self.piece.split_to(length).copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
