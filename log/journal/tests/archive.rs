//! What leaves the log goes to the archive, is read from there, and nothing is lost on the way.

use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::EncodedBatch;
use journal::store::simulated::{Fate, Operation, Unsynced};
use journal::store::{
    ArchiveSettings, ArchiveStatus, Directory, Entry, HISTORY_SUFFIX, HistoryFile, ImageMeta, LogId,
    Retention, Settings, Store, StoreError, verify_file,
};

const SMALL: u64 = 2048;
const NOW: Time = Time(1_700_000_100_000_000_000);
/// Entries 0 to this; batch `n` is entry `n + 1`.
const LAST: u64 = 60;

#[test]
fn what_leaves_the_log_is_read_from_the_archive() {
    let disk = Disk::new(1);
    let store = aged(&disk, None);
    let status = archive(&store);
    assert!(store.first() > 20 && status.files >= 3, "{status:?}");
    assert_eq!((store.horizon(), status.oldest, status.apart_files), (Index(1), Some(Index(1)), 0));
    assert!(status.bytes < status.raw_bytes, "{status:?}");
    assert_eq!(history(&store), batches());
    let one = |from: u64| store.batches(Index(from), Index(LAST - 1), 1).unwrap();
    (1..LAST).for_each(|from| assert_eq!(one(from), batches()[from as usize - 1..][..1]));
    let upto = store.batches(Index(3), Index(5), usize::MAX).unwrap();
    assert_eq!(upto, batches()[2..5]);
    drop(store);
    let store = open_archived(&disk, &disk, None).unwrap();
    assert_eq!((store.horizon(), archive(&store)), (Index(1), status));
    assert_eq!(history(&store), batches());
    // Raft reads the log alone.
    assert!(matches!(store.entries(0..9, usize::MAX), Err(StoreError::Removed { entry: 0, .. })));
}

#[test]
fn without_an_archive_it_is_gone() {
    let disk = Disk::new(1);
    let settings = Settings { archive: None, keep: None, ..settings(&disk, None) };
    let store = Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap();
    age(&store);
    assert_eq!(store.history().archive, None);
    let oldest = store.horizon();
    assert!(oldest > Index(20), "{oldest}");
    let refused = store.batches(Index(1), Index(9), 1).unwrap_err();
    assert!(matches!(refused, StoreError::Compacted { from: Index(1), oldest: found } if found == oldest));
}

#[test]
fn a_crash_while_segments_are_archived_loses_no_history() {
    let whole = Disk::new(0);
    let before = {
        let store = open_archived(&whole, &whole, None).unwrap();
        fill(&store);
        whole.operations()
    };
    age(&open_archived(&whole, &whole, None).unwrap());
    assert!(whole.operations() > before + 40, "{}", whole.operations());
    for at in before..whole.operations() {
        let disk = Disk::new(at);
        disk.cut_power_at(at);
        if let Ok(store) = open_archived(&disk, &disk, None) {
            try_age(&store);
        }
        for (how, left) in outcomes(&disk) {
            let case = format!("power cut at operation {at}, {how}");
            check(&case, &left);
            check(&format!("{case}, and what the start did not sync"), &left.crash(|_| Fate::Lost));
        }
    }
}

#[test]
fn a_crash_while_the_archive_is_shrunk_leaves_its_newer_part() {
    let prepared = Disk::new(0);
    drop(aged(&prepared, None));
    let files = prepared.files();
    let most: usize =
        files.iter().filter(|(name, _)| name.ends_with(HISTORY_SUFFIX)).map(|(_, it)| it.len()).sum();
    for at in 0.. {
        let disk = disk_with(files.clone());
        let from = disk.operations();
        disk.cut_power_at(from + at);
        if let Ok(store) = open_archived(&disk, &disk, Some(most as u64 / 2)) {
            add_or_not(&store, &[blank(LAST + 1, 1)]);
            let _ = store.keep(meta(LAST), vec![], NOW);
        }
        let is_over = !disk.is_off();
        for (how, left) in outcomes(&disk) {
            let store = open_archived(&left, &left, None).unwrap();
            let horizon = store.horizon();
            assert_eq!(history(&store), batches()[horizon.0 as usize - 1..], "cut at {at}, {how}");
        }
        if is_over {
            let disk = disk.kill();
            assert!(open_archived(&disk, &disk, None).unwrap().horizon() > Index(1));
            break;
        }
    }
}

#[test]
fn a_disk_that_fails_leaves_the_segments() {
    for kind in [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename] {
        let (disk, other) = (Disk::new(1), Disk::new(2));
        let store = open_with(&disk, &other, 8 * SMALL);
        other.fail(kind, other.count(kind));
        age(&store);
        assert!(archive(&store).failed.is_some() && store.first() == 0, "{kind:?}");
        assert_eq!(history(&store), batches(), "{kind:?}");
        assert!(!other.files().contains_key("archive.tmp"), "{kind:?}");
        store.keep(meta(LAST), vec![], NOW).unwrap();
        let status = archive(&store);
        assert!(store.first() > 0 && status.failed.is_none(), "{kind:?}: {status:?}");
        assert_eq!(history(&store), batches(), "{kind:?}");
    }
}

