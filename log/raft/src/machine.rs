//! openraft's state machine: hands committed batches and images on. The state they make lies behind the sink.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Term};
use futures_util::{Stream, TryStreamExt};
use journal::KeepError;
use journal::store::{ImageMeta, Store, StoreError};
use model::{Chunk, Image};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::mpsc::Sender;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::config::{LogId, SnapshotMeta, StoredMembership, Types};
use crate::driving::Blocking;
use crate::ledger::Ledger;
use crate::stored;
use crate::teller::News;

/// How long a server without space for the image it was sent waits before it looks again.
const FULL_DELAY: Duration = Duration::from_secs(1);
/// Read at once while batches are told again.
const RETOLD_BYTES: usize = 1 << 20;

/// What openraft calls a snapshot: on its way from a leader the ids of its chunks, on its way into a server their bytes
/// too, but for those that the server has.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub meta: ImageMeta,
    pub chunks: Vec<Chunk>,
}

/// In memory only: after a restart the image kept last comes by again, and every committed entry after it.
pub(crate) struct Machine {
    store: Arc<Store>,
    blocking: Blocking,
    news: Sender<News>,
    ledger: Arc<Ledger>,
    /// Told when an image is in place.
    installed: watch::Sender<()>,
    applied: Option<LogId>,
    members: StoredMembership,
}

impl Machine {
    pub fn new(
        store: Arc<Store>,
        blocking: Blocking,
        news: Sender<News>,
        ledger: Arc<Ledger>,
        installed: watch::Sender<()>,
    ) -> Machine {
        let (applied, members) = (None, StoredMembership::default());
        Machine { store, blocking, news, ledger, installed, applied, members }
    }

    async fn tell(&self, news: News) -> io::Result<()> {
        self.news.send(news).await.map_err(|_| io::Error::other("what receives committed batches is gone"))
    }

    /// Begins anew from an image of this server's store.
    pub async fn begin(&mut self, meta: ImageMeta, image: Image) -> io::Result<()> {
        self.members = stored::image_members(&meta.members)?;
        self.applied = Some(stored::log_id(meta.last));
        self.ledger.restored(self.members.clone(), meta.index, meta.last.index);
        self.tell(News::Restored(image)).await
    }

    /// Tells `image`, which the applied entries include, and the batches after it once more.
    ///
    /// # Errors
    /// When the log has not all of them any more; nothing is told then.
    pub async fn retell(&mut self, image: Image) -> io::Result<()> {
        let upto = self.applied.map_or(Index(0), |applied| self.store.batch_at(applied.index));
        let mut next = image.index.next();
        if next < self.store.horizon() {
            let oldest = self.store.horizon();
            return Err(io::Error::other(format!(
                "batch {next} is needed, and the log begins with {oldest}"
            )));
        }
        self.tell(News::Restored(image)).await?;
        while next <= upto {
            let batches = match self.store.batches(next, upto, RETOLD_BYTES) {
                Ok(batches) => batches,
                // Whoever listens has half of it.
                Err(why) => return self.tell(News::Halted(why.to_string())).await,
            };
            for batch in batches {
                next = batch.index().next();
                self.tell(News::Committed(batch)).await?;
            }
        }
        Ok(())
    }

    /// A server without space for it waits, and neither applies nor answers meanwhile: its log cannot go on without.
    async fn put_in_place(&self, snapshot: Snapshot) -> io::Result<()> {
        loop {
            let (tell, told) = oneshot::channel();
            let (store, Snapshot { meta, chunks }) = (self.store.clone(), snapshot.clone());
            let install = move || store.install(meta, chunks, Box::new(move || tell.send(()).unwrap_or(())));
            match self.blocking.run(install).await.map_err(io::Error::other)? {
                Ok(()) => return told.await.map_err(|_| io::Error::other(StoreError::Stopped)),
                Err(KeepError::DiskFull) => {
                    tracing::warn!("the disk is full: there is no space for the image of the leader");
                    sleep(FULL_DELAY).await;
                }
                Err(other) => return Err(io::Error::other(other)),
            }
        }
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = Snapshot;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.members.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            self.applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Normal(data) => {
                    let (index, bytes) = (data.batch.index(), data.batch.bytes().len());
                    self.ledger.batch(index, entry.log_id.index, bytes);
                    self.tell(News::Committed(data.batch)).await?;
                }
                // A leader begins its term with one.
                EntryPayload::Blank => {
                    let term = Term(entry.log_id.committed_leader_id().term);
                    self.tell(News::Opened(term)).await?;
                }
                EntryPayload::Membership(members) => {
                    self.members = StoredMembership::new(Some(entry.log_id), members);
                    self.ledger.members(self.members.clone());
                }
            }
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        (force || self.store.image().is_some()).then(|| Builder(self.store.clone()))
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder(self.store.clone())
    }

    async fn install_snapshot(&mut self, _: &SnapshotMeta, snapshot: Snapshot) -> io::Result<()> {
        self.put_in_place(snapshot).await?;
        self.installed.send_replace(());
        let store = self.store.clone();
        let read = self.blocking.run(move || store.read_image()).await.map_err(io::Error::other)?;
        let (meta, image) =
            read.map_err(io::Error::other)?.ok_or_else(|| io::Error::other("no image is kept"))?;
        self.begin(meta, image).await
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> io::Result<Option<openraft::alias::SnapshotOf<Types, Snapshot>>> {
        newest(&self.store)
    }
}

/// Images are made by whoever has the state. What openraft is told to build is what was kept last.
pub(crate) struct Builder(Arc<Store>);

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Snapshot;

    async fn build_snapshot(&mut self) -> io::Result<openraft::alias::SnapshotOf<Types, Snapshot>> {
        newest(&self.0)?.ok_or_else(|| io::Error::other("no image is kept"))
    }
}

/// The image kept last, without the bytes of its chunks.
fn newest(store: &Store) -> io::Result<Option<openraft::alias::SnapshotOf<Types, Snapshot>>> {
    let Some((meta, ids)) = store.chunk_ids() else { return Ok(None) };
    let chunks = ids.into_iter().map(|id| Chunk { id, bytes: None }).collect();
    let about = snapshot_meta(&meta)?;
    Ok(Some(openraft::Snapshot { meta: about, snapshot: Snapshot { meta, chunks } }))
}

pub(crate) fn snapshot_meta(meta: &ImageMeta) -> io::Result<SnapshotMeta> {
    let last_log_id = Some(stored::log_id(meta.last));
    Ok(SnapshotMeta { last_log_id, last_membership: stored::image_members(&meta.members)? })
}
