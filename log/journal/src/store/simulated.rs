//! A disk in memory that crashes, fails and fills up on demand, the same way each time.
//!
//! It knows what was synced and what was only written, for each file and for the names in the directory. Whoever wrote
//! sees everything; a crash keeps what was synced and lets the caller, or the disk's own chance, choose what becomes of
//! the rest. There is no latency: the caller that drives the store decides what an operation takes.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::Arc;

use base::Rng;
use parking_lot::Mutex;

use super::files::{File, Files};

/// What a disk does, as far as it is counted and can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write,
    Sync,
    Create,
    Rename,
    Remove,
    SyncDirectory,
}

/// Something that was done and not synced when the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Counts from 0, in the order in which it was done.
    pub nth: usize,
    pub operation: Operation,
}

/// What becomes of it. Names are there or not: every fate but [`Fate::Lost`] keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Lost,
    Kept,
    /// Of a write's sectors of so many bytes those arrive whose bit is set; the 65th has the first bit again.
    Torn {
        sector: u64,
        arrived: u64,
    },
    /// Zeros arrive.
    Zeroed,
    /// It arrives, and once more right behind, where nothing was yet.
    Doubled,
    /// Its halves arrive in each other's place.
    Swapped,
}

/// A disk. Clones are the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<Inner>>);

struct Inner {
    files: BTreeMap<u64, Inode>,
    /// As the process sees them.
    names: BTreeMap<String, u64>,
    safe_names: BTreeMap<String, u64>,
    unsynced_names: Vec<(u64, NameChange)>,
    last_file: u64,
    rng: Rng,
    operations: u64,
    counts: [u64; 6],
    cut_at: Option<u64>,
    failing: Vec<(Operation, u64)>,
    capacity: Option<u64>,
    off: bool,
}

#[derive(Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    safe: Vec<u8>,
    unsynced: Vec<(u64, Change)>,
    /// What it takes of the capacity.
    takes: u64,
}

#[derive(Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone)]
enum NameChange {
    Create { name: String, file: u64 },
    Rename { from: String, to: String, file: u64 },
    Remove { name: String, file: u64 },
}

struct Handle {
    disk: Disk,
    file: u64,
}

impl Disk {
    /// An empty one. What it leaves to chance comes from `seed`.
    pub fn new(seed: u64) -> Disk {
        Disk::with(BTreeMap::new(), seed)
    }

    /// One with these files on it, safely.
    pub fn with(files: BTreeMap<String, Vec<u8>>, seed: u64) -> Disk {
        let mut inner = Inner {
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            safe_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            last_file: 0,
            rng: Rng::stream(seed, "disk"),
            operations: 0,
            counts: [0; 6],
            cut_at: None,
            failing: Vec::new(),
            capacity: None,
            off: false,
        };
        for (name, bytes) in files {
            inner.last_file += 1;
            let takes = bytes.len() as u64;
            let inode = Inode { safe: bytes.clone(), bytes, unsynced: Vec::new(), takes };
            inner.files.insert(inner.last_file, inode);
            inner.names.insert(name, inner.last_file);
        }
        inner.safe_names = inner.names.clone();
        Disk(Arc::new(Mutex::new(inner)))
    }