#[test]
fn an_archive_that_stays_full_costs_history_only_when_the_log_is_twice_too_long() {
    let (disk, other) = (Disk::new(1), Disk::new(2));
    other.set_capacity(Some(100));
    let store = open_with(&disk, &other, 6 * SMALL);
    age(&store);
    let status = store.history();
    assert!(status.segment_bytes > 10 * SMALL && status.segment_bytes <= 12 * SMALL, "{status:?}");
    let status = status.archive.unwrap();
    assert!(status.files == 0 && status.failed.unwrap().starts_with("write to the archive: "));
    assert!(store.horizon() > Index(1));
    assert_eq!(history(&store), batches()[store.horizon().0 as usize - 1..]);
}

#[test]
fn a_full_archive_loses_its_oldest_files() {
    let unlimited = archive(&aged(&Disk::new(1), None));
    let disk = Disk::new(1);
    let store = aged(&disk, Some(unlimited.bytes / 2));
    let status = archive(&store);
    assert!(status.files > 0 && status.bytes <= unlimited.bytes / 2, "{status:?}");
    assert!(status.oldest > Some(Index(1)) && status.oldest == Some(store.horizon()), "{status:?}");
    assert_eq!(history(&store), batches()[store.horizon().0 as usize - 1..]);
    let refused = store.batches(Index(1), Index(9), 1).unwrap_err().to_string();
    assert_eq!(refused, format!("batch 1 is no longer kept: the oldest is {}", store.horizon()));
}

#[test]
fn a_damaged_file_is_named_and_never_read_as_history() {
    let disk = Disk::new(1);
    drop(aged(&disk, None));
    let names: Vec<String> = disk.files().into_keys().filter(|name| name.ends_with(HISTORY_SUFFIX)).collect();
    let second = names[1].clone();
    for at in 0..disk.files()[&second].len() {
        let damaged = disk_with(disk.files());
        damaged.flip(&second, at, 0x10);
        let store = open_archived(&damaged, &damaged, None).unwrap();
        let status = archive(&store);
        match status.damaged.as_slice() {
            [] => {
                let first = number(&second, 0);
                let refused = store.verify_history(Index(first)).unwrap_err().to_string();
                assert!(refused.contains(&format!("archived file {second}")), "byte {at}: {refused}");
                assert!(store.batches(Index(first), Index(LAST), usize::MAX).is_err(), "byte {at}");
            }
            named => {
                assert_eq!((named, status.apart_files), (&[second.clone()][..], 1), "byte {at}");
                assert_eq!(store.horizon(), Index(number(&second, 21) + 1), "byte {at}");
            }
        }
    }
}

#[test]
fn a_gap_before_the_log_ends_what_can_be_read() {
    let disk = Disk::new(1);
    drop(aged(&disk, None));
    let mut files = disk.files();
    let newest = files.keys().rfind(|name| name.ends_with(HISTORY_SUFFIX)).unwrap().clone();
    files.remove(&newest);
    let disk = disk_with(files);
    let store = open_archived(&disk, &disk, None).unwrap();
    let status = store.history();
    assert_eq!(store.horizon(), status.log_oldest);
    let archive = status.archive.unwrap();
    assert!(archive.files == 0 && archive.apart_files > 1 && archive.apart_bytes > 0, "{archive:?}");
    assert!(matches!(store.batches(Index(1), Index(9), 1), Err(StoreError::Compacted { .. })));
}

#[test]
fn entries_that_became_void_are_not_archived() {
    let disk = Disk::new(1);
    let store = open_archived(&disk, &disk, None).unwrap();
    add(&store, &[membership(0), blank(1, 1)]);
    let put = |range: std::ops::Range<u64>, term: u64| {
        range.for_each(|at| add(&store, &[batch_entry(at, term, at - 1)]));
    };
    put(2..30, 1);
    // Back over segments, and within one.
    store.truncate(9, done().0).unwrap();
    run(&store);
    put(9..20, 2);
    store.truncate(19, done().0).unwrap();
    run(&store);
    put(19..LAST + 1, 3);
    let id = |index| LogId { index, term: 3 };
    store.save_committed(id(LAST)).unwrap();
    store.purge(id(LAST), done().0).unwrap();
    run(&store);
    for last in [LAST - 2, LAST - 1] {
        let meta = ImageMeta { last: id(last), ..meta(last) };
        store.keep(meta, vec![], NOW).unwrap();
    }
    assert!(archive(&store).files >= 3);
    assert_eq!(history(&store), batches());
    let files = verified(&store);
    assert_eq!(files.last().unwrap().last, Index(LAST - 1));
}

