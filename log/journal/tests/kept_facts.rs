//! Of what leaves the log the facts of chosen kinds stay, and nothing is lost or repeated on the way.

use std::sync::Arc;

use crate::support::*;
use base::{Index, Time, Uuid};
use bytes::Bytes;
use journal::EncodedBatch;
use journal::store::simulated::{Fate, Operation, Unsynced};
use journal::store::{
    ArchiveSettings, Entry, ImageMeta, KEPT_SUFFIX, KeepSettings, KeptStatus, LogId, Payload, Retention,
    Settings, Store, StoreError, verify_file,
};
use model::event::{JobStopped, NodeMessage, NodeMessagesEmitted, ObjectKind, ObjectKinds};
use model::{Actor, Batch, Caller, CommandRecord, Event, JobKey, LoggedEvent, NodeId, RequestId};

const SMALL: u64 = 2048;
const NOW: Time = Time(1_700_000_100_000_000_000);
/// Entries 0 to this; batch `n` is entry `n + 1`.
const LAST: u64 = 60;
/// Every so many batches one has a fact about a job, beside one about a node.
const JOBS: u64 = 5;

#[test]
fn facts_of_chosen_kinds_stay_readable_below_the_log() {
    let disk = Disk::new(1);
    let store = aged(&disk, &[ObjectKind::Job]);
    let horizon = store.horizon();
    assert!(horizon > Index(20), "{horizon}");
    let parts = kept(&store);
    assert_eq!(facts(&parts), expected(1..horizon.0));
    let first = &parts[0];
    let rows: Vec<_> = first.rows().collect();
    assert!(rows[0].left_out && !rows[1].left_out && first.present() == 1);
    assert_eq!(first.event(&rows[1]).unwrap(), stopped(JOBS));
    assert_eq!(first.commands().unwrap()[1].actor, caller());
    assert_eq!((first.time(), first.digest()), (whole(JOBS).time(), whole(JOBS).digest()));
    // A part is never passed off as history.
    assert!(matches!(store.batches(Index(1), Index(9), 1), Err(StoreError::Compacted { .. })));

    let status = status(&store);
    assert_eq!(status.spans.len(), 1, "{status:?}");
    let span = &status.spans[0];
    assert_eq!((span.first, span.last.next(), span.facts), (Index(1), horizon, parts.len() as u64));
    assert_eq!((span.first_time, span.last_time), (first.time(), parts[parts.len() - 1].time()));
    assert_eq!((status.files, status.kinds), (1, kinds(&[ObjectKind::Job])));
    assert!(status.bytes < status.raw_bytes && status.damaged.is_empty() && status.failed.is_none());

    drop(store);
    let store = open_keeping(&disk, &[ObjectKind::Job], u64::MAX).unwrap();
    assert_eq!(kept(&store), parts);
    // From any place, as many as are asked for.
    let some = store.kept(Index(7), Index(17), usize::MAX).unwrap();
    assert_eq!(facts(&some), [10, 15]);
    assert_eq!(facts(&store.kept(Index(7), Index(17), 1).unwrap()), [10]);
    drop(store);
    // With nothing to be kept any more, what is there stays readable.
    assert_eq!(kept(&open_keeping(&disk, &[], u64::MAX).unwrap()), parts);
}