    /// File contents by name, as the process sees them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let inner = self.0.lock();
        inner.names.iter().map(|(name, file)| (name.clone(), inner.files[file].bytes.clone())).collect()
    }

    /// How many operations there were, those that failed too.
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// How many of them were of this kind.
    pub fn count(&self, operation: Operation) -> u64 {
        self.0.lock().counts[operation as usize]
    }

    /// The power goes while operation number `nth` is done, counted from 0 at the disk's beginning: it and all later
    /// ones fail. Whether it took effect is up to the crash.
    pub fn cut_power_at(&self, nth: u64) {
        self.0.lock().cut_at = Some(nth);
    }

    /// The power went, or another disk was made of this one.
    pub fn is_off(&self) -> bool {
        self.0.lock().off
    }

    /// The `nth` operation of this kind from now on fails, counted from 0. A write may have taken effect; a sync has not.
    pub fn fail(&self, operation: Operation, nth: u64) {
        self.0.lock().failing.push((operation, nth));
    }

    /// What fits, in bytes. `None`: everything.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.lock().capacity = bytes;
    }

    /// In bytes, of [`Disk::set_capacity`].
    pub fn used(&self) -> u64 {
        self.0.lock().used()
    }

    /// Changes the bits of `mask` in a byte, safely.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip(&self, name: &str, at: usize, mask: u8) {
        let mut inner = self.0.lock();
        let file = inner.names[name];
        let inode = inner.files.get_mut(&file).expect("a name has a file");
        inode.bytes[at] ^= mask;
        if let Some(byte) = inode.safe.get_mut(at) {
            *byte ^= mask;
        }
    }

    /// The power goes, if it has not yet, and comes back: what is left, given the fate of everything unsynced.
    /// This disk does nothing from now on but lose power again.
    pub fn crash(&self, mut fate: impl FnMut(Unsynced) -> Fate) -> Disk {
        let mut inner = self.0.lock();
        inner.off = true;
        let mut after = inner.next();
        let mut order: Vec<(u64, Operation)> = Vec::new();
        order.extend(inner.unsynced_names.iter().map(|(at, change)| (*at, change.operation())));
        let writes = inner.files.values().flat_map(|inode| &inode.unsynced);
        order.extend(writes.map(|(at, _)| (*at, Operation::Write)));
        order.sort_unstable_by_key(|(at, _)| *at);
        let numbered = order.into_iter().enumerate();
        let fates: BTreeMap<u64, Fate> =
            numbered.map(|(nth, (at, operation))| (at, fate(Unsynced { nth, operation }))).collect();
        for inode in after.files.values_mut() {
            for (at, change) in mem::take(&mut inode.unsynced) {
                change.settle(&mut inode.safe, fates[&at]);
            }
            inode.bytes = inode.safe.clone();
            inode.takes = inode.bytes.len() as u64;
        }
        for (at, change) in mem::take(&mut after.unsynced_names) {
            if fates[&at] != Fate::Lost {
                change.settle(&mut after.safe_names);
            }
        }
        after.names = after.safe_names.clone();
        let Inner { files, names, .. } = &mut after;
        files.retain(|file, _| names.values().any(|named| named == file));
        Disk(Arc::new(Mutex::new(after)))
    }

    /// A crash where the disk's chance decides.
    pub fn crash_by_chance(&self) -> Disk {
        let mut rng = self.0.lock().rng.clone();
        let after = self.crash(|_| chance(&mut rng));
        after.0.lock().rng = rng;
        after
    }

    /// The process dies, and the disk goes on: what was written can be read, and is as unsynced as it was.
    /// This disk does nothing from now on.
    pub fn kill(&self) -> Disk {
        let mut inner = self.0.lock();
        inner.off = true;
        Disk(Arc::new(Mutex::new(inner.next())))
    }

    fn file(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = *self.0.lock().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(Handle { disk: self.clone(), file }))
    }

    fn make(&self, name: &str, bytes: u64, sparse: bool) -> io::Result<Arc<dyn File>> {
        let mut inner = self.0.lock();
        let cut = inner.begin(Operation::Create)?;
        let takes = if sparse { 0 } else { bytes };
        inner.names.remove(name);
        inner.take_space(takes)?;
        inner.last_file += 1;
        let (file, at) = (inner.last_file, inner.operations);
        let zeros = vec![0; bytes as usize];
        // The zeros of a file that is not sparse are written and synced by the time it is there.
        let (safe, unsynced) = match sparse {
            true => (Vec::new(), vec![(at, Change::Length(zeros.len()))]),
            false => (zeros.clone(), Vec::new()),
        };
        inner.files.insert(file, Inode { bytes: zeros, safe, unsynced, takes });
        inner.names.insert(name.into(), file);
        inner.unsynced_names.push((at, NameChange::Create { name: name.into(), file }));
        cut?;
        drop(inner);
        self.file(name)
    }
}

/// One of the fates, each as likely.
fn chance(rng: &mut Rng) -> Fate {
    match rng.below(8) {
        0 => Fate::Lost,
        1 => Fate::Kept,
        2 | 3 => Fate::Torn { sector: 512, arrived: rng.next() },
        4 => Fate::Torn { sector: 4096, arrived: rng.next() },
        5 => Fate::Zeroed,
        6 => Fate::Doubled,
        _ => Fate::Swapped,
    }
}

