//! Opening a journal: on threads and a directory, or step by step on any files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base::Rng;
use journal::Sink;
use journal::store::{self, ArchiveSettings, Directory, Fatal, Files, KeepSettings, Store};
use openraft::{BasicNode, Config};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::bounds::Bounds;
use crate::driving::{self, Blocking, Driving, Life, Tasks, Workers};
use crate::formats;
use crate::journal::{Archive, ArchivePlace, Found, Keep, OpenError, Raft, RaftJournal, Settings};
use crate::leadership;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::network::Network;
use crate::notifier::{self, News, Notifier};
use crate::peers::Peers;
use crate::proposals::Proposals;
use crate::reads::Reads;
use crate::runtime::Runtime;
use crate::since_image::SinceImage;

/// What a journal is made of besides consensus.
struct Parts {
    store: Arc<Store>,
    proposals: Arc<Proposals>,
    news: Sender<News>,
    workers: Workers,
    blocking: Blocking,
    fatal: Fatal,
}

impl RaftJournal {
    /// Recovers the log, passes what is known to be committed to `sink`, and takes part in elections. What is known is the
    /// image that was kept last, if there is one, and every batch after it.
    ///
    /// Consensus runs on `runtime`. The sink is called from a thread of the log's own; on an orderly
    /// [`RaftJournal::shutdown`] it is dropped without a further call. If it panics, the process ends.
    ///
    /// # Errors
    /// [`store::StoreError::Damaged`] when what was safely written is not there any more. The log must not go on then: with peers,
    /// move it away and join again under another number, since what this one promised them is forgotten.
    pub async fn open(
        settings: Settings,
        peers: Arc<dyn Peers>,
        sink: impl Sink,
        runtime: &Handle,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let fatal: Fatal = Arc::new(store::abort);
        let (dir, archive, at) = (settings.dir.clone(), settings.archive.clone(), fatal.clone());
        let keep = settings.keep.clone();
        let mut how = store_settings(&settings, store::Driving::Threads);
        let opened = runtime.spawn_blocking(move || {
            let files = Directory::open(&dir)?;
            how.archive = archive.map(open_archive).transpose()?;
            how.keep = keep.map(open_kept).transpose()?.flatten();
            Ok::<_, OpenError>(Store::open(Arc::new(files), how, at)?)
        });
        let store = Arc::new(opened.await??);
        let proposals = Arc::new(Proposals::new());
        let (news, queue) = notifier::news();
        let notifier = Notifier::new(sink, proposals.clone(), fatal.clone());
        let notifier = thread::Builder::new().name("log-sink".into()).spawn(move || notifier.run(queue));
        let workers = Workers::Threads { notifier: notifier.map_err(OpenError::Thread)? };
        let parts = Parts { store, proposals, news, workers, blocking: Blocking::Elsewhere, fatal };
        RaftJournal::run(settings, peers, parts, runtime).await
    }

    /// The same without a thread and without the clock of the machine: on a runtime of one thread with virtual time, the
    /// same seeds give the same run. The disk is `files`, and the directories in `settings` are not used: there is no
    /// archive. Dropping the journal is a crash.
    pub async fn open_on(
        files: Arc<dyn Files>,
        settings: Settings,
        peers: Arc<dyn Peers>,
        sink: impl Sink,
        driving: Driving,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let Driving { delay, fatal } = driving;
        let (steps, work) = driving::by_steps();
        let store = Store::open(files, store_settings(&settings, steps), fatal.clone())?;
        let store = Arc::new(store);
        let proposals = Arc::new(Proposals::new());
        let (news, queue) = notifier::news();
        let notifier = Notifier::new(sink, proposals.clone(), fatal.clone());
        let workers = Workers::Steps {
            notifier: tokio::spawn(notifier.run_as_task(queue)),
            disk: tokio::spawn(driving::step(store.clone(), work, delay)),
        };
        let parts = Parts { store, proposals, news, workers, blocking: Blocking::Here, fatal };
        RaftJournal::run(settings, peers, parts, &Handle::current()).await
    }

