//! Images: kept here, offered to servers that are too far behind, fetched from the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use base::Index;
use bytes::Bytes;
use journal::KeepError;
use journal::store::{ImageMeta, Store};
use model::{Chunk, ChunkId, Image};
use openraft::async_runtime::WatchReceiver;
use openraft::metrics::RaftMetrics;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::config::{Types, Vote};
use crate::driving::{Blocking, Tasks};
use crate::formats;
use crate::journal::{Raft, RaftJournal};
use crate::machine::{Snapshot, snapshot_meta};
use crate::members::MemberError;
use crate::message::{CHUNKS_BYTES_MAX, Message, Offer, Picture, WANTED_MAX};
use crate::network::Network;
use crate::peers::PeerError;
use crate::since_image::Mark;

/// How often a chunk is asked for before the server that has it counts as gone.
const TRIES: u32 = 5;

/// An image that is on its way here.
pub(crate) struct Arrival {
    vote: Vote,
    meta: ImageMeta,
    /// The answer for the leader when it asks next.
    outcome: Arc<Mutex<Option<Result<Vote, String>>>>,
    _task: Tasks,
}

impl RaftJournal {
    pub(crate) fn keep_image(&self, image: Image) -> Result<(), KeepError> {
        let index = image.index;
        if index > self.proposals.committed() {
            return Err(KeepError::NotCommitted(index));
        }
        let Some(last) = self.store.entry_of(index) else {
            let kept = self.store.image().map_or(Index(0), |kept| kept.index);
            return Err(KeepError::NotNewer { index, kept });
        };
        let members = formats::image_members_bytes(&self.since_image.members_at(last.index));
        let failed = |error: journal::store::StoreError| KeepError::Failed(error.to_string());
        let mark = self.since_image.mark_before(index);
        let since = self.store.batches(mark.index.next(), index, usize::MAX).map_err(failed)?;
        // No clock: the age of segments follows from the log's own time.
        let now = match since.last() {
            Some(batch) => batch.time(),
            None => self.store.batches(index, index, 0).map_err(failed)?[0].time(),
        };
        self.store.keep(ImageMeta { last, index, members, chain: None }, image.chunks, now)?;
        let more: u64 = since.iter().map(|batch| batch.bytes().len() as u64).sum();
        let upto = Mark { index, entry: last.index, bytes: mark.bytes + more };
        let purge = self.since_image.kept(upto, self.tail);
        self.runtime.spawn(acknowledge(self.raft.clone(), last.index, purge));
        Ok(())
    }

    /// The answer for a leader that offers an image: what has become of it.
    pub(crate) fn take_offer(&self, from: u64, offer: Offer) -> Result<Message, PeerError> {
        let mut arrival = self.arrival.lock();
        if let Some(known) = arrival.as_ref() {
            let same = known.vote == offer.vote && known.meta == offer.picture.meta;
            let outcome = known.outcome.lock().take();
            match outcome {
                None if same => return Ok(Message::Fetching),
                None if known.vote.leader_id.term > offer.vote.leader_id.term => {
                    return Err(PeerError::Refused("a later leader sends an image".into()));
                }
                Some(Ok(vote)) if same => {
                    *arrival = None;
                    return Ok(Message::Installed(vote));
                }
                Some(Err(why)) if same => {
                    *arrival = None;
                    return Err(PeerError::Refused(why));
                }
                // It was about another image, or for another leader.
                None | Some(_) => {}
            }
        }
        tracing::info!(from, index = offer.picture.meta.index.0, "an image is fetched from the leader");
        let outcome: Arc<Mutex<Option<Result<Vote, String>>>> = Arc::default();
        let (vote, meta, task) = (offer.vote, offer.picture.meta.clone(), Tasks::default());
        let (fetching, place) = (self.fetcher().install(self.raft.clone(), from, offer), outcome.clone());
        task.add(self.runtime.spawn(async move { *place.lock() = Some(fetching.await) }));
        *arrival = Some(Arrival { vote, meta, outcome, _task: task });
        Ok(Message::Fetching)
    }

    pub(crate) fn picture(&self) -> Option<Picture> {
        self.store.chunk_ids().map(|(meta, chunks)| Picture { meta, chunks })
    }