impl Inner {
    /// The same, switched on and without orders to fail.
    fn next(&self) -> Inner {
        Inner {
            files: self.files.clone(),
            names: self.names.clone(),
            safe_names: self.safe_names.clone(),
            unsynced_names: self.unsynced_names.clone(),
            rng: self.rng.clone(),
            failing: Vec::new(),
            operations: self.operations,
            cut_at: None,
            off: false,
            ..*self
        }
    }

    /// Counts an operation. The outer error says that it must not take effect, the inner one that it fails although it
    /// may have.
    fn begin(&mut self, operation: Operation) -> io::Result<io::Result<()>> {
        if self.off {
            return Err(io::Error::other("the power is off"));
        }
        let nth = self.operations;
        self.operations += 1;
        self.counts[operation as usize] += 1;
        if self.cut_at == Some(nth) {
            self.off = true;
            return Ok(Err(io::Error::other("the power went")));
        }
        let mut planted = false;
        self.failing.retain_mut(|(kind, left)| {
            let hit = *kind == operation && *left == 0;
            *left -= u64::from(*kind == operation && !hit);
            planted |= hit;
            !hit
        });
        Ok(if planted { Err(io::Error::other("planted")) } else { Ok(()) })
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[file].takes).sum()
    }

    fn take_space(&self, more: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if self.used() + more > capacity => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl Change {
    fn settle(self, safe: &mut Vec<u8>, fate: Fate) {
        let (at, bytes) = match self {
            Change::Length(_) if fate == Fate::Lost => return,
            Change::Length(len) => return safe.resize(len, 0),
            Change::Write { at, bytes } => (at, bytes),
        };
        let end = at + bytes.len();
        if safe.len() < end && fate != Fate::Lost {
            safe.resize(end, 0);
        }
        match fate {
            Fate::Lost => {}
            Fate::Kept => safe[at..end].copy_from_slice(&bytes),
            Fate::Zeroed => safe[at..end].fill(0),
            Fate::Torn { sector, arrived } => {
                let first = at as u64 / sector;
                for (byte, place) in bytes.iter().zip(at..) {
                    if arrived >> ((place as u64 / sector - first) % 64) & 1 == 1 {
                        safe[place] = *byte;
                    }
                }
            }
            Fate::Doubled => {
                safe[at..end].copy_from_slice(&bytes);
                let free = safe[end..].iter().take(bytes.len()).take_while(|byte| **byte == 0).count();
                safe[end..end + free].copy_from_slice(&bytes[..free]);
            }
            Fate::Swapped => {
                let half = bytes.len() / 2;
                safe[at..end - half].copy_from_slice(&bytes[half..]);
                safe[end - half..end].copy_from_slice(&bytes[..half]);
            }
        }
    }
}

impl NameChange {
    fn operation(&self) -> Operation {
        match self {
            NameChange::Create { .. } => Operation::Create,
            NameChange::Rename { .. } => Operation::Rename,
            NameChange::Remove { .. } => Operation::Remove,
        }
    }

    fn settle(self, names: &mut BTreeMap<String, u64>) {
        let forget = |names: &mut BTreeMap<String, u64>, name: String, file: u64| {
            if names.get(&name) == Some(&file) {
                names.remove(&name);
            }
        };
        match self {
            NameChange::Create { name, file } => drop(names.insert(name, file)),
            NameChange::Remove { name, file } => forget(names, name, file),
            NameChange::Rename { from, to, file } => {
                forget(names, from, file);
                names.insert(to, file);
            }
        }
    }
}

impl Files for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.file(name)
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.make(name, bytes, false)
    }

    fn create_sparse(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn File>> {
        self.make(name, bytes, true)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.0.lock();
        let cut = inner.begin(Operation::Rename)?;
        let file = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inner.names.insert(to.into(), file);
        let at = inner.operations;
        inner.unsynced_names.push((at, NameChange::Rename { from: from.into(), to: to.into(), file }));
        cut
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.0.lock();
        let cut = inner.begin(Operation::Remove)?;
        let file = inner.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        let at = inner.operations;
        inner.unsynced_names.push((at, NameChange::Remove { name: name.into(), file }));
        cut
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut inner = self.0.lock();
        inner.begin(Operation::SyncDirectory)??;
        inner.safe_names = inner.names.clone();
        inner.unsynced_names.clear();
        Ok(())
    }
}

