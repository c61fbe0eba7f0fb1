//! openraft's state machine: passes committed batches and images to the sink, which makes the state of them.

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
use crate::formats;
use crate::notifier::News;
use crate::since_image::SinceImage;

/// How long a server without space for the image it was sent waits before it looks again.
const FULL_DELAY: Duration = Duration::from_secs(1);
/// Bytes read at once while batches are sent to the sink again.
const RETOLD_BYTES: usize = 1 << 20;

/// What openraft calls a snapshot: on its way from a leader the ids of its chunks, on its way into a server their bytes
/// too, but for those that the server has.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub meta: ImageMeta,
    pub chunks: Vec<Chunk>,
}

/// In memory only: after a restart the last image is applied again, and every committed entry after it.
pub(crate) struct Machine {
    store: Arc<Store>,
    blocking: Blocking,
    news: Sender<News>,
    since_image: Arc<SinceImage>,
    /// Notified when an image is in place.
    installed: watch::Sender<()>,
    applied: Option<LogId>,
    members: StoredMembership,
}

impl Machine {
    pub fn new(
        store: Arc<Store>,
        blocking: Blocking,
        news: Sender<News>,
        since_image: Arc<SinceImage>,
        installed: watch::Sender<()>,
    ) -> Machine {
        let (applied, members) = (None, StoredMembership::default());
        Machine { store, blocking, news, since_image, installed, applied, members }
    }

    async fn notify(&self, news: News) -> io::Result<()> {
        self.news.send(news).await.map_err(|_| io::Error::other("what receives committed batches is gone"))
    }

    /// Begins anew from an image of this server's store.
    pub async fn begin(&mut self, meta: ImageMeta, image: Image) -> io::Result<()> {
        self.members = formats::image_members(&meta.members)?;
        self.applied = Some(formats::log_id(meta.last));
        self.since_image.restored(self.members.clone(), meta.index, meta.last.index);
        self.notify(News::Restored(image)).await
    }

    /// Sends the sink `image`, which is older than what is applied, and the batches after it once more.
    ///
    /// # Errors
    /// When the log has not all of them any more; the sink is not notified then.
    pub async fn retell(&mut self, image: Image) -> io::Result<()> {
        let upto = self.applied.map_or(Index(0), |applied| self.store.batch_at(applied.index));
        let mut next = image.index.next();
        if next < self.store.horizon() {
            let oldest = self.store.horizon();
            return Err(io::Error::other(format!(
                "batch {next} is needed, and the log begins with {oldest}"
            )));
        }
        self.notify(News::Restored(image)).await?;
        while next <= upto {
            let batches = match self.store.batches(next, upto, RETOLD_BYTES) {
                Ok(batches) => batches,
                // The sink has half of it.
                Err(why) => return self.notify(News::Halted(why.to_string())).await,
            };
            for batch in batches {
                next = batch.index().next();
                self.notify(News::Committed(batch)).await?;
            }
        }
        Ok(())
    }

    /// A server without space for it waits, and neither applies nor answers meanwhile: its log cannot go on without.
    async fn put_in_place(&self, snapshot: Snapshot) -> io::Result<()> {
        loop {
            let (done, installed) = oneshot::channel();
            let (store, Snapshot { meta, chunks }) = (self.store.clone(), snapshot.clone());
            let install = move || store.install(meta, chunks, Box::new(move || done.send(()).unwrap_or(())));
            match self.blocking.run(install).await.map_err(io::Error::other)? {
                Ok(()) => return installed.await.map_err(|_| io::Error::other(StoreError::Stopped)),
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
                    self.since_image.batch(index, entry.log_id.index, bytes);
                    self.notify(News::Committed(data.batch)).await?;
                }
                // A leader begins its term with one.
                EntryPayload::Blank => {
                    let term = Term(entry.log_id.committed_leader_id().term);
                    self.notify(News::Opened(term)).await?;
                }
                EntryPayload::Membership(members) => {
                    self.members = StoredMembership::new(Some(entry.log_id), members);
                    self.since_image.members(self.members.clone());
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

/// The owner of the state makes images; what openraft asks to build is the one kept last.
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
    let last_log_id = Some(formats::log_id(meta.last));
    Ok(SnapshotMeta { last_log_id, last_membership: formats::image_members(&meta.members)? })
}
