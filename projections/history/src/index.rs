//! The index on disk. Keyspaces of one database, written together:
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `events` | allocation (16), index (8), ordinal (2) | nothing |
//! | `objects` | an [`Object`]'s key, index (8), ordinal (2) | nothing |
//! | `owned` | namespace, 0, job, 0, allocation (16) | nothing |
//! | `requests` | request (16), index (8) | nothing |
//! | `meta` | `first`, `cursor` | a [`Mark`]: index (8), time (8), proposer (16) |
//! | `meta` | `format` | [`FORMAT`] |
//! | all of these but `meta` | [`USED`] | nothing |
//!
//! Two more hold images of states: see [`Images`].
//!
//! Numbers are big-endian, so that keys sort as they count.

use std::path::Path;

use base::{Index, Uuid};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use journal::EncodedBatch;
use model::{AllocId, JobKey, RequestId};

use crate::entries::{Entries, Position};
use crate::moments::Images;
use crate::object::Object;

/// What is indexed. An index of another format is rebuilt from the log.
const FORMAT: &[u8] = b"5";
/// A key in each keyspace that is filled. It sorts before all others, and none begins with it alone.
const USED: &[u8] = &[0];

/// Events of one object that are read at most, the newest: each may be a batch of its own to decode, at about 20 us.
pub const EVENTS_MAX: usize = 4_096;
/// The database's own threads: it only ever writes in bulk and in the background.
const WORKERS: usize = 1;
/// Reads go to a few keys of one allocation at a time.
const CACHE_BYTES: u64 = 4 << 20;

/// Tells a batch from any other of the same index, of this log or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub index: Index,
    time: i64,
    proposer: Uuid,
}

impl Mark {
    pub fn of(batch: &EncodedBatch) -> Mark {
        Mark { index: batch.index(), time: batch.time().0, proposer: batch.proposer() }
    }

    fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.index.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_be_bytes());
        bytes[16..].copy_from_slice(&self.proposer.0);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Mark> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let number =
            |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8 bytes were sliced"));
        let proposer = Uuid(bytes[16..].try_into().expect("16 bytes were sliced"));
        Some(Mark { index: Index(number(0)), time: number(8) as i64, proposer })
    }
}

/// What events are looked for about.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    Alloc(AllocId),
    Object(&'a Object),
}

/// On which side of a place in the log, without the place itself.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Before(Position),
    After(Position),
}

pub(crate) struct EntityIndex {
    database: Database,
    events: Keyspace,
    objects: Keyspace,
    owned: Keyspace,
    requests: Keyspace,
    meta: Keyspace,
    images: Images,
}

impl EntityIndex {
    /// Opens the index; one that cannot be opened is put aside and begun anew, and one that lost what it held is filled again.
    ///
    /// # Errors
    /// Another process holds it, or the directory itself cannot be used.
    pub fn open(dir: &Path) -> Result<EntityIndex, fjall::Error> {
        let was_used = std::fs::read_dir(dir).is_ok_and(|mut files| files.next().is_some());
        match EntityIndex::try_open(dir) {
            Err(error) if !matches!(error, fjall::Error::Locked) => {
                let aside = dir.with_extension("damaged");
                tracing::warn!(%error, dir = %dir.display(), aside = %aside.display(), "the index of history is rebuilt");
                if aside.exists() {
                    std::fs::remove_dir_all(&aside)?;
                }
                std::fs::rename(dir, &aside)?;
                EntityIndex::try_open(dir)
            }
            Ok(index) if was_used && index.cursor()?.is_none() => {
                tracing::warn!(dir = %dir.display(), "the index of history is empty, and its directory was not: it is rebuilt");
                Ok(index)
            }
            opened => opened,
        }
    }

