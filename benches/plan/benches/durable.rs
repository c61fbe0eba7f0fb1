//! `cargo bench -p plan-bench --bench durable`: how fast commands become durable, with one server and with three.
//!
//! In process: each server has the real sequencer, consensus and segment store in a directory of its own on this
//! machine's disk. Between servers messages go through memory, so the network is not in it; everything else is, three
//! times on the same processors.
//!
//! Three tables. *Log*: batches of 1, 64 and 1,000 events (node messages) proposed to the log itself, one at a time
//! (time from propose to commit) and 256 in flight (rate). *Commands*: 256 proposers, each of which submits a command of
//! one event and waits until it is committed before it submits the next, and a single such proposer. *Fsync*: the same
//! with each write to the disk taking 4 ms longer, and how many fsyncs 1,000 commands cost there, counted at the files.
//! `bare` is one write of 384 bytes and an fdatasync: what no log can beat.

use std::fs::File as OsFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::{Index, Term, Time, Uuid};
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use control::leader_client::NoPeers;
use control::{Control, Leadership};
use fake_network::{Conditions, FakeNetwork, Gone};
use journal::store::{Directory, File, Files};
use journal::{EncodedBatch, Journal, ProposeError};
use model::event::{NodeMessage, NodeMessagesEmitted};
use model::{Actor, Batch, Command, CommandRecord, Digest, LoggedEvent, NodeStatus, Request, RequestId};
use plan_bench::{Committed, is_trial, node, node_id, percentiles};
use raft::{Driving, Found, Member, RaftJournal, Settings, Timings};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const PROPOSERS: usize = 256;

/// The injected delay of a write.
const SLOW: Duration = Duration::from_millis(4);

fn main() {
    let quick = is_trial();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("bare: one write and fdatasync: {}", bare(if quick { 20 } else { 2_000 }));
    for servers in [1, 3] {
        log(&runtime, servers, quick);
    }
    for servers in [1, 3] {
        for slow in [None, Some(SLOW)] {
            commands(&runtime, servers, slow, quick);
        }
    }
}

fn log(runtime: &Runtime, servers: usize, quick: bool) {
    let committed = Committed::default();
    let ear = committed.clone();
    let cluster = runtime.block_on(Cluster::of(servers, |_| ear.clone(), None));
    let journal = cluster.leader();
    let term = journal.status().term;
    committed.wait_for(Index(0));
    let mut last = 0;
    for events in [1, 64, 1_000] {
        let (alone, together) =
            if quick { (5, 64) } else { (2_000_000 / (events + 1_000), 40_000_000 / (events + 1_000) / 10) };
        let mut took = Vec::new();
        for _ in 0..alone {
            last += 1;
            let batch = batch(last, events);
            let start = Instant::now();
            journal.propose(term, batch).unwrap();
            committed.wait_for(Index(last));
            took.push(start.elapsed());
        }
        let batches: Vec<EncodedBatch> = (1..=together as u64).map(|nth| batch(last + nth, events)).collect();
        let start = Instant::now();
        for batch in &batches {
            propose(&journal, term, batch);
            let behind = batch.index().0.saturating_sub(PROPOSERS as u64);
            if behind > last {
                committed.wait_for(Index(behind));
            }
        }
        last += together as u64;
        committed.wait_for(Index(last));
        let rate = (together * events) as f64 / start.elapsed().as_secs_f64();
        println!(
            "log: {servers} servers, {events} events a batch: one at a time {}; {PROPOSERS} in flight {rate:.0} events/s",
            percentiles(&mut took)
        );
    }
    runtime.block_on(cluster.shutdown());
}

/// The log takes only so many bytes at a time.
fn propose(journal: &RaftJournal, term: Term, batch: &EncodedBatch) {
    while let Err(error) = journal.propose(term, batch.clone()) {
        assert_eq!(error, ProposeError::Full, "the leader leads");
        std::thread::yield_now();
    }
}