#[test]
fn history_is_verified_and_exported_file_by_file() {
    let disk = Disk::new(1);
    let store = aged(&disk, None);
    let files = verified(&store);
    assert!(files.iter().any(|file| file.name.ends_with(".seg")));
    assert!(files.iter().any(|file| file.name.ends_with(HISTORY_SUFFIX)));
    let dir = tempfile::tempdir().unwrap();
    let mut at = Index(1);
    let mut names = Vec::new();
    while let Some((file, bytes)) = store.export_history(at).unwrap() {
        assert_eq!((file.first, file.bytes), (at, bytes.len() as u64));
        std::fs::write(dir.path().join(&file.name), bytes).unwrap();
        at = file.last.next();
        names.push(file);
    }
    assert_eq!(at, Index(LAST));
    let open = |name: &str| Arc::new(std::fs::File::open(dir.path().join(name)).unwrap());
    let found: Vec<HistoryFile> =
        names.iter().map(|it| verify_file(&it.name, open(&it.name)).unwrap()).collect();
    assert_eq!(found, names);
    assert!(found.windows(2).all(|two| two[0].ends == two[1].begins));
    // An archive made of the export has the same history.
    let files = names.iter().map(|it| (it.name.clone(), std::fs::read(dir.path().join(&it.name)).unwrap()));
    let exported = disk_with(files.collect());
    let restored = open_archived(&disk, &exported, None).unwrap();
    assert_eq!((restored.horizon(), history(&restored)), (Index(1), batches()));
    let cut = &names[0].name;
    std::fs::write(dir.path().join(cut), b"SJARCH01").unwrap();
    let refused = verify_file(cut, open(cut)).unwrap_err().to_string();
    assert!(refused.ends_with("it is too short to be one"), "{refused}");
}

#[test]
fn what_is_not_committed_is_not_exported() {
    let disk = Disk::new(1);
    let store = open_archived(&disk, &disk, None).unwrap();
    add(&store, &entries()[..10]);
    assert_eq!(store.export_history(Index(1)).unwrap(), None);
    store.save_committed(id(5)).unwrap();
    run(&store);
    let (file, _) = store.export_history(Index(1)).unwrap().unwrap();
    assert_eq!((file.first, file.last), (Index(1), Index(4)));
    assert_eq!(store.verify_history(Index(1)).unwrap().unwrap().last, Index(4));
    assert_eq!(store.verify_history(Index(5)).unwrap(), None);
}

#[test]
fn a_real_directory_is_an_archive_of_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let (log, old) = (dir.path().join("log"), dir.path().join("old"));
    let archived = || {
        let files: Arc<Directory> = Arc::new(Directory::open(&old).unwrap());
        ArchiveSettings { files, max_bytes: None }
    };
    let open = || {
        let settings = Settings { archive: Some(archived()), retention: RETAINED, ..threads(SMALL) };
        Store::open(Arc::new(Directory::open(&log).unwrap()), settings, no_fatal()).unwrap()
    };
    {
        let store = open();
        append(&store, &entries());
        let (tell, told) = done();
        store.purge(id(LAST), tell).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
        (LAST - 2..LAST).for_each(|last| store.keep(meta(last), vec![], NOW).unwrap());
        assert!(archive(&store).files >= 3);
        assert!(matches!(Directory::open(&old), Err(StoreError::InUse { .. })));
    }
    assert_eq!(history(&open()), batches());
}

#[test]
fn young_history_stays_until_there_is_too_much() {
    let disk = Disk::new(1);
    let age = Some(Duration::from_secs(60));
    let retention = Retention { bytes: u64::MAX, age };
    let settings = Settings { retention, ..settings(&disk, None) };
    let store = Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap();
    fill(&store);
    store.purge(id(LAST), done().0).unwrap();
    run(&store);
    let soon = Time(1_700_000_000_000_000_000 + 59_000_000_000);
    (LAST - 3..LAST).for_each(|last| store.keep(meta(last), vec![], soon).unwrap());
    assert_eq!((store.first(), archive(&store).files), (0, 0));
    store.keep(meta(LAST), vec![], NOW).unwrap();
    assert!(store.first() > 20 && archive(&store).files > 3);
    assert_eq!(history(&store), batches());
}

const RETAINED: Retention = Retention { bytes: 3 * SMALL, age: None };

fn settings(other: &Disk, max_bytes: Option<u64>) -> Settings {
    let archive = ArchiveSettings { files: Arc::new(other.clone()), max_bytes };
    Settings { retention: RETAINED, archive: Some(archive), ..steps(SMALL) }
}