    fn try_open(dir: &Path) -> Result<EntityIndex, fjall::Error> {
        std::fs::create_dir_all(dir)?;
        let database = Database::builder(dir).worker_threads(WORKERS).cache_size(CACHE_BYTES).open()?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default);
        let (events, objects) = (keyspace("events")?, keyspace("objects")?);
        let (owned, requests, meta) = (keyspace("owned")?, keyspace("requests")?, keyspace("meta")?);
        let images = Images::open(&database)?;
        let index = EntityIndex { database, events, objects, owned, requests, meta, images };
        if index.cursor()?.is_some() {
            let format = index.meta.get("format")?;
            if format.is_none_or(|format| &*format != FORMAT) {
                tracing::info!("the index of history is of another format: it is rebuilt");
                index.clear()?;
            } else if !index.is_whole()? {
                tracing::warn!(dir = %dir.display(), "the index of history lost a part of what it held: it is rebuilt");
                index.clear()?;
            }
        }
        Ok(index)
    }

    /// The database makes a keyspace anew whose files are gone, and says nothing.
    fn is_whole(&self) -> Result<bool, fjall::Error> {
        for keyspace in [&self.events, &self.objects, &self.owned, &self.requests] {
            if !keyspace.contains_key(USED)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// States of the past.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The first batch that was indexed; `None` before there was one.
    pub fn first(&self) -> Result<Option<Mark>, fjall::Error> {
        Ok(self.meta.get("first")?.and_then(|bytes| Mark::read(&bytes)))
    }

    /// The last batch that was indexed; `None` before there was one.
    pub fn cursor(&self) -> Result<Option<Mark>, fjall::Error> {
        Ok(self.meta.get("cursor")?.and_then(|bytes| Mark::read(&bytes)))
    }

    /// Writes what was gathered, and up to where, all or nothing.
    pub fn write(&self, entries: &Entries, first: Option<Mark>, cursor: Mark) -> Result<(), fjall::Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for (alloc, at) in &entries.events {
            batch.insert(&self.events, event_key(*alloc, *at), []);
        }
        for (object, at) in &entries.objects {
            batch.insert(&self.objects, [object.as_slice(), &position_key(*at)].concat(), []);
        }
        for (job, alloc) in &entries.disowned {
            batch.remove(&self.owned, owned_key(job, Some(*alloc)));
        }
        for (job, alloc) in &entries.owned {
            batch.insert(&self.owned, owned_key(job, Some(*alloc)), []);
        }
        for (request, index) in &entries.requests {
            batch.insert(&self.requests, [request.0.0.as_slice(), &index.0.to_be_bytes()].concat(), []);
        }
        if let Some(first) = first {
            for keyspace in [&self.events, &self.objects, &self.owned, &self.requests] {
                batch.insert(keyspace, USED, []);
            }
            batch.insert(&self.meta, "first", first.bytes());
        }
        batch.insert(&self.meta, "format", FORMAT);
        batch.insert(&self.meta, "cursor", cursor.bytes());
        batch.commit()
    }

    /// Makes what was written survive a power cut.
    pub fn sync(&self) -> Result<(), fjall::Error> {
        self.database.persist(PersistMode::SyncData)
    }

    /// Forgets everything.
    pub fn clear(&self) -> Result<(), fjall::Error> {
        // The marks go first: an index without them is read as empty and filled again.
        self.meta.clear()?;
        self.events.clear()?;
        self.objects.clear()?;
        self.owned.clear()?;
        self.requests.clear()?;
        self.images.clear()
    }

    /// The newest events about an allocation, oldest first, and whether there are older ones.
    pub fn events_of(&self, alloc: AllocId) -> Result<(Vec<Position>, bool), fjall::Error> {
        newest(&self.events, &alloc.0.0)
    }

    /// As [`EntityIndex::events_of`], about another object.
    pub fn events_about(&self, object: &Object) -> Result<(Vec<Position>, bool), fjall::Error> {
        newest(&self.objects, &object.key())
    }

    /// Events about something on one side of a place in the log, the nearest first, at most `most` of them.
    pub fn around(&self, what: What<'_>, side: Side, most: usize) -> Result<Vec<Position>, fjall::Error> {
        let (keyspace, prefix) = match what {
            What::Alloc(id) => (&self.events, id.0.0.to_vec()),
            What::Object(object) => (&self.objects, object.key()),
        };
        let bound = |at: Position| [prefix.as_slice(), &position_key(at)].concat();
        let keys: Vec<_> = match side {
            Side::Before(at) => keyspace.range(prefix.clone()..bound(at)).rev().take(most).collect(),
            Side::After(at) => keyspace.range(bound(at.next())..).take(most).collect(),
        };
        let keys = keys.into_iter().map(|entry| entry.key()).collect::<Result<Vec<_>, _>>()?;
        Ok(keys.iter().take_while(|key| key.starts_with(&prefix)).map(|key| position(key)).collect())
    }

    /// Batches with a command of this name, oldest first, at most `most` of them.
    pub fn of_request(&self, request: RequestId, most: usize) -> Result<Vec<Index>, fjall::Error> {
        let keys = self.requests.prefix(request.0.0).take(most).map(|entry| entry.key());
        let index = |key: &[u8]| {
            let end = key.last_chunk().expect("a key of the keyspace ends with an index");
            Index(u64::from_be_bytes(*end))
        };
        keys.map(|key| key.map(|key| index(&key))).collect()
    }

    /// The first event about an object.
    pub fn first_about(&self, object: &Object) -> Result<Option<Position>, fjall::Error> {
        let first = self.objects.prefix(object.key()).next().map(|entry| entry.key());
        Ok(first.transpose()?.map(|key| position(&key)))
    }

    /// The first allocation whose id is not below `from`.
    pub fn alloc_from(&self, from: AllocId) -> Result<Option<AllocId>, fjall::Error> {
        let first = self.events.range(event_key(from, Position::default())..).next();
        let key = first.map(|entry| entry.key()).transpose()?;
        Ok(key.map(|key| AllocId(Uuid(*key.first_chunk().expect("keys of the keyspace begin with an id")))))
    }

    /// The allocations that a job owns.
    pub fn owned_by(&self, job: &JobKey) -> Result<Vec<AllocId>, fjall::Error> {
        let keys = self.owned.prefix(owned_key(job, None)).map(|entry| entry.key());
        let alloc = |key: &[u8]| {
            let id = key.last_chunk().expect("a key of the keyspace ends with an id");
            AllocId(Uuid(*id))
        };
        keys.map(|key| key.map(|key| alloc(&key))).collect()
    }
}

