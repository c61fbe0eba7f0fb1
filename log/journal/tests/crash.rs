//! The power goes at each operation of a small history, and whatever the disk makes of what was not synced: what was
//! acknowledged is there, what was not is there whole or not at all, and the log goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::store::simulated::{Fate, Operation, Unsynced};
use journal::store::{Chain, Entry, Fatal, ImageMeta, LogId, Retention, Settings, Store, StoreError};
use model::Chunk;

const NOW: Time = Time(1_700_000_100_000_000_000);

/// One thing asked of the store. Each is a group of its own.
#[derive(Clone, Debug)]
enum Act {
    Append(Vec<Entry>),
    Truncate(u64),
    Vote(&'static [u8]),
    Purge(LogId),
    Keep(ImageMeta, Vec<Chunk>),
    Install(ImageMeta, Vec<Chunk>),
    /// Noted without a word, and synced with what comes next.
    Committed(LogId),
    Reopen,
}

/// What can be seen of a store.
#[derive(Clone, PartialEq)]
struct Seen {
    first: u64,
    last: Option<LogId>,
    entries: Vec<Entry>,
    vote: Option<Bytes>,
    purged: Option<LogId>,
    image: Option<(ImageMeta, Vec<Chunk>)>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries: Vec<String> =
            self.entries.iter().map(|entry| format!("{}.{}", entry.index, entry.term)).collect();
        let image = self.image.as_ref().map(|(meta, chunks)| (meta.last, chunks.len()));
        let Seen { first, last, vote, purged, .. } = self;
        write!(f, "from {first} to {last:?}: {entries:?}, vote {vote:?}, purged {purged:?}, image {image:?}")
    }
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_acknowledged() {
    let acts = history();
    let whole = Disk::new(0);
    let seen = played(&acts, &whole);
    let operations = whole.operations();
    assert!(operations > 150, "{operations}");
    for at in 0..operations {
        let (disk, done) = cut(&acts, at);
        for (how, after) in outcomes(&disk) {
            let case = format!("power cut at operation {at}, during {:?}, {how}", acts[done]);
            check(&case, &after, &seen[done], &seen[done + 1]);
        }
    }
}

#[test]
fn a_crash_during_the_start_after_a_crash_loses_nothing_either() {
    let acts = history();
    let whole = Disk::new(0);
    let seen = played(&acts, &whole);
    for at in 0..whole.operations() {
        let (disk, done) = cut(&acts, at);
        for (how, left) in [("as chance wants", disk.crash_by_chance()), ("killed", disk.kill())] {
            for again in 0.. {
                let disk = left.kill();
                disk.cut_power_at(disk.operations() + again);
                let opened = try_open(&disk).map(|(store, _)| run(&store));
                let case = format!("cut at {at} during {:?}, {how}, and at {again} of the start", acts[done]);
                check(&case, &disk.crash_by_chance(), &seen[done], &seen[done + 1]);
                if opened.is_ok() && disk.files() == left.files() || again > 30 {
                    assert!(opened.is_ok(), "{case}");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_failed_operation_acknowledges_nothing_and_a_new_start_mends_it() {
    let acts = history();
    let whole = Disk::new(0);
    let seen = played(&acts, &whole);
    let kinds =
        [Operation::Write, Operation::Sync, Operation::Create, Operation::Rename, Operation::SyncDirectory];
    for kind in kinds {
        for nth in 0..whole.count(kind) {
            let disk = Disk::new(nth);
            disk.fail(kind, nth);
            let (died, done) = play(&acts, &disk);
            let done = done.expect("something failed");
            let case = format!("{kind:?} {nth} failed during {:?}", acts[done]);
            // An image may fail for a reason that leaves the log alone; everything else is the end.
            let image = matches!(acts[done], Act::Keep(..) | Act::Install(..) | Act::Reopen);
            assert!(died || image, "{case}");
            check(&case, &disk.crash_by_chance(), &seen[done], &seen[done + 1]);
            check(&case, &disk.kill(), &seen[done], &seen[done + 1]);
        }
    }
}

/// Appends, votes, truncations within and across segments, seals, images, installation, retention.
fn history() -> Vec<Act> {
    let mut acts = vec![
        Act::Append(vec![membership(0), blank(1, 1)]),
        Act::Vote(b"first"),
        Act::Append((2..6).map(|at| batch_entry(at, 1, at - 1)).collect()),
        Act::Truncate(5),
        Act::Append((5..9).map(|at| batch_entry(at, 2, at - 1)).collect()),
        Act::Committed(LogId { index: 4, term: 1 }),
        // Back into an earlier segment.
        Act::Truncate(6),
        Act::Vote(b"second"),
        Act::Append((6..12).map(|at| batch_entry(at, 3, at - 1)).collect()),
        Act::Committed(LogId { index: 11, term: 3 }),
        Act::Reopen,
        Act::Keep(meta(8, 3, None), chunks(&["a", "b"])),
        // Larger than a segment, and than a sector of a large disk.
        Act::Append(vec![Entry { index: 12, term: 3, payload: large(11) }]),
        Act::Append((13..20).map(|at| batch_entry(at, 3, at - 1)).collect()),
        Act::Purge(LogId { index: 15, term: 3 }),
        Act::Keep(meta(16, 3, None), chunks(&["a", "c"])),
        Act::Keep(meta(17, 3, None), chunks(&["d", "c"])),
        Act::Reopen,
        Act::Vote(b"third"),
        Act::Append((20..24).map(|at| batch_entry(at, 4, at - 1)).collect()),
    ];
    let chain = Some(Chain([7; 16]));
    acts.extend([
        Act::Install(meta(40, 5, chain), chunks(&["installed", "c"])),
        Act::Purge(LogId { index: 40, term: 5 }),
        Act::Append((41..47).map(|at| batch_entry(at, 6, at - 1)).collect()),
        Act::Reopen,
        Act::Keep(meta(42, 6, None), chunks(&["e"])),
        Act::Truncate(45),
        Act::Vote(b"fourth"),
        Act::Append((45..50).map(|at| batch_entry(at, 7, at - 1)).collect()),
        Act::Purge(LogId { index: 46, term: 7 }),
        Act::Keep(meta(46, 7, None), chunks(&["f"])),
        Act::Keep(meta(48, 7, None), chunks(&["g"])),
        Act::Install(meta(60, 8, chain), chunks(&["h"])),
    ]);
    acts
}

fn meta(last: u64, term: u64, chain: Option<Chain>) -> ImageMeta {
    ImageMeta {
        last: LogId { index: last, term },
        index: Index(last - 1),
        members: Bytes::from_static(b"members"),
        chain,
    }
}

fn chunks(texts: &[&'static str]) -> Vec<Chunk> {
    texts.iter().map(|text| Chunk::new(text.repeat(40).into())).collect()
}

fn large(batch: u64) -> journal::store::Payload {
    journal::store::Payload::Batch(encoded(batch, 9000))
}

/// What is seen before the first act and after each.
fn played(acts: &[Act], disk: &Disk) -> Vec<Seen> {
    let (mut store, died) = try_open(disk).unwrap();
    let mut seen = vec![see(&store)];
    for act in acts {
        store = perform(act, store, disk, &died).unwrap_or_else(|why| panic!("{act:?}: {why}"));
        seen.push(see(&store));
    }
    seen
}

/// Whether the store died, and the act during which something failed, if one did.
fn play(acts: &[Act], disk: &Disk) -> (bool, Option<usize>) {
    let Ok((mut store, died)) = try_open(disk) else { return (true, Some(0)) };
    for (nth, act) in acts.iter().enumerate() {
        store = match perform(act, store, disk, &died) {
            Ok(store) => store,
            Err(_) => return (died.load(Ordering::SeqCst), Some(nth)),
        };
    }
    (false, None)
}

/// The disk as it was when the power went at this operation, and the act that was under way.
fn cut(acts: &[Act], at: u64) -> (Disk, usize) {
    let disk = Disk::new(at);
    disk.cut_power_at(at);
    let (_, done) = play(acts, &disk);
    (disk, done.expect("the power went"))
}

/// What the disk may make of what was not synced.
fn outcomes(disk: &Disk) -> Vec<(String, Disk)> {
    let torn = |sector, arrived| Fate::Torn { sector, arrived };
    let (odd, even) = (0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa);
    let mut fates = vec![Fate::Lost, Fate::Kept, Fate::Zeroed, Fate::Doubled, Fate::Swapped];
    fates.extend([
        torn(512, odd),
        torn(512, even),
        torn(512, 1),
        torn(4096, 1),
        torn(4096, even),
        torn(64, odd),
    ]);
    let mut outcomes = vec![("killed".to_string(), disk.kill())];
    for fate in fates {
        for names in [Fate::Lost, Fate::Kept] {
            let one = |it: Unsynced| if it.operation == Operation::Write { fate } else { names };
            outcomes.push((format!("writes {fate:?}, names {names:?}"), disk.crash(one)));
        }
    }
    for half in [0, 1] {
        let every_other = |it: Unsynced| if it.nth % 2 == half { Fate::Kept } else { Fate::Lost };
        outcomes.push((format!("every other, from {half}"), disk.crash(every_other)));
    }
    outcomes.extend((0..4).map(|nth| (format!("chance {nth}"), disk.crash_by_chance())));
    outcomes
}

fn check(case: &str, disk: &Disk, before: &Seen, after: &Seen) {
    let (store, died) = try_open(disk).unwrap_or_else(|error| panic!("{case}: {error}"));
    let found = see(&store);
    assert!(
        is_between(&found, before, after),
        "{case}:\n{found:#?}\nis neither\n{before:#?}\nnor\n{after:#?}"
    );
    drop(store);
    // What was not synced by the start may be lost again.
    let disk = disk.crash(|_| Fate::Lost);
    let (store, _) = try_open(&disk).unwrap_or_else(|error| panic!("{case}, again: {error}"));
    assert_eq!(see(&store), found, "{case}, again");
    goes_on(case, &disk, store, found);
    assert!(!died.load(Ordering::SeqCst), "{case}");
}

fn is_between(found: &Seen, before: &Seen, after: &Seen) -> bool {
    let either = found.vote == before.vote || found.vote == after.vote;
    let either = either && (found.image == before.image || found.image == after.image);
    let either = either && (found.purged == before.purged || found.purged == after.purged);
    let dropped = |from: &Seen| {
        let gone = found.first.checked_sub(from.first).filter(|_| found.first <= after.first);
        gone.and_then(|gone| from.entries.get(gone as usize..)).is_some_and(|rest| rest == found.entries)
    };
    // An append of which the first entries arrived.
    let longer = found.first == before.first
        && found.entries.starts_with(&before.entries)
        && after.entries.starts_with(&found.entries);
    either && (dropped(before) || dropped(after) || longer)
}

/// It takes entries, votes and images, and keeps them.
fn goes_on(case: &str, disk: &Disk, store: Store, found: Seen) {
    let next = found.last.map_or(0, |last| last.index + 1);
    let mut expected = found.entries;
    for index in next..next + 20 {
        add(&store, &[blank(index, 9)]);
        expected.push(blank(index, 9));
    }
    store.save_vote(Bytes::from_static(b"later"), done().0).unwrap();
    run(&store);
    let meta = ImageMeta {
        last: LogId { index: next + 10, term: 9 },
        index: store.batch_at(next + 10),
        members: Bytes::new(),
        chain: None,
    };
    let newer = store.image().is_none_or(|image| image.index < meta.index);
    if newer {
        store.keep(meta.clone(), chunks(&["later"]), NOW).unwrap_or_else(|why| panic!("{case}: {why}"));
    }
    drop(store);
    let (store, _) =
        try_open(&disk.crash(|_| Fate::Lost)).unwrap_or_else(|error| panic!("{case}, then: {error}"));
    let later = see(&store);
    let dropped = (later.first - found.first) as usize;
    assert_eq!(
        (&later.entries[..], later.vote.as_deref()),
        (&expected[dropped..], Some(&b"later"[..])),
        "{case}"
    );
    assert!(!newer || later.image.is_some_and(|(image, _)| image.last == meta.last), "{case}");
}

fn try_open(disk: &Disk) -> Result<(Store, Arc<AtomicBool>), StoreError> {
    let died = Arc::new(AtomicBool::new(false));
    Ok((open_with(disk, &died)?, died))
}

fn open_with(disk: &Disk, died: &Arc<AtomicBool>) -> Result<Store, StoreError> {
    let seen = died.clone();
    let fatal: Fatal = Arc::new(move |_| seen.store(true, Ordering::SeqCst));
    let retention = Retention { bytes: 4096, age: None };
    let settings = Settings { retention, ..steps(1024) };
    Store::open(Arc::new(disk.clone()), settings, fatal)
}

fn see(store: &Store) -> Seen {
    Seen {
        first: store.first(),
        last: store.last(),
        entries: all(store),
        vote: store.vote(),
        purged: store.purged(),
        image: store.read_image().unwrap().map(|(meta, image)| (meta, image.chunks)),
    }
}

/// The store after it, or why it is not acknowledged.
fn perform(act: &Act, store: Store, disk: &Disk, died: &Arc<AtomicBool>) -> Result<Store, String> {
    let (tell, told) = done();
    let text = |error: StoreError| error.to_string();
    match act.clone() {
        Act::Append(entries) => store.append(entries, tell).map_err(text)?,
        Act::Truncate(from) => store.truncate(from, tell).map_err(text)?,
        Act::Vote(vote) => store.save_vote(Bytes::from_static(vote), tell).map_err(text)?,
        Act::Purge(upto) => store.purge(upto, tell).map_err(text)?,
        Act::Install(meta, chunks) => store.install(meta, chunks, tell).map_err(|error| error.to_string())?,
        Act::Keep(meta, chunks) => {
            store.keep(meta, chunks, NOW).map_err(|error| error.to_string())?;
            tell();
        }
        Act::Committed(upto) => {
            store.save_committed(upto).map_err(text)?;
            tell();
        }
        Act::Reopen => {
            store.close();
            drop(store);
            if died.load(Ordering::SeqCst) {
                return Err("it died while it closed".into());
            }
            return open_with(disk, died).map_err(text);
        }
    }
    run(&store);
    told.try_recv().map_err(|_| "not acknowledged".to_string())?;
    // An image may be safe when what is not needed any more is not yet removed.
    match died.load(Ordering::SeqCst) || disk.is_off() {
        true => Err("it died".into()),
        false => Ok(store),
    }
}
