//! A disk in memory that fails on demand, and entries to put on it.

#![allow(dead_code, reason = "each test program uses a part of this")]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use base::{Index, Time, Uuid};
use journal::EncodedBatch;
use journal::store::{Done, Entry, Fatal, File, Files, Payload, Settings, Store, StoreError};
use model::event::{NodeMessage, NodeMessagesEmitted};
use model::{Actor, Batch, CommandRecord, LoggedEvent, NodeId, RequestId};
use parking_lot::{Condvar, Mutex};

/// What tests wait at most before they fail.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// File contents by name.
pub type Image = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Default)]
pub struct Disk(Arc<Inner>);

#[derive(Default)]
struct Inner {
    files: Mutex<BTreeMap<String, Arc<Mutex<Vec<u8>>>>>,
    /// Bytes that may still be made; counts when `limited`.
    space: AtomicU64,
    limited: AtomicBool,
    syncs: AtomicU64,
    failing: AtomicBool,
    holding: Mutex<bool>,
    released: Condvar,
}

struct MemoryFile(Disk, Arc<Mutex<Vec<u8>>>);

impl Disk {
    pub fn with(image: Image) -> Disk {
        let disk = Disk::default();
        *disk.0.files.lock() =
            image.into_iter().map(|(name, bytes)| (name, Arc::new(Mutex::new(bytes)))).collect();
        disk
    }

    /// What a power cut right now would leave, if everything written arrives.
    pub fn image(&self) -> Image {
        self.0.files.lock().iter().map(|(name, bytes)| (name.clone(), bytes.lock().clone())).collect()
    }

    pub fn syncs(&self) -> u64 {
        self.0.syncs.load(Ordering::SeqCst)
    }

    pub fn fail_syncs(&self) {
        self.0.failing.store(true, Ordering::SeqCst);
    }

    pub fn limit_space(&self, bytes: u64) {
        self.0.space.store(bytes, Ordering::SeqCst);
        self.0.limited.store(true, Ordering::SeqCst);
    }

    pub fn hold_syncs(&self) {
        *self.0.holding.lock() = true;
    }

    pub fn release_syncs(&self) {
        *self.0.holding.lock() = false;
        self.0.released.notify_all();
    }
}

impl Files for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.files.lock().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let bytes = self.0.files.lock().get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile(self.clone(), bytes)))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        if self.0.limited.load(Ordering::SeqCst) {
            let left = self.0.space.load(Ordering::SeqCst).checked_sub(bytes);
            self.0.space.store(left.ok_or(io::ErrorKind::StorageFull)?, Ordering::SeqCst);
        }
        self.0.files.lock().insert(name.into(), Arc::new(Mutex::new(vec![0; bytes as usize])));
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.files.lock();
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.files.lock().remove(name).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.1.lock().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let bytes = self.1.lock();
        let from = bytes.get(at as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.1.lock()[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let inner = &self.0.0;
        let mut holding = inner.holding.lock();
        while *holding {
            inner.released.wait(&mut holding);
        }
        if inner.failing.load(Ordering::SeqCst) {
            return Err(io::Error::other("planted"));
        }
        inner.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A disk failure fails the test that did not ask for one, through its time-outs.
pub fn no_fatal() -> Fatal {
    Arc::new(|why| eprintln!("fatal: {why}"))
}

pub fn open(disk: &Disk, segment_bytes: u64) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), Settings { segment_bytes }, no_fatal())
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

pub fn all(store: &Store) -> Vec<Entry> {
    store.entries(0..u64::MAX, usize::MAX).unwrap()
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
        index: Index(index),
        previous: Index(index - 1),
        digest: model::Digest::default(),
        time: Time(1_700_000_000_000_000_000 + index as i64),
        proposer: Uuid::from(1),
        commands: vec![CommandRecord { request: RequestId(node.0), kind: 1, actor: Actor::Anonymous }],
        events: vec![LoggedEvent { command: 0, event: NodeMessagesEmitted { node, messages }.into() }],
    })
}
