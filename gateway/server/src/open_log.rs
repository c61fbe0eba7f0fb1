//! Opens the log of this server, and decides what becomes of one that is damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::Journal;
use journal::store::{Damage, Directory, Repair, StoreError, repair};
use raft::{Found, OpenError, RaftJournal};
use tokio::runtime::Handle;

use crate::identity;
use crate::log_files;
use crate::lost_tail::{self, LostTail};
use crate::peers_file::{self, Own};
use crate::server_connections::ServerConnections;
use crate::settings::Settings;
use crate::start::StartError;

/// Where the log lies in a data directory.
pub fn log_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("server").join("log")
}

/// Opens the log. A damaged one is put aside if there are other servers: this one begins anew, under another number,
/// and gets everything from them. It never votes with a log that may lack what it once acknowledged.
pub(crate) async fn open_log(
    settings: &Settings,
    dir: &Path,
    address: String,
    servers: &ServerConnections,
    inbox: &control::Inbox,
) -> Result<Arc<RaftJournal>, StartError> {
    let data = |source| StartError::Data { path: dir.to_path_buf(), source };
    let path = log_dir(&settings.data_dir);
    follow_peers_file(dir, &path).await?;
    let mut found = if settings.cluster.bootstrap_expect == 1 { Found::Alone } else { Found::Wait };
    let mut examined = false;
    loop {
        let log = raft::Settings {
            dir: path.clone(),
            node: identity::raft_number(dir).map_err(data)?,
            address: address.clone(),
            segment_bytes: settings.segment_bytes,
            retention: settings.history.retention,
            archive: log_files::archive(settings.history.archive.as_ref(), dir)?,
            keep: Some(log_files::keep(&settings.history, dir)),
            tail: settings.history.tail,
            found,
            timings: settings.cluster.timings.clone(),
            seed: identity::seed().map_err(data)?,
        };
        let opened = match examine(dir, &path).await {
            Ok(()) => {
                RaftJournal::open(log, Arc::new(servers.clone()), inbox.clone(), &Handle::current()).await
            }
            Err(why) => Err(why),
        };
        match opened {
            Err(OpenError::Store(source @ StoreError::Damaged { .. })) => {
                if !settings.cluster.has_others() {
                    return Err(StartError::Damaged { path: settings.data_dir.clone(), source });
                }
                let aside = identity::begin_anew(dir).map_err(data)?;
                tracing::error!(
                    error = %source,
                    aside = %aside.display(),
                    "the log is damaged: it is put aside, and this server gets everything from the others"
                );
                found = Found::Wait;
            }
            // It reads some of the log, and says only in words what it found.
            Err(why @ OpenError::Consensus(_)) if !examined => {
                identity::suspect(dir, &why.to_string()).map_err(data)?;
                examined = true;
            }
            opened => {
                let log = opened?;
                let Some(lost) = lost_tail(dir, &log).await? else { return Ok(log) };
                log.shutdown().await;
                if !settings.cluster.has_others() {
                    return Err(StartError::LostTail { path: settings.data_dir.clone(), lost });
                }
                let aside = identity::begin_anew(dir).map_err(data)?;
                tracing::error!(
                    kept = lost.kept.0,
                    seen = lost.seen.0,
                    aside = %aside.display(),
                    "the log lost its end: it is put aside, and this server gets everything from the others"
                );
                found = Found::Wait;
            }
        }
    }
}

async fn lost_tail(dir: &Path, log: &RaftJournal) -> Result<Option<LostTail>, StartError> {
    let (dir, oldest, kept) = (dir.to_path_buf(), log.horizon(), log.last_index());
    let compare = move || lost_tail::find(&dir, oldest, kept);
    Ok(tokio::task::spawn_blocking(compare).await.map_err(OpenError::from)??)
}

/// Before the log is opened, the operator may say that its cluster is this server alone.
async fn follow_peers_file(dir: &Path, log: &Path) -> Result<(), StartError> {
    let data = |source| StartError::Data { path: dir.to_path_buf(), source };
    let (id, number) = (identity::server_id(dir).map_err(data)?, identity::raft_number(dir).map_err(data)?);
    let (home, log) = (dir.to_path_buf(), log.to_path_buf());
    let follow = move || peers_file::follow(&home, &Own { id, number, log: &log });
    let followed = tokio::task::spawn_blocking(follow).await.map_err(OpenError::from)?;
    followed.map_err(|source| StartError::Peers { path: peers_file::path(dir), source })
}

/// Reads a log to its last byte before it is opened, if it was found damaged where opening it may pass by.
async fn examine(dir: &Path, log: &Path) -> Result<(), OpenError> {
    if !identity::is_suspected(dir) {
        return Ok(());
    }
    let (dir, log) = (dir.to_path_buf(), log.to_path_buf());
    let look = move || match repair(&Directory::open(&log)?, false) {
        Ok(Repair { damage, .. }) => {
            let Damage { file, offset, why } =
                damage.into_iter().next().expect("a log that needs a repair is damaged somewhere");
            Err(StoreError::Damaged { file, offset, why })
        }
        Err(StoreError::Undamaged) => identity::trust(&dir)
            .map_err(|source| StoreError::Io { doing: "remove the note of damage in the log", source }),
        Err(error) => Err(error),
    };
    Ok(tokio::task::spawn_blocking(look).await??)
}