    /// The first of `wanted` from `offset` on, and as many of the others as fit.
    pub(crate) fn chunks(&self, wanted: &[ChunkId], offset: u64) -> Result<Message, PeerError> {
        let chunk = |id: &ChunkId| match self.store.chunk(*id) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(PeerError::Refused(format!("{id:?} is not kept any more"))),
            Err(error) => {
                tracing::error!(%error, "a chunk that a follower needs cannot be read");
                Err(PeerError::Refused(format!("{id:?} cannot be read")))
            }
        };
        let [first, others @ ..] = wanted else { return Ok(Message::Chunks { left: 0, chunks: vec![] }) };
        let first = chunk(first)?;
        if offset > first.len() as u64 {
            return Err(PeerError::Refused(format!("the chunk has {} bytes", first.len())));
        }
        let piece = first.slice(offset as usize..first.len().min(offset as usize + CHUNKS_BYTES_MAX));
        let left = first.len() as u64 - offset - piece.len() as u64;
        let (mut bytes, mut chunks) = (piece.len(), vec![piece]);
        for id in others.iter().take(if left == 0 { WANTED_MAX - 1 } else { 0 }) {
            let next = chunk(id)?;
            bytes += next.len();
            if bytes > CHUNKS_BYTES_MAX {
                break;
            }
            chunks.push(next);
        }
        Ok(Message::Chunks { left, chunks })
    }

    /// Gets the state from the leader anew: the sink gets `restored` with the leader's image, and then `committed`
    /// with the batches after it from this server's own log. For a follower whose state is not what the others have.
    ///
    /// The image stays here, in place of the one this server made, unless that is newer: keep a new one soon.
    ///
    /// # Errors
    /// [`MemberError::NotLeading`] when no leader is known; [`MemberError::Invalid`] on the leader itself, and when it has
    /// no image.
    pub async fn refetch(&self) -> Result<(), MemberError> {
        let (leader, address) = {
            let votes = self.raft.server_metrics();
            let votes = votes.borrow_watched();
            let leader = votes.current_leader.ok_or(MemberError::NotLeading { leader: None })?;
            let node = votes.membership_config.membership().get_node(&leader).cloned();
            (leader, node.ok_or(MemberError::Unknown(leader))?.addr)
        };
        if leader == self.network.node {
            return Err(MemberError::Invalid("a leader has nobody to get its state from".into()));
        }
        let Message::Image(picture) = self.network.ask(leader, &address, Message::WhichImage).await? else {
            return Err(PeerError::Refused("it gave an answer to another question".into()).into());
        };
        let Some(picture) = picture else {
            return Err(MemberError::Invalid(format!("server {leader} keeps no image yet")));
        };
        let chunks = self.fetcher().fetch(leader, &address, &picture.chunks).await?;
        if picture.meta.index.next() < self.store.horizon() {
            let why = format!("the image of server {leader} is older than the log here: ask again later");
            return Err(MemberError::Invalid(why));
        }
        let image = self.fetcher().whole(picture.meta.index, chunks.clone()).await?;
        let reached = |metrics: &RaftMetrics<Types>| {
            metrics.last_applied.map(|applied| applied.index) >= Some(picture.meta.last.index)
        };
        self.wait_until(reached).await?;
        let (store, meta) = (self.store.clone(), picture.meta);
        let kept = self.blocking.run(move || store.install(meta, chunks, Box::new(|| {}))).await;
        match kept {
            Ok(Ok(())) | Ok(Err(KeepError::NotNewer { .. })) => {}
            Ok(Err(why)) => return Err(MemberError::Stopped(why.to_string())),
            Err(why) => return Err(MemberError::Stopped(why.to_string())),
        }
        let retold = self.raft.with_state_machine(move |machine| Box::pin(machine.retell(image)));
        let retold = retold.await.map_err(|why| MemberError::Stopped(why.to_string()))?;
        retold.map_err(|why| MemberError::Stopped(why.to_string()))
    }

    fn fetcher(&self) -> Fetcher {
        let (network, store) = (self.network.clone(), self.store.clone());
        Fetcher { network, store, blocking: self.blocking, pause: self.timings.heartbeat }
    }
}

/// Informs openraft of an image, and drops what lies before it and before a tail that followers may still need.
async fn acknowledge(raft: Raft, last: u64, purge: Option<u64>) {
    if raft.trigger().snapshot().await.is_err() {
        return;
    }
    let Some(purge) = purge else { return };
    let known = |metrics: &RaftMetrics<Types>| metrics.snapshot.map(|snapshot| snapshot.index) >= Some(last);
    if raft.metrics().wait_until(known).await.is_ok() {
        // Consensus may have ended by now.
        raft.trigger().purge_log(purge).await.unwrap_or(());
    }
}

/// Gets images from other servers.
struct Fetcher {
    network: Network,
    store: Arc<Store>,
    blocking: Blocking,
    /// The pause before a request is repeated.
    pause: std::time::Duration,
}

impl Fetcher {
    /// Fetches what is missing of an image, and has openraft put it in place.
    async fn install(self, raft: Raft, from: u64, offer: Offer) -> Result<Vote, String> {
        let Offer { vote, address, picture } = offer;
        // Openraft only looks at the vote then.
        let needed = self.store.committed() < Some(picture.meta.last);
        let chunks = match needed {
            true => self.fetch(from, &address, &picture.chunks).await.map_err(|why| why.to_string())?,
            false => Vec::new(),
        };
        let (last, about) = (picture.meta.last, snapshot_meta(&picture.meta));
        let about = about.map_err(|why| why.to_string())?;
        let snapshot = Snapshot { meta: picture.meta, chunks };
        let snapshot = openraft::Snapshot { meta: about, snapshot };
        let installed = raft.install_full_snapshot(vote, snapshot).await.map_err(|why| why.to_string())?;
        // If it was not needed, openraft answers although what made it needless may not be safe yet, and the leader
        // would count on it.
        while installed.vote == vote && self.store.written() <= last.index {
            sleep(self.pause).await;
        }
        Ok(installed.vote)
    }

