//! Stores on a simulated disk, and entries to put on them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use base::{Index, Time, Uuid};
use journal::EncodedBatch;
pub use journal::store::simulated::Disk;
use journal::store::{Done, Driving, Entry, Fatal, Payload, RETENTION, Settings, Store, StoreError};
use model::event::{NodeMessage, NodeMessagesEmitted};
use model::{Actor, Batch, CommandRecord, LoggedEvent, NodeId, RequestId};

/// What tests wait at most before they fail.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// File contents by name.
pub type Contents = BTreeMap<String, Vec<u8>>;

pub fn disk_with(files: Contents) -> Disk {
    Disk::with(files, 1)
}

/// A disk failure fails the test that did not ask for one, through its time-outs.
pub fn no_fatal() -> Fatal {
    Arc::new(|why| eprintln!("fatal: {why}"))
}

pub fn open(disk: &Disk, segment_bytes: u64) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), threads(segment_bytes), no_fatal())
}

pub fn threads(segment_bytes: u64) -> Settings {
    Settings { segment_bytes, retention: RETENTION, archive: None, keep: None, driving: Driving::Threads }
}

/// Driven by whoever holds it.
pub fn open_steps(disk: &Disk, segment_bytes: u64) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), steps(segment_bytes), no_fatal())
}

pub fn steps(segment_bytes: u64) -> Settings {
    let driving = Driving::Steps { on_work: Arc::new(|| {}) };
    Settings { segment_bytes, retention: RETENTION, archive: None, keep: None, driving }
}

/// Steps until there is nothing to do.
pub fn run(store: &Store) {
    while store.step() {}
}

/// Appends to a store that is driven by steps.
pub fn add(store: &Store, entries: &[Entry]) {
    let (tell, told) = done();
    store.append(entries.to_vec(), tell).unwrap();
    run(store);
    told.try_recv().expect("the append is safe");
}

/// Tells when it was called.
pub fn done() -> (Done, mpsc::Receiver<()>) {
    let (tx, rx) = mpsc::channel();
    (Box::new(move || tx.send(()).unwrap_or(())), rx)
}

/// Appends as one group and waits until it is safe.
pub fn append(store: &Store, entries: &[Entry]) {
    let (tell, told) = done();
    store.append(entries.to_vec(), tell).unwrap();
    told.recv_timeout(PATIENCE).expect("the append becomes safe");
}

pub fn vote(store: &Store, vote: &'static [u8]) {
    let (tell, told) = done();
    store.save_vote(vote.into(), tell).unwrap();
    told.recv_timeout(PATIENCE).expect("the vote becomes safe");
}

pub fn truncate(store: &Store, from: u64) {
    let (tell, told) = done();
    store.truncate(from, tell).unwrap();
    told.recv_timeout(PATIENCE).expect("the truncation becomes safe");
}

/// Every entry that is held.
pub fn all(store: &Store) -> Vec<Entry> {
    store.entries(store.first()..u64::MAX, usize::MAX).unwrap()
}

pub fn membership(index: u64) -> Entry {
    Entry { index, term: 0, payload: Payload::Membership(b"{voters:[1]}".as_slice().into()) }
}

pub fn blank(index: u64, term: u64) -> Entry {
    Entry { index, term, payload: Payload::Blank }
}

pub fn batch_entry(index: u64, term: u64, batch: u64) -> Entry {
    Entry { index, term, payload: Payload::Batch(encoded(batch, 30)) }
}

/// A batch of one event with `text` bytes of text.
pub fn encoded(index: u64, text: usize) -> EncodedBatch {
    let text: String = (0..text).map(|at| char::from(b'a' + ((at as u64 + index) % 26) as u8)).collect();
    let node = NodeId(Uuid::from(u128::from(index)));
    let messages = vec![NodeMessage::new("Test", &text, Time(index as i64))];
    journal::encode(&Batch {
        epoch: model::EPOCH,
        index: Index(index),
        previous: Index(index - 1),
        digest: model::Digest::default(),
        time: Time(1_700_000_000_000_000_000 + index as i64),
        proposer: Uuid::from(1),
        commands: vec![CommandRecord { request: RequestId(node.0), kind: 1, actor: Actor::ANONYMOUS }],
        events: vec![LoggedEvent { command: 0, event: NodeMessagesEmitted { node, messages }.into() }],
    })
}