fn commands(runtime: &Runtime, servers: usize, slow: Option<Duration>, quick: bool) {
    let starting: Vec<_> = (0..servers).map(|_| control::prepare(settings())).collect();
    let cluster = runtime.block_on(Cluster::of(servers, |at| starting[at].inbox.clone(), slow));
    let log = cluster.leader();
    let controls: Vec<Control> = starting
        .into_iter()
        .zip(&cluster.servers)
        .map(|(starting, server)| starting.start(server.clone(), Arc::new(NoPeers), runtime.handle()))
        .collect();
    let at = cluster.servers.iter().position(|server| Arc::ptr_eq(server, &log)).unwrap();
    let control = &controls[at];
    runtime.block_on(async {
        control.leadership().wait_for(|now| *now == Leadership::Mine).await.unwrap();
        ask(control, Command::RegisterNode { document: Box::new(node(0)) }).await;
        ask(control, Command::UpdateNodeStatus { node: node_id(0), claimed: NodeStatus::Ready }).await;
    });
    let each = if quick {
        2
    } else if slow.is_some() {
        200
    } else {
        2_000
    };
    let syncs = cluster.syncs.load(Ordering::Relaxed);
    let start = Instant::now();
    let mut took = runtime.block_on(propose_all(control, PROPOSERS, each));
    let spent = start.elapsed();
    let syncs = cluster.syncs.load(Ordering::Relaxed) - syncs;
    let mut alone = runtime.block_on(propose_all(control, 1, each));
    let syncs = syncs as f64 / servers as f64 / took.len() as f64 * 1_000.0;
    let (disk, counted) = match slow {
        Some(_) => ("each write 4 ms longer", format!(", {syncs:.1} fsyncs a server for 1,000")),
        None => ("native disk", String::new()),
    };
    println!(
        "commands: {servers} servers, {disk}: {PROPOSERS} proposers {:.0} commands/s, {}{counted}; one {}",
        took.len() as f64 / spent.as_secs_f64(),
        percentiles(&mut took),
        percentiles(&mut alone),
    );
    controls.iter().for_each(Control::shutdown);
    runtime.block_on(cluster.shutdown());
}

async fn propose_all(control: &Control, proposers: usize, each: usize) -> Vec<Duration> {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..proposers {
        let control = control.clone();
        all.spawn(async move {
            let mut took = Vec::with_capacity(each);
            for _ in 0..each {
                let messages = vec![NodeMessage::new("Bench", "a message of usual length", Time(0))];
                let start = Instant::now();
                ask(&control, Command::EmitNodeMessages { node: node_id(0), messages }).await;
                took.push(start.elapsed());
            }
            took
        });
    }
    all.join_all().await.into_iter().flatten().collect()
}

async fn ask(control: &Control, command: Command) {
    let request = Request::unnamed(Actor::ANONYMOUS, command);
    control.submit(request).await.expect("a bench asks for what is possible");
}

fn batch(index: u64, events: usize) -> EncodedBatch {
    let message = NodeMessage::new("Bench", "a message of usual length", Time(0));
    let event = NodeMessagesEmitted { node: node_id(0), messages: vec![message] };
    let event = LoggedEvent { command: 0, event: event.into() };
    journal::encode(&Batch {
        epoch: model::EPOCH,
        index: Index(index),
        previous: Index(index - 1),
        time: Time(index as i64),
        proposer: Uuid::NIL,
        digest: Digest::default(),
        commands: vec![CommandRecord { request: RequestId::default(), kind: 13, actor: Actor::ANONYMOUS }],
        events: vec![event; events],
    })
}

/// Servers in this process, founded and led.
struct Cluster {
    servers: Vec<Arc<RaftJournal>>,
    /// Of all servers, where they are counted.
    syncs: Arc<AtomicU64>,
    _dirs: Vec<TempDir>,
}

