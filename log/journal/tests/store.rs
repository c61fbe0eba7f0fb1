//! The store keeps what it acknowledged, in order, and says so when it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::store::simulated::{Fate, Operation};
use journal::store::{Directory, Driving, Entry, ImageMeta, LogId, Payload, Settings, Store, StoreError};

const SMALL: u64 = 2048;

#[test]
fn everything_is_there_after_a_restart() {
    let disk = Disk::new(1);
    let written = log_of(40);
    {
        let store = open(&disk, SMALL).unwrap();
        vote(&store, b"one");
        written.chunks(3).for_each(|group| append(&store, group));
        store.save_committed(LogId { index: 20, term: 1 }).unwrap();
        vote(&store, b"two");
        assert_eq!(all(&store), written);
    }
    let store = open(&disk, SMALL).unwrap();
    assert!(disk.files().keys().filter(|name| name.ends_with(".seg")).count() > 3, "segments were filled");
    assert_eq!(all(&store), written);
    assert_eq!(store.vote().as_deref(), Some(b"two".as_slice()));
    assert_eq!(store.committed(), Some(LogId { index: 20, term: 1 }));
    assert_eq!(store.last(), Some(LogId { index: 41, term: 1 }));
}

#[test]
fn any_range_reads_the_same_from_files_and_from_memory() {
    let disk = Disk::new(1);
    let written = log_of(30);
    let store = open(&disk, SMALL).unwrap();
    written.iter().for_each(|entry| append(&store, std::slice::from_ref(entry)));
    let reopened = open(&disk_with(disk.files()), SMALL).unwrap();
    for from in 0..written.len() {
        for to in from..=written.len() {
            let range = from as u64..to as u64;
            assert_eq!(store.entries(range.clone(), usize::MAX).unwrap(), written[from..to]);
            assert_eq!(reopened.entries(range, usize::MAX).unwrap(), written[from..to]);
        }
    }
    assert_eq!(reopened.entries(5..20, 0).unwrap(), written[5..6], "at least one");
}

#[test]
fn every_entry_of_a_long_segment_is_found() {
    const LONG: u64 = 48 << 10;
    let disk = Disk::new(1);
    let written = log_of(800);
    let store = open(&disk, LONG).unwrap();
    append(&store, &written[..150]);
    append(&store, &(150..190).map(|index| blank(index, 1)).collect::<Vec<_>>());
    vote(&store, b"for another");
    truncate(&store, 150);
    append(&store, &written[150..400]);
    vote(&store, b"for a third");
    append(&store, &written[400..]);
    let members = Bytes::from_static(b"members");
    let image = ImageMeta { last: LogId { index: 700, term: 1 }, index: Index(699), members, chain: None };
    store.keep(image, vec![], Time(1)).unwrap();
    let reopened = open(&disk_with(disk.files()), LONG).unwrap();
    for from in (0..written.len()).rev() {
        let (one, some) = (from + 1, (from + 200).min(written.len()));
        assert_eq!(reopened.entries(from as u64..one as u64, usize::MAX).unwrap(), written[from..one]);
        assert_eq!(reopened.entries(from as u64..some as u64, usize::MAX).unwrap(), written[from..some]);
    }
    truncate(&reopened, 720);
    assert_eq!(all(&reopened), written[..720]);
    append(&reopened, &written[720..]);
    assert_eq!(all(&reopened), written);
}

#[test]
fn batches_are_found_by_their_index() {
    let disk = Disk::new(1);
    let store = open(&disk, SMALL).unwrap();
    append(&store, &[membership(0), blank(1, 1), batch_entry(2, 1, 1), batch_entry(3, 1, 2)]);
    append(&store, &[blank(4, 2), batch_entry(5, 2, 3)]);
    let indexes = |from, upto| -> Vec<u64> {
        let batches = store.batches(Index(from), Index(upto), usize::MAX).unwrap();
        batches.iter().map(|batch| batch.index().0).collect()
    };
    assert_eq!(indexes(1, 3), [1, 2, 3]);
    assert_eq!(indexes(2, 2), [2]);
    assert_eq!(indexes(3, 9), [3]);
    assert_eq!(indexes(4, 9), [0; 0]);
    assert_eq!((store.batch_at(1), store.batch_at(4), store.batch_at(5)), (Index(0), Index(2), Index(3)));
}