    /// The chunks of an image, in order: with their bytes, which were held to their ids, unless the newest image here has
    /// them too.
    async fn fetch(&self, from: u64, address: &str, chunks: &[ChunkId]) -> Result<Vec<Chunk>, PeerError> {
        let (store, wanted) = (self.store.clone(), chunks.to_vec());
        let missing = self.blocking.run(move || missing(&store, &wanted)).await;
        let mut missing = missing.map_err(|why| PeerError::Unreachable(why.to_string()))?;
        let mut fetched: BTreeMap<ChunkId, Bytes> = BTreeMap::new();
        while !missing.is_empty() {
            let more = self.some(from, address, &missing).await?;
            missing.drain(..more.len());
            fetched.extend(more);
        }
        Ok(chunks.iter().map(|id| Chunk { id: *id, bytes: fetched.get(id).cloned() }).collect())
    }

    /// One or more of the first of `wanted`.
    async fn some(
        &self,
        from: u64,
        address: &str,
        wanted: &[ChunkId],
    ) -> Result<Vec<(ChunkId, Bytes)>, PeerError> {
        let wanted = &wanted[..wanted.len().min(WANTED_MAX)];
        let mut begun: Vec<u8> = Vec::new();
        loop {
            let (mut chunks, left) = self.ask(from, address, wanted, begun.len() as u64).await?;
            if left == 0 {
                if !begun.is_empty() {
                    begun.extend_from_slice(&chunks[0]);
                    chunks[0] = begun.into();
                }
                let named: Vec<(ChunkId, Bytes)> = wanted.iter().copied().zip(chunks).collect();
                return match named.iter().find(|(id, bytes)| ChunkId::of(bytes) != *id) {
                    Some((id, _)) => Err(PeerError::Refused(format!("the bytes it sent are not {id:?}"))),
                    None => Ok(named),
                };
            }
            begun.extend_from_slice(&chunks[0]);
        }
    }

    /// At least one piece that has bytes, or ends its chunk; and how many bytes of that chunk are left.
    async fn ask(
        &self,
        from: u64,
        address: &str,
        wanted: &[ChunkId],
        offset: u64,
    ) -> Result<(Vec<Bytes>, u64), PeerError> {
        let mut tries = 0;
        loop {
            let asked = Message::Wanted { chunks: wanted.to_vec(), offset };
            match self.network.ask(from, address, asked).await {
                Ok(Message::Chunks { left, chunks }) => {
                    let progress = chunks.first().is_some_and(|piece| left == 0 || !piece.is_empty());
                    return match progress && chunks.len() <= wanted.len() {
                        true => Ok((chunks, left)),
                        false => Err(PeerError::Refused("it sent other chunks than asked for".into())),
                    };
                }
                Ok(_) => {
                    return Err(PeerError::Refused("it gave an answer to another question".into()));
                }
                Err(refused @ PeerError::Refused(_)) => return Err(refused),
                Err(gone) if tries == TRIES => return Err(gone),
                Err(_) => tries += 1,
            }
            sleep(self.pause).await;
        }
    }

    /// An image of which every chunk has its bytes.
    async fn whole(&self, index: Index, chunks: Vec<Chunk>) -> Result<Image, MemberError> {
        let store = self.store.clone();
        let filled = self.blocking.run(move || {
            let filled = chunks.into_iter().map(|chunk| match chunk.bytes {
                Some(_) => Ok(chunk),
                None => match store.chunk(chunk.id) {
                    Ok(Some(bytes)) => Ok(Chunk { id: chunk.id, bytes: Some(bytes) }),
                    Ok(None) => Err(io::Error::other("an image was replaced meanwhile")),
                    Err(error) => Err(io::Error::other(error)),
                },
            });
            filled.collect::<Result<Vec<Chunk>, io::Error>>()
        });
        let stopped = |why: String| MemberError::Stopped(why);
        let filled = filled.await.map_err(|why| stopped(why.to_string()))?;
        Ok(Image { index, chunks: filled.map_err(|why| stopped(why.to_string()))? })
    }
}

/// Which chunks of an image the newest one here lacks, or has damaged: each once, in order.
fn missing(store: &Store, chunks: &[ChunkId]) -> Vec<ChunkId> {
    let here: BTreeSet<ChunkId> = store.chunk_ids().map(|(_, ids)| ids).into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    let mut lacks =
        |id: &ChunkId| seen.insert(*id) && !(here.contains(id) && matches!(store.chunk(*id), Ok(Some(_))));
    chunks.iter().filter(|id| lacks(id)).copied().collect()
}