    async fn run(
        settings: Settings,
        peers: Arc<dyn Peers>,
        parts: Parts,
        runtime: &Handle,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let Parts { store, proposals, news, workers, blocking, fatal } = parts;
        let (timings, tail, life) = (settings.timings.clone(), settings.tail, Life::new());
        let term = store.vote().map(|vote| formats::vote(&vote)).transpose().map_err(consensus)?;
        let term = term.map(|vote| vote.leader_id.term);
        let network = Network {
            node: settings.node,
            address: settings.address.clone(),
            peers,
            bounds: Arc::new(Bounds::new(term, timings.election.start)),
            patience: timings.patience(),
            pause: timings.heartbeat,
        };
        // Without a vote it has never followed a leader.
        let quiet = if store.vote().is_some() { timings.election.end } else { Duration::ZERO };
        // Servers that are started together should not ask for votes together.
        let spread = (timings.election.end - timings.election.start).as_millis() as u64;
        let later = Rng::stream(settings.seed, "first election").below(spread.max(1));
        let votes_from = Instant::now() + quiet;
        let (since_image, (done, installed)) = (Arc::<SinceImage>::default(), watch::channel(()));
        let log = LogStore::new(store.clone(), life.watch(), installed);
        let machine = Machine::new(store.clone(), blocking, news.clone(), since_image.clone(), done);
        let begun = begin(store.clone(), blocking, machine);
        let joining = network.clone();
        let campaign = quiet.is_zero();
        let started = async move { start(settings, campaign, joining, log, begun.await?).await };
        let raft = match runtime.spawn(started).await? {
            Ok(raft) => raft,
            Err(error) => {
                // Tasks of the library may hold the store a moment longer, but the directory is free at once.
                drop(news);
                workers.end(store).await;
                return Err(error);
            }
        };
        let tasks = Tasks::default();
        let watch = leadership::watch(raft.clone(), proposals.clone(), news.clone(), fatal);
        tasks.add(runtime.spawn(watch));
        tasks.add(runtime.spawn(leadership::watch_lease(raft.clone(), proposals.clone(), timings.clone())));
        if !quiet.is_zero() {
            let from = votes_from + Duration::from_millis(later);
            tasks.add(runtime.spawn(leadership::campaign_from(raft.clone(), from)));
        }
        tasks.add(runtime.spawn(leadership::mend(raft.clone(), proposals.clone(), timings.clone())));
        Ok(Arc::new(RaftJournal {
            reads: Reads::start(&raft, &store, &timings, runtime),
            raft,
            store,
            proposals,
            since_image,
            tail,
            arrival: Mutex::new(None),
            blocking,
            network,
            timings,
            last_contact: Mutex::new(None),
            votes_from,
            news,
            workers: Mutex::new(Some(workers)),
            life,
            tasks,
            runtime: runtime.clone(),
        }))
    }
}

fn store_settings(settings: &Settings, driving: store::Driving) -> store::Settings {
    let Settings { segment_bytes, retention, .. } = *settings;
    store::Settings { segment_bytes, retention, archive: None, keep: None, driving }
}

fn open_archive(archive: Archive) -> Result<ArchiveSettings, OpenError> {
    let Archive { place, max_bytes } = archive;
    let files: Arc<dyn Files> = match place {
        ArchivePlace::Directory(path) => match Directory::open(&path) {
            Ok(files) => Arc::new(files),
            Err(source) => return Err(OpenError::Archive { path, source }),
        },
        ArchivePlace::Files(files) => files,
    };
    Ok(ArchiveSettings { files, max_bytes })
}

/// `None` where nothing is to be kept and nothing was.
fn open_kept(keep: Keep) -> Result<Option<KeepSettings>, OpenError> {
    let Keep { dir, kinds, max_bytes } = keep;
    if kinds.is_empty() && !dir.exists() {
        return Ok(None);
    }
    match Directory::open(&dir) {
        Ok(files) => Ok(Some(KeepSettings { files: Arc::new(files), kinds, max_bytes })),
        Err(source) => Err(OpenError::Kept { path: dir, source }),
    }
}

/// Passes the last image to the sink: everything continues from there.
async fn begin(store: Arc<Store>, blocking: Blocking, mut machine: Machine) -> Result<Machine, OpenError> {
    if let Some((meta, image)) = blocking.run(move || store.read_image()).await?? {
        machine.begin(meta, image).await.map_err(consensus)?;
    }
    Ok(machine)
}

/// Starts consensus, and founds a cluster if this server is to be one by itself.
async fn start(
    settings: Settings,
    campaign: bool,
    network: Network,
    log: LogStore,
    machine: Machine,
) -> Result<Raft, OpenError> {
    let (node, found) = (settings.node, settings.found);
    let config = settings.timings.config().map_err(consensus)?;
    let config = Arc::new(Config { enable_elect: campaign, ..config });
    let raft = Runtime::scope(settings.seed, Raft::new(node, config, network, log, machine));
    let raft = raft.await.map_err(consensus)?;
    if !raft.is_initialized().await.map_err(consensus)? {
        if found == Found::Alone {
            let alone = BTreeMap::from([(node, BasicNode { addr: settings.address })]);
            raft.initialize(alone).await.map_err(consensus)?;
        }
        return Ok(raft);
    }
    let members = raft.with_raft_state(|state| state.membership_state.effective().clone());
    let voters: Vec<u64> = members.await.map_err(consensus)?.voter_ids().collect();
    if found == Found::Alone && !voters.contains(&node) {
        raft.shutdown().await?;
        return Err(OpenError::OtherServer { node, members: voters });
    }
    if voters == [node] {
        // No other server can be leading, so there is no use in waiting for a heartbeat.
        raft.trigger().elect(false).await.map_err(consensus)?;
    }
    Ok(raft)
}

fn consensus(error: impl std::fmt::Display) -> OpenError {
    OpenError::Consensus(error.to_string())
}