#[test]
fn what_a_new_leader_replaced_stays_replaced() {
    let disk = Disk::new(1);
    let replaced = [blank(1, 2), batch_entry(2, 2, 1), batch_entry(3, 2, 2)];
    {
        let store = open(&disk, SMALL).unwrap();
        append(&store, &[membership(0), blank(1, 1), batch_entry(2, 1, 1)]);
        truncate(&store, 1);
        assert_eq!(store.last(), Some(LogId { index: 0, term: 0 }));
        append(&store, &replaced);
    }
    let store = open(&disk, SMALL).unwrap();
    assert_eq!(all(&store)[1..], replaced);
}

#[test]
fn a_committed_entry_cannot_be_made_void() {
    let disk = Disk::new(1);
    let store = open(&disk, SMALL).unwrap();
    append(&store, &[membership(0), blank(1, 1)]);
    store.save_committed(LogId { index: 1, term: 1 }).unwrap();
    append(&store, &[blank(2, 1)]);
    assert!(matches!(store.truncate(1, done().0), Err(StoreError::OutOfOrder(_))));
}

#[test]
fn entries_that_do_not_follow_are_refused_whole() {
    let disk = Disk::new(1);
    let store = open(&disk, SMALL).unwrap();
    let gap = [membership(0), blank(2, 1)];
    assert!(matches!(store.append(gap.to_vec(), done().0), Err(StoreError::OutOfOrder(_))));
    assert_eq!(store.last(), None);
    append(&store, &[membership(0), blank(1, 1)]);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let disk = Disk::new(1);
    let large = Entry { index: 1, term: 1, payload: Payload::Batch(encoded(1, 100_000)) };
    {
        let store = open(&disk, SMALL).unwrap();
        append(&store, &[membership(0), large.clone(), batch_entry(2, 1, 2)]);
    }
    assert_eq!(all(&open(&disk, SMALL).unwrap())[1..], [large, batch_entry(2, 1, 2)]);
}

#[test]
fn what_queues_up_during_a_sync_shares_the_next() {
    let disk = Disk::new(1);
    let store = open_steps(&disk, 1 << 16).unwrap();
    store.append(vec![membership(0)], done().0).unwrap();
    assert!(store.step());
    let told = (1..=100).map(|index| {
        let (tell, told) = done();
        store.append(vec![blank(index, 1)], tell).unwrap();
        told
    });
    let told: Vec<mpsc::Receiver<()>> = told.collect();
    assert!(told.iter().all(|told| told.try_recv().is_err()), "nothing happens by itself");
    let before = disk.count(Operation::Sync);
    assert!(store.step());
    assert!(told.iter().all(|told| told.try_recv().is_ok()));
    assert!(!store.step(), "one step did it all");
    assert_eq!(disk.count(Operation::Sync) - before, 1);
}

#[test]
fn a_failed_sync_is_fatal_and_acknowledges_nothing() {
    let disk = Disk::new(1);
    let (died, death) = mpsc::channel();
    let fatal = Arc::new(move |why: &str| died.send(why.to_string()).unwrap());
    let store = Store::open(Arc::new(disk.clone()), threads(SMALL), fatal).unwrap();
    append(&store, &[membership(0)]);
    until(|| disk.files().contains_key("spare"));
    disk.fail(Operation::Sync, 0);
    let (tell, told) = done();
    store.append(vec![blank(1, 1)], tell).unwrap();
    assert_eq!(death.recv_timeout(PATIENCE).unwrap(), "sync the log: planted");
    assert!(told.recv_timeout(PATIENCE).is_err(), "the callback was dropped");
    assert!(matches!(store.append(vec![blank(2, 1)], done().0), Err(StoreError::Stopped)));
}