impl File for Handle {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().files[&self.file].bytes.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let inner = self.disk.0.lock();
        let from = inner.files[&self.file].bytes.get(at as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        let cut = inner.begin(Operation::Write)?;
        let end = at + bytes.len() as u64;
        let nth = inner.operations;
        inner.take_space(end.saturating_sub(inner.files[&self.file].takes))?;
        let inode = inner.files.get_mut(&self.file).expect("an open file");
        let place = inode.bytes.get_mut(at as usize..end as usize).ok_or(io::ErrorKind::UnexpectedEof)?;
        place.copy_from_slice(bytes);
        inode.takes = inode.takes.max(end);
        inode.unsynced.push((nth, Change::Write { at: at as usize, bytes: bytes.to_vec() }));
        cut
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        inner.begin(Operation::Sync)??;
        let inode = inner.files.get_mut(&self.file).expect("an open file");
        inode.safe = inode.bytes.clone();
        inode.unsynced.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (Disk, Arc<dyn File>) {
        let disk = Disk::new(1);
        let file = disk.create("a", 2048).unwrap();
        file.write_at(&[1; 1024], 0).unwrap();
        file.sync().unwrap();
        disk.sync_dir().unwrap();
        file.write_at(&[2; 1024], 512).unwrap();
        (disk, file)
    }

    #[test]
    fn what_was_synced_survives_and_the_rest_has_its_fate() {
        let after = |fate| written().0.crash(|_| fate).files()["a"].clone();
        let bytes = |parts: [u8; 4]| parts.into_iter().flat_map(|part| [part; 512]).collect::<Vec<u8>>();
        assert_eq!(after(Fate::Lost), bytes([1, 1, 0, 0]));
        assert_eq!(after(Fate::Kept), bytes([1, 2, 2, 0]));
        assert_eq!(after(Fate::Zeroed), bytes([1, 0, 0, 0]));
        assert_eq!(after(Fate::Torn { sector: 512, arrived: 0b10 }), bytes([1, 1, 2, 0]));
        assert_eq!(after(Fate::Doubled), bytes([1, 2, 2, 2]));
    }

    #[test]
    fn names_that_were_not_synced_may_be_lost() {
        let change = |fate| {
            let (disk, _) = written();
            disk.rename("a", "b").unwrap();
            disk.create("c", 16).unwrap();
            disk.remove("c").unwrap();
            disk.crash(|_| fate).files().into_keys().collect::<Vec<String>>()
        };
        assert_eq!((change(Fate::Lost), change(Fate::Kept)), (vec!["a".to_string()], vec!["b".to_string()]));
    }

    #[test]
    fn a_disk_without_power_does_nothing() {
        let (disk, file) = written();
        disk.cut_power_at(disk.operations());
        assert!(file.sync().is_err());
        assert!(file.sync().is_err());
        assert!(disk.create("b", 1).is_err());
        let after = disk.crash(|_| Fate::Lost);
        after.open("a").unwrap().sync().unwrap();
        assert_eq!(after.files()["a"][512], 1, "the sync that failed was none");
    }

    #[test]
    fn a_process_that_dies_leaves_what_it_wrote_unsynced() {
        let (disk, file) = written();
        let next = disk.kill();
        assert!(file.sync().is_err());
        assert_eq!(next.files()["a"][1024], 2);
        assert_eq!(next.crash(|_| Fate::Lost).files()["a"][1024], 0);
    }

    #[test]
    fn a_full_disk_takes_more_when_there_is_space() {
        let disk = Disk::new(1);
        disk.set_capacity(Some(100));
        let sparse = disk.create_sparse("sparse", 200).unwrap();
        sparse.write_at(&[1; 50], 0).unwrap();
        let full = |error: io::Error| error.kind() == io::ErrorKind::StorageFull;
        assert!(disk.create("a", 60).is_err_and(full));
        assert!(sparse.write_at(&[1; 60], 50).is_err_and(full));
        disk.set_capacity(Some(120));
        sparse.write_at(&[1; 60], 50).unwrap();
        disk.remove("sparse").unwrap();
        disk.create("a", 60).unwrap();
        assert_eq!(disk.used(), 60);
    }

    #[test]
    fn the_same_seed_crashes_the_same_way() {
        let after = || written().0.crash_by_chance().files();
        assert_eq!(after(), after());
    }
}
