//! A server in a directory, and what its sink is notified of.

pub mod cluster;
pub mod simulation;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Term, Time, Uuid};
use journal::store::RETENTION;
use journal::{EncodedBatch, Journal, Sink};
use model::event::{NodeMessage, NodeMessagesEmitted};
use model::{Actor, Batch, CommandRecord, LoggedEvent, NodeId, RequestId};
use raft::{Found, NoPeers, OpenError, Peers, RaftJournal, Settings, TAIL, Timings};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(120);
pub const SEGMENT: u64 = 4 << 20;

#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Committed(EncodedBatch),
    Restored(model::Image),
    Leading(Term),
    Following(Option<u64>),
    Halted(String),
}

/// Short, so that a test elects in a fraction of a second, and long enough for a machine that does something else.
pub fn timings() -> Timings {
    Timings {
        heartbeat: Duration::from_millis(50),
        election: Duration::from_millis(400)..Duration::from_millis(800),
    }
}

pub fn settings(dir: &Path, node: u64, found: Found) -> Settings {
    Settings {
        dir: dir.to_path_buf(),
        node,
        address: if node == 1 { "here:4647".into() } else { format!("there-{node}:4647") },
        segment_bytes: SEGMENT,
        retention: RETENTION,
        archive: None,
        keep: None,
        tail: TAIL,
        found,
        timings: timings(),
        seed: node,
    }
}

pub struct Server {
    pub journal: Arc<RaftJournal>,
    heard: UnboundedReceiver<Heard>,
}

impl Server {
    pub async fn open(dir: &Path) -> Server {
        Server::try_open(dir, 1).await.unwrap()
    }

    pub async fn open_with(dir: &Path, segment_bytes: u64) -> Server {
        let settings = Settings { segment_bytes, ..settings(dir, 1, Found::Alone) };
        Server::start(settings, Arc::new(NoPeers)).await.unwrap()
    }

    pub async fn try_open(dir: &Path, node: u64) -> Result<Server, OpenError> {
        Server::start(settings(dir, node, Found::Alone), Arc::new(NoPeers)).await
    }

    pub async fn start(settings: Settings, peers: Arc<dyn Peers>) -> Result<Server, OpenError> {
        let (tell, heard) = unbounded_channel();
        let journal = RaftJournal::open(settings, peers, Ear(tell), &Handle::current()).await?;
        Ok(Server { journal, heard })
    }

    pub async fn heard(&mut self) -> Heard {
        timeout(PATIENCE, self.heard.recv())
            .await
            .expect("the sink hears something")
            .expect("the sink is there")
    }

    /// What was received and not read by the test yet.
    pub fn heard_so_far(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        while let Ok(more) = self.heard.try_recv() {
            heard.push(more);
        }
        heard
    }

    /// The term, if that is what is received next.
    pub async fn leading(&mut self) -> Term {
        match self.heard().await {
            Heard::Leading(term) => term,
            other => panic!("{other:?}"),
        }
    }

    /// How many batches come by before leading, in order from 1.
    pub async fn replayed(&mut self) -> u64 {
        let mut count = 0;
        loop {
            match self.heard().await {
                Heard::Committed(batch) => {
                    count += 1;
                    assert_eq!(batch.index(), Index(count));
                }
                Heard::Leading(_) => return count,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Commits them one by one.
    pub async fn commit(&mut self, term: Term, indexes: RangeInclusive<u64>) {
        for index in indexes {
            self.journal.propose(term, batch(index, 30)).unwrap();
            assert_eq!(self.heard().await, Heard::Committed(batch(index, 30)));
        }
    }
}

pub struct Ear(pub UnboundedSender<Heard>);

/// Who is not listened to any more speaks in vain.
impl Sink for Ear {
    fn committed(&mut self, batch: EncodedBatch) {
        self.0.send(Heard::Committed(batch)).unwrap_or(());
    }

    fn restored(&mut self, image: model::Image) {
        self.0.send(Heard::Restored(image)).unwrap_or(());
    }

    fn leading(&mut self, term: Term) {
        self.0.send(Heard::Leading(term)).unwrap_or(());
    }

    fn following(&mut self, leader: Option<u64>) {
        self.0.send(Heard::Following(leader)).unwrap_or(());
    }

    fn halted(&mut self, why: String) {
        self.0.send(Heard::Halted(why)).unwrap_or(());
    }
}

/// A batch of one event with `text` bytes of text.
pub fn batch(index: u64, text: usize) -> EncodedBatch {
    batch_by(1, index, text)
}

/// The same, with a mark of who made it.
pub fn batch_by(proposer: u64, index: u64, text: usize) -> EncodedBatch {
    journal::encode(&batch_of(proposer, index, 1, text))
}

pub fn batch_of(proposer: u64, index: u64, events: u64, text: usize) -> Batch {
    let node = NodeId(Uuid::from(u128::from(index)));
    let messages = vec![NodeMessage::new("Test", &"x".repeat(text), Time(index as i64))];
    let event = LoggedEvent { command: 0, event: NodeMessagesEmitted { node, messages }.into() };
    Batch {
        epoch: model::EPOCH,
        index: Index(index),
        previous: Index(index - 1),
        digest: model::Digest::default(),
        time: Time(index as i64),
        proposer: Uuid::from(u128::from(proposer)),
        commands: vec![CommandRecord { request: RequestId(node.0), kind: 1, actor: Actor::ANONYMOUS }],
        events: vec![event; events as usize],
    }
}

/// What a kill leaves: the files as they are right now.
pub fn copy(from: &Path, to: &Path) {
    for path in segments(from) {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

pub fn change_last_segment(dir: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = segments(dir).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "seg")).collect();
    paths.sort();
    paths
}