impl Cluster {
    async fn of<S: journal::Sink>(
        count: usize,
        sink: impl Fn(usize) -> S,
        slow: Option<Duration>,
    ) -> Cluster {
        let (network, gone) = (FakeNetwork::new(0, Conditions::default()), Arc::<Gone>::default());
        let syncs = Arc::<AtomicU64>::default();
        let (mut servers, mut dirs) = (Vec::new(), Vec::new());
        for at in 0..count {
            let dir = tempfile::tempdir().unwrap();
            let settings = Settings {
                dir: dir.path().to_path_buf(),
                node: at as u64 + 1,
                address: format!("server-{at}"),
                segment_bytes: 64 << 20,
                retention: raft::RETENTION,
                archive: None,
                keep: None,
                tail: raft::TAIL,
                found: if count == 1 { Found::Alone } else { Found::Wait },
                timings: Timings::default(),
                seed: at as u64,
            };
            let links = network.links(settings.node, &gone);
            let handle = tokio::runtime::Handle::current();
            let opened = match slow {
                None => RaftJournal::open(settings, links, sink(at), &handle).await,
                Some(slow) => {
                    let directory = Directory::open(dir.path()).unwrap();
                    let files = Arc::new(Counting { directory, syncs: syncs.clone() });
                    let driving =
                        Driving { delay: Arc::new(move || slow), fatal: Arc::new(|why| panic!("{why}")) };
                    RaftJournal::open_on(files, settings, links, sink(at), driving).await
                }
            };
            let server = opened.unwrap();
            network.join(at as u64 + 1, &server, &gone);
            servers.push(server);
            dirs.push(dir);
        }
        let member = |at: usize| Member { node: at as u64 + 1, address: format!("server-{at}"), voter: true };
        if count > 1 {
            let members: Vec<Member> = (0..count).map(member).collect();
            servers[0].bootstrap(&members).await.unwrap();
        }
        let cluster = Cluster { servers, syncs, _dirs: dirs };
        while cluster.leading().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cluster
    }

    fn leading(&self) -> Option<Arc<RaftJournal>> {
        let leads = |server: &&Arc<RaftJournal>| {
            let status = server.status();
            status.leader == Some(status.node)
        };
        self.servers.iter().find(leads).cloned()
    }

    fn leader(&self) -> Arc<RaftJournal> {
        self.leading().expect("it was waited for")
    }

    async fn shutdown(self) {
        for server in &self.servers {
            server.shutdown().await;
        }
    }
}

/// A directory that counts its fsyncs.
struct Counting {
    directory: Directory,
    syncs: Arc<AtomicU64>,
}

struct CountingFile {
    file: Arc<dyn File>,
    syncs: Arc<AtomicU64>,
}

impl Counting {
    fn file(&self, file: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(CountingFile { file: file?, syncs: self.syncs.clone() }))
    }
}

impl Files for Counting {
    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.file(self.directory.open(name))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.file(self.directory.create(name, bytes))
    }

    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.file(self.directory.create_sparse(name, bytes))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_dir()
    }
}

impl File for CountingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync()
    }
}

fn bare(count: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = OsFile::create(Path::new(dir.path()).join("bare")).unwrap();
    file.write_all_at(&vec![0; 4 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let took = (0..count).map(|nth| {
        let start = Instant::now();
        file.write_all_at(&[7; 384], nth as u64 * 384).unwrap();
        file.sync_data().unwrap();
        start.elapsed()
    });
    percentiles(&mut took.collect::<Vec<_>>())
}

fn settings() -> control::Settings {
    control::Settings {
        server: Uuid::NIL,
        garbage: Default::default(),
        scheduler: Default::default(),
        heartbeats: HeartbeatSettings {
            min_ttl: base::Duration::from_secs(3_600),
            grace: base::Duration::from_secs(10),
            failover_ttl: base::Duration::from_secs(3_600),
        },
        broker: BrokerSettings::default(),
        job_count_max: 50_000,
        first_index: Index::ZERO,
        notes: None,
        workers: 0,
        rpc_hold: base::Duration::from_secs(5),
    }
}