fn event_key(alloc: AllocId, at: Position) -> [u8; 26] {
    let mut key = [0; 26];
    key[..16].copy_from_slice(&alloc.0.0);
    key[16..].copy_from_slice(&position_key(at));
    key
}

fn position_key(at: Position) -> [u8; 10] {
    let mut key = [0; 10];
    key[..8].copy_from_slice(&at.index.0.to_be_bytes());
    key[8..].copy_from_slice(&at.ordinal.to_be_bytes());
    key
}

/// The position that a key ends with.
fn position(key: &[u8]) -> Position {
    let end: &[u8; 10] = key.last_chunk().expect("keys of events end with a position");
    let index = u64::from_be_bytes(end[..8].try_into().expect("8 bytes were sliced"));
    Position { index: Index(index), ordinal: u16::from_be_bytes([end[8], end[9]]) }
}

/// The newest [`EVENTS_MAX`] positions below a prefix, oldest first, and whether there are older ones.
fn newest(keyspace: &Keyspace, prefix: &[u8]) -> Result<(Vec<Position>, bool), fjall::Error> {
    let keys = keyspace.prefix(prefix).rev().take(EVENTS_MAX + 1).map(|entry| entry.key());
    let mut found: Vec<Position> = keys.map(|key| key.map(|key| position(&key))).collect::<Result<_, _>>()?;
    let cut_short = found.len() > EVENTS_MAX;
    found.truncate(EVENTS_MAX);
    found.reverse();
    Ok((found, cut_short))
}

/// Without an allocation: what all keys of the job begin with.
fn owned_key(job: &JobKey, alloc: Option<AllocId>) -> Vec<u8> {
    // Neither name holds a zero byte, so no job's keys begin with another's.
    let mut key = [job.namespace.as_bytes(), &[0], job.id.as_bytes(), &[0]].concat();
    key.extend(alloc.iter().flat_map(|alloc| alloc.0.0));
    key
}