/// The names of an archive and of a log do not clash, so both may be on one simulated disk.
fn open_archived(disk: &Disk, other: &Disk, max_bytes: Option<u64>) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), settings(other, max_bytes), no_fatal())
}

fn open_with(disk: &Disk, other: &Disk, bytes: u64) -> Store {
    let settings = Settings { retention: Retention { bytes, age: None }, ..settings(other, None) };
    Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap()
}

fn aged(disk: &Disk, max_bytes: Option<u64>) -> Store {
    let store = open_archived(disk, disk, max_bytes).unwrap();
    age(&store);
    store
}

/// Fills an empty log, and keeps the images that let the beginning go.
fn age(store: &Store) {
    fill(store);
    store.purge(id(LAST), done().0).unwrap();
    run(store);
    (LAST - 2..LAST).for_each(|last| store.keep(meta(last), vec![], NOW).unwrap());
}

/// As [`age`], on a disk that may fail.
fn try_age(store: &Store) {
    let from = store.last().map_or(0, |last| last.index + 1);
    for group in entries()[from as usize..].chunks(3) {
        add_or_not(store, group);
    }
    let _ = store.purge(id(LAST), done().0);
    run(store);
    for last in LAST - 2..LAST {
        let _ = store.keep(meta(last), vec![], NOW);
    }
}

fn add_or_not(store: &Store, entries: &[Entry]) {
    let _ = store.append(entries.to_vec(), done().0);
    run(store);
}

fn fill(store: &Store) {
    let from = store.last().map_or(0, |last| last.index + 1);
    entries()[from as usize..].chunks(3).for_each(|group| add(store, group));
    store.save_committed(id(LAST)).unwrap();
    run(store);
}

/// A log after a crash has all of its history, and goes on archiving.
fn check(case: &str, disk: &Disk) {
    let store = open_archived(disk, disk, None).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(store.horizon(), Index(1), "{case}");
    assert_eq!(history(&store), batches(), "{case}");
    assert!(!disk.files().contains_key("archive.tmp"), "{case}");
    store.purge(id(LAST), done().0).unwrap();
    run(&store);
    for last in LAST - 2..=LAST {
        let _ = store.keep(meta(last), vec![], NOW);
    }
    let status = archive(&store);
    assert!(store.first() > 20 && status.files >= 3 && status.damaged.is_empty(), "{case}: {status:?}");
    assert_eq!(history(&store), batches(), "{case}, later");
}

fn outcomes(disk: &Disk) -> Vec<(String, Disk)> {
    let mut outcomes = vec![("killed".to_string(), disk.kill())];
    let torn = Fate::Torn { sector: 512, arrived: 0x5555_5555_5555_5555 };
    for fate in [Fate::Lost, Fate::Kept, Fate::Zeroed, torn] {
        for names in [Fate::Lost, Fate::Kept] {
            let one = |it: Unsynced| if it.operation == Operation::Write { fate } else { names };
            outcomes.push((format!("writes {fate:?}, names {names:?}"), disk.crash(one)));
        }
    }
    outcomes.extend((0..3).map(|nth| (format!("chance {nth}"), disk.crash_by_chance())));
    outcomes
}

fn archive(store: &Store) -> ArchiveStatus {
    store.history().archive.unwrap()
}

/// Everything that can be read, in small pieces.
fn history(store: &Store) -> Vec<EncodedBatch> {
    let (mut at, mut all) = (store.horizon(), Vec::new());
    loop {
        let some = store.batches(at, Index(u64::MAX - 1), 700).unwrap();
        let Some(last) = some.last() else { return all };
        at = last.index().next();
        all.extend(some);
    }
}

/// What every file of the history says that it is. Each continues the one before it.
fn verified(store: &Store) -> Vec<HistoryFile> {
    let (mut at, mut files) = (store.horizon(), Vec::new());
    while let Some(file) = store.verify_history(at).unwrap() {
        assert_eq!(file.first, at);
        at = file.last.next();
        files.push(file);
    }
    assert!(files.windows(2).all(|two| two[0].ends == two[1].begins), "{files:#?}");
    files
}

/// A membership, a blank, and batches.
fn entries() -> Vec<Entry> {
    let head = [membership(0), blank(1, 1)];
    head.into_iter().chain((2..=LAST).map(|at| batch_entry(at, 1, at - 1))).collect()
}

fn batches() -> Vec<EncodedBatch> {
    (1..LAST).map(|index| encoded(index, 30)).collect()
}

fn id(index: u64) -> LogId {
    LogId { index, term: 1 }
}

fn meta(last: u64) -> ImageMeta {
    let (index, members) = (Index(last - 1), Bytes::from_static(b"members"));
    ImageMeta { last: id(last), index, members, chain: None }
}

/// The 20 digits at `at` of a name.
fn number(name: &str, at: usize) -> u64 {
    name[at..at + 20].parse().unwrap()
}