#[test]
fn a_full_disk_is_told_early_and_loses_nothing() {
    // Ten of these batches and the members are more than one of them takes, and fit into two.
    const SEGMENT: u64 = SMALL + 480;
    let disk = Disk::new(1);
    disk.set_capacity(Some(2 * SEGMENT));
    let store = open(&disk, SEGMENT).unwrap();
    append(&store, &[membership(0)]);
    assert!(!store.is_full());
    // Fills the first segment, so that the second and last one is taken.
    let written = log_of(20);
    append(&store, &written[1..11]);
    until(|| store.is_full());
    // More than the second takes.
    let (tell, told) = done();
    store.append(written[11..].to_vec(), tell).unwrap();
    assert!(matches!(told.try_recv(), Err(mpsc::TryRecvError::Empty)));
    disk.set_capacity(Some(20 * SEGMENT));
    told.recv_timeout(PATIENCE).expect("goes on when there is space");
    until(|| !store.is_full());
    drop(store);
    assert_eq!(all(&open(&disk, SEGMENT).unwrap()), written);
}

#[test]
fn a_full_disk_stops_the_steps_and_nothing_else() {
    let disk = Disk::new(1);
    disk.set_capacity(Some(2 * SMALL));
    let store = open_steps(&disk, SMALL).unwrap();
    let written = log_of(60);
    let mut told = Vec::new();
    for group in written.chunks(2) {
        let (tell, done) = done();
        store.append(group.to_vec(), tell).unwrap();
        told.push(done);
    }
    run(&store);
    assert!(store.is_full());
    assert!(!store.step(), "there is still no space");
    let safe = |told: &[mpsc::Receiver<()>]| told.iter().filter(|told| told.try_recv().is_ok()).count();
    assert_eq!(safe(&told), 0, "one group, and not all of it is written");
    assert_eq!(all(&store), written, "what was taken is read");
    disk.set_capacity(Some(6 * SMALL));
    assert!(!store.step(), "a part of it fits");
    disk.set_capacity(None);
    assert!(store.step());
    assert_eq!((safe(&told), store.is_full()), (31, false));
    drop(store);
    assert_eq!(all(&open_steps(&disk.crash(|_| Fate::Lost), SMALL).unwrap()), written);
}

#[test]
fn a_record_that_the_spare_is_too_short_for_waits_for_space() {
    let disk = Disk::new(1);
    let store = open_steps(&disk, SMALL).unwrap();
    let large = |index: u64| {
        let batch = encoded(index, 3 * SMALL as usize);
        Entry { index, term: 1, payload: Payload::Batch(batch) }
    };
    add(&store, &[blank(0, 1), large(1)]);
    // A spare of the usual length is there, and no space for a longer one.
    disk.set_capacity(Some(disk.used()));
    let (tell, told) = done();
    store.append(vec![large(2)], tell).unwrap();
    run(&store);
    assert!(store.is_full() && told.try_recv().is_err());
    disk.set_capacity(None);
    run(&store);
    told.try_recv().expect("goes on when there is space");
    let again = open_steps(&disk.crash(|_| Fate::Lost), SMALL).unwrap();
    assert_eq!(all(&again), [blank(0, 1), large(1), large(2)]);
}

#[test]
fn a_disk_that_fills_up_at_any_byte_loses_nothing() {
    let written = log_of(30);
    for capacity in (2 * SMALL..10 * SMALL).step_by(97) {
        let disk = Disk::new(1);
        disk.set_capacity(Some(capacity));
        let store = open_steps(&disk, SMALL).unwrap();
        let mut safe = 0;
        for entry in &written {
            let (tell, told) = done();
            store.append(vec![entry.clone()], tell).unwrap();
            run(&store);
            safe += usize::from(told.try_recv().is_ok());
        }
        let left = open_steps(&disk.crash(|_| Fate::Lost), SMALL).unwrap();
        assert!(all(&left).len() >= safe && written.starts_with(&all(&left)), "{capacity}");
        let disk = disk_with(disk.files());
        let store = open_steps(&disk, SMALL).unwrap();
        add(&store, &written[all(&store).len()..]);
        assert_eq!(all(&store), written, "{capacity}");
    }
}