#[test]
fn a_crash_loses_and_repeats_nothing() {
    let prepared = Disk::new(0);
    let before = {
        let store = open_keeping(&prepared, &[ObjectKind::Job], u64::MAX).unwrap();
        fill(&store);
        prepared.operations()
    };
    try_age(&open_keeping(&prepared, &[ObjectKind::Job], u64::MAX).unwrap());
    assert!(prepared.operations() > before + 40, "{}", prepared.operations());
    for at in before..prepared.operations() {
        let disk = Disk::new(at);
        disk.cut_power_at(at);
        if let Ok(store) = open_keeping(&disk, &[ObjectKind::Job], u64::MAX) {
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
fn a_disk_that_fails_leaves_the_segments() {
    for kind in [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename] {
        let (disk, other) = (Disk::new(1), Disk::new(2));
        let settings = Settings {
            retention: Retention { bytes: 8 * SMALL, age: None },
            ..keeping(&other, &[ObjectKind::Job], u64::MAX)
        };
        let store = Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap();
        other.fail(kind, other.count(kind));
        age(&store);
        assert!(status(&store).failed.is_some() && store.first() == 0, "{kind:?}");
        assert!(!other.files().contains_key("kept.tmp"), "{kind:?}");
        store.keep(meta(LAST), vec![], NOW).unwrap();
        assert!(store.first() > 0 && status(&store).failed.is_none(), "{kind:?}");
        assert_eq!(all_facts(&store), expected(1..LAST), "{kind:?}");
    }
}

#[test]
fn a_full_disk_costs_facts_only_when_the_log_is_twice_too_long() {
    let (disk, other) = (Disk::new(1), Disk::new(2));
    other.set_capacity(Some(100));
    let store = Store::open(
        Arc::new(disk.clone()),
        Settings {
            retention: Retention { bytes: 6 * SMALL, age: None },
            ..keeping(&other, &[ObjectKind::Job], u64::MAX)
        },
        no_fatal(),
    )
    .unwrap();
    age(&store);
    let bytes = store.history().segment_bytes;
    assert!(bytes > 10 * SMALL && bytes <= 12 * SMALL, "{bytes}");
    assert!(store.horizon() > Index(1) && kept(&store).is_empty());
    assert!(status(&store).failed.unwrap().starts_with("write to the archive: "));
}

#[test]
fn too_many_bytes_cost_the_oldest_facts() {
    // Other kinds each time, so that no file goes on with another.
    let disk = Disk::new(1);
    let open = |kinds: &[ObjectKind], most| open_keeping(&disk, kinds, most).unwrap();
    age(&open(&[ObjectKind::Job], u64::MAX));
    let first = status(&open(&[ObjectKind::Job], u64::MAX));
    let store = open(&[ObjectKind::Job, ObjectKind::Acl], first.bytes + 1);
    go_on(&store, 2 * LAST);
    let status = status(&store);
    assert_eq!((status.files, status.spans.len()), (1, 1), "{status:?}");
    assert_eq!(status.spans[0].first, first.spans[0].last.next());
    assert_eq!(all_facts(&store), expected(status.spans[0].first.0..2 * LAST));
    assert_eq!(store.kept_spans(), status.spans);
}

#[test]
fn other_kinds_from_then_on_are_another_part() {
    let disk = Disk::new(1);
    age(&open_keeping(&disk, &[ObjectKind::Job], u64::MAX).unwrap());
    let store = open_keeping(&disk, &[ObjectKind::Node], u64::MAX).unwrap();
    go_on(&store, 2 * LAST);
    let spans = store.kept_spans();
    let kinds: Vec<String> = spans.iter().map(|span| span.kinds.to_string()).collect();
    assert_eq!(kinds, ["job", "node"]);
    assert_eq!(spans[0].last.next(), spans[1].first);
    let parts = kept(&store);
    assert!(parts.windows(2).all(|two| two[0].index() < two[1].index()));
    let later = parts.iter().filter(|part| part.index() >= spans[1].first);
    assert!(later.clone().count() as u64 == spans[1].facts && later.clone().all(|part| part.present() == 1));
}

#[test]
fn what_leaves_the_archive_is_kept_and_the_archive_is_preferred() {
    let (disk, archive) = (Disk::new(1), Disk::new(2));
    let open = |most: Option<u64>| {
        let settings = Settings {
            archive: Some(ArchiveSettings { files: Arc::new(archive.clone()), max_bytes: most }),
            ..keeping(&disk, &[ObjectKind::Job], u64::MAX)
        };
        Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap()
    };
    let store = open(None);
    age(&store);
    assert!(store.first() > 20 && store.horizon() == Index(1));
    assert_eq!((kept(&store), status(&store).files), (Vec::new(), 0));
    let bytes = store.history().archive.unwrap().bytes;
    drop(store);
    let store = open(Some(bytes / 2));
    go_on(&store, LAST + 3);
    assert!(store.horizon() > Index(1));
    assert_eq!(store.kept_spans()[0].last.next(), store.horizon());
    assert_eq!(all_facts(&store), expected(1..LAST + 3));
}

#[test]
fn damage_is_found_and_is_never_read_as_facts() {
    let disk = Disk::new(1);
    let parts = kept(&aged(&disk, &[ObjectKind::Job]));
    let name = disk.files().into_keys().find(|name| name.ends_with(KEPT_SUFFIX)).unwrap();
    for at in 0..disk.files()[&name].len() {
        let damaged = disk_with(disk.files());
        damaged.flip(&name, at, 0x10);
        let store = open_keeping(&damaged, &[ObjectKind::Job], u64::MAX).unwrap();
        let status = status(&store);
        match status.damaged.as_slice() {
            [] => {
                let refused = store.verify_kept(Index(1)).unwrap_err().to_string();
                assert!(refused.contains(&format!("file of kept facts {name}")), "byte {at}: {refused}");
                match store.kept(Index(1), Index(LAST), usize::MAX) {
                    Err(_) => {}
                    Ok(read) => panic!("byte {at}: {} of {} were read", read.len(), parts.len()),
                }
            }
            named => {
                assert_eq!(named, std::slice::from_ref(&name), "byte {at}");
                assert!(kept(&store).is_empty() && store.kept_spans().is_empty(), "byte {at}");
            }
        }
    }
}

#[test]
fn kept_facts_are_verified_and_exported() {
    let disk = Disk::new(1);
    let store = aged(&disk, &[ObjectKind::Job]);
    let file = store.verify_kept(Index(1)).unwrap().unwrap();
    assert_eq!((file.first, file.last.next()), (Index(1), store.horizon()));
    // It ends where the log begins.
    assert_eq!(file.ends, store.verify_history(store.horizon()).unwrap().unwrap().begins);
    assert_eq!(store.verify_kept(file.last.next()).unwrap(), None);
    let (exported, bytes) = store.export_kept(Index(1)).unwrap().unwrap();
    assert_eq!(exported, file);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(&file.name);
    std::fs::write(&path, &bytes).unwrap();
    let open = || Arc::new(std::fs::File::open(&path).unwrap());
    assert_eq!(verify_file(&file.name, open()).unwrap(), file);
    std::fs::write(&path, [&bytes[..9], &[bytes[9] ^ 1], &bytes[10..]].concat()).unwrap();
    assert!(verify_file(&file.name, open()).is_err());
}

fn kinds(kinds: &[ObjectKind]) -> ObjectKinds {
    kinds.iter().copied().collect()
}

fn keeping(other: &Disk, of: &[ObjectKind], max_bytes: u64) -> Settings {
    let keep = KeepSettings { files: Arc::new(other.clone()), kinds: kinds(of), max_bytes };
    let retention = Retention { bytes: 3 * SMALL, age: None };
    Settings { retention, keep: Some(keep), ..steps(SMALL) }
}

/// The names of both do not clash, so both may be on one simulated disk.
fn open_keeping(disk: &Disk, of: &[ObjectKind], max_bytes: u64) -> Result<Store, StoreError> {
    Store::open(Arc::new(disk.clone()), keeping(disk, of, max_bytes), no_fatal())
}

fn aged(disk: &Disk, of: &[ObjectKind]) -> Store {
    let store = open_keeping(disk, of, u64::MAX).unwrap();
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

/// Goes on to an entry, and lets go what is older.
fn go_on(store: &Store, last: u64) {
    let from = store.last().unwrap().index + 1;
    let more: Vec<Entry> = (from..=last).map(entry).collect();
    more.chunks(3).for_each(|group| add(store, group));
    store.save_committed(id(last)).unwrap();
    store.purge(id(last), done().0).unwrap();
    run(store);
    (last - 2..=last).for_each(|last| store.keep(meta(last), vec![], NOW).unwrap());
}

/// As [`age`], on a disk that may fail.
fn try_age(store: &Store) {
    let from = store.last().map_or(0, |last| last.index + 1);
    for group in entries()[from as usize..].chunks(3) {
        let _ = store.append(group.to_vec(), done().0);
        run(store);
    }
    let _ = store.save_committed(id(LAST));
    let _ = store.purge(id(LAST), done().0);
    run(store);
    for last in LAST - 2..LAST {
        let _ = store.keep(meta(last), vec![], NOW);
    }
}

fn fill(store: &Store) {
    let from = store.last().map_or(0, |last| last.index + 1);
    entries()[from as usize..].chunks(3).for_each(|group| add(store, group));
    store.save_committed(id(LAST)).unwrap();
    run(store);
}

/// After a crash every fact of what had been written is there once, and more is kept.
fn check(case: &str, disk: &Disk) {
    let open = || open_keeping(disk, &[ObjectKind::Job], u64::MAX);
    let store = open().unwrap_or_else(|error| panic!("{case}: {error}"));
    let there = store.batch_at(store.written().saturating_sub(1)).0;
    assert_eq!(all_facts(&store), expected(1..there + 1), "{case}");
    assert!(!disk.files().contains_key("kept.tmp"), "{case}");
    try_age(&store);
    for last in LAST - 2..=LAST {
        let _ = store.keep(meta(last), vec![], NOW);
    }
    let status = status(&store);
    assert!(store.first() > 20 && status.damaged.is_empty(), "{case}: {status:?}");
    assert_eq!((status.files, status.spans.len()), (1, 1), "{case}: {status:?}");
    assert_eq!(all_facts(&store), expected(1..LAST), "{case}, later");
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

fn status(store: &Store) -> KeptStatus {
    store.history().kept.unwrap()
}

/// What is kept below the log, in small pieces.
fn kept(store: &Store) -> Vec<EncodedBatch> {
    let (mut at, mut all) = (Index(1), Vec::new());
    loop {
        let some = store.kept(at, Index(u64::MAX - 1), 700).unwrap();
        let Some(last) = some.last() else { return all };
        at = last.index().next();
        all.extend(some);
    }
}

/// Indexes of the facts about jobs, kept or in the history.
fn all_facts(store: &Store) -> Vec<u64> {
    let (mut at, mut all) = (store.horizon(), kept(store));
    loop {
        let some = store.batches(at, Index(u64::MAX - 1), usize::MAX).unwrap();
        let Some(last) = some.last() else { return facts(&all) };
        at = last.index().next();
        all.extend(some);
    }
}

fn facts(batches: &[EncodedBatch]) -> Vec<u64> {
    let about_job = |batch: &&EncodedBatch| {
        batch.rows().any(|row| !row.left_out && ObjectKind::of(row.kind) == Some(ObjectKind::Job))
    };
    batches.iter().filter(about_job).map(|batch| batch.index().0).collect()
}

fn expected(indexes: std::ops::Range<u64>) -> Vec<u64> {
    indexes.filter(|index| index % JOBS == 0).collect()
}

/// A membership, a blank, and batches.
fn entries() -> Vec<Entry> {
    let head = [membership(0), blank(1, 1)];
    head.into_iter().chain((2..=LAST).map(entry)).collect()
}

fn entry(at: u64) -> Entry {
    Entry { index: at, term: 1, payload: Payload::Batch(whole(at - 1)) }
}

fn whole(index: u64) -> EncodedBatch {
    if !index.is_multiple_of(JOBS) {
        return encoded(index, 30);
    }
    let messages = vec![NodeMessage::new("Test", "something else", Time(index as i64))];
    let emitted = NodeMessagesEmitted { node: NodeId(Uuid::from(1)), messages };
    let command = |actor| CommandRecord { request: RequestId(Uuid::from(1)), kind: 1, actor };
    journal::encode(&Batch {
        epoch: model::EPOCH,
        index: Index(index),
        previous: Index(index - 1),
        digest: model::Digest { jobs: index, ..model::Digest::default() },
        time: Time(1_700_000_000_000_000_000 + index as i64),
        proposer: Uuid::from(1),
        commands: vec![command(Actor::ANONYMOUS), command(caller())],
        events: vec![
            LoggedEvent { command: 0, event: emitted.into() },
            LoggedEvent { command: 1, event: stopped(index) },
        ],
    })
}

fn stopped(version: u64) -> Event {
    JobStopped { key: JobKey::new("default", "web"), version }.into()
}

fn caller() -> Actor {
    Actor::Caller(Caller { accessor: "a1".to_string(), ..Caller::default() })
}

fn id(index: u64) -> LogId {
    LogId { index, term: 1 }
}

fn meta(last: u64) -> ImageMeta {
    let (index, members) = (Index(last - 1), Bytes::from_static(b"members"));
    ImageMeta { last: id(last), index, members, chain: None }
}