#[test]
fn work_is_told_to_whoever_steps() {
    let (heard, calls) = (Arc::new(AtomicU64::new(0)), Disk::new(1));
    let counter = heard.clone();
    let on_work = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let settings = Settings { driving: Driving::Steps { on_work }, ..steps(SMALL) };
    let store = Store::open(Arc::new(calls.clone()), settings, no_fatal()).unwrap();
    store.append(vec![membership(0)], done().0).unwrap();
    store.save_vote("vote".into(), done().0).unwrap();
    assert_eq!(heard.load(Ordering::SeqCst), 2);
    // What was not stepped is lost when it is dropped, and written when it is closed.
    drop(store);
    assert_eq!(open_steps(&calls, SMALL).unwrap().last(), None);
    let store = open_steps(&calls, SMALL).unwrap();
    store.append(vec![membership(0)], done().0).unwrap();
    store.close();
    assert_eq!(open_steps(&calls, SMALL).unwrap().last(), Some(LogId { index: 0, term: 0 }));
}

#[test]
fn more_segments_are_read_than_are_kept_in_mind() {
    let disk = Disk::new(1);
    let written = log_of(150);
    let store = open_steps(&disk, 1024).unwrap();
    written.chunks(5).for_each(|group| add(&store, group));
    let reopened = open_steps(&disk, 1024).unwrap();
    assert!(disk.files().keys().filter(|name| name.ends_with(".seg")).count() > 60);
    for at in (0..written.len()).chain((0..written.len()).rev()) {
        let range = at as u64..at as u64 + 3;
        let expected = &written[at..(at + 3).min(written.len())];
        assert_eq!(reopened.entries(range, usize::MAX).unwrap(), expected);
    }
    assert_eq!(all(&reopened), written);
    // Back into segments whose places are not in mind.
    let (tell, told) = done();
    reopened.truncate(40, tell).unwrap();
    run(&reopened);
    told.try_recv().unwrap();
    add(&reopened, &[blank(40, 2), blank(41, 2)]);
    for store in [reopened, open_steps(&disk, 1024).unwrap()] {
        assert_eq!(all(&store)[..40], written[..40]);
        assert_eq!(all(&store)[40..], [blank(40, 2), blank(41, 2)]);
    }
}

#[test]
fn closing_does_not_wait_for_space() {
    let disk = Disk::new(1);
    disk.set_capacity(Some(SMALL));
    let store = open(&disk, SMALL).unwrap();
    let written = log_of(30);
    store.append(written.clone(), done().0).unwrap();
    until(|| store.is_full());
    drop(store);
    let store = open(&disk_with(disk.files()), SMALL).unwrap();
    assert!(written.starts_with(&all(&store)));
}

#[test]
fn one_process_has_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let held = Directory::open(dir.path()).unwrap();
    let refused = Directory::open(dir.path()).unwrap_err();
    assert!(refused.to_string().ends_with("is in use by another process"), "{refused}");
    drop(held);
    Directory::open(dir.path()).unwrap();
}

#[test]
fn a_real_directory_keeps_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let files = Arc::new(Directory::open(dir.path()).unwrap());
        Store::open(files, threads(SMALL), no_fatal()).unwrap()
    };
    let written = log_of(40);
    {
        let store = open();
        append(&store, &written[..20]);
        append(&store, &written[20..]);
    }
    assert_eq!(all(&open()), written);
}

/// A membership, a blank and `batches` batches.
fn log_of(batches: u64) -> Vec<Entry> {
    let head = [membership(0), blank(1, 1)];
    head.into_iter().chain((1..=batches).map(|nth| batch_entry(nth + 1, 1, nth))).collect()
}

fn until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never held");
        std::thread::yield_now();
    }
}
