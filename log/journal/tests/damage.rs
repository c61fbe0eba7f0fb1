//! Each byte of segments and images flipped: what is read is what was written, or the damage is reported, and a repair
//! keeps what can be kept.

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::store::simulated::Operation;
use journal::store::{Entry, ImageMeta, LogId, Repair, Store, StoreError, repair};
use model::Chunk;

const NOW: Time = Time(1_700_000_100_000_000_000);
const SEGMENT: u64 = 1024;
const LAST: u64 = 30;

/// A log of entries 0 to 30 in several segments, a vote in the middle, and images at 12 and 20.
fn written() -> Contents {
    let disk = Disk::new(1);
    let store = open_steps(&disk, SEGMENT).unwrap();
    entries().chunks(2).enumerate().for_each(|(nth, group)| {
        add(&store, group);
        if nth == 3 {
            store.save_vote(Bytes::from_static(b"a vote"), done().0).unwrap();
            run(&store);
        }
    });
    store.keep(meta(12), chunks("old"), NOW).unwrap();
    store.keep(meta(20), chunks("new"), NOW).unwrap();
    disk.files()
}

#[test]
fn no_byte_of_a_log_with_images_changes_unseen() {
    let files = written();
    let segments: Vec<&String> = files.keys().filter(|name| name.ends_with(".seg")).collect();
    let active = *segments.last().unwrap();
    for name in &segments {
        for at in 0..files[*name].len() {
            let disk = disk_with(files.clone());
            disk.flip(name, at, 0x20);
            let case = format!("byte {at} of {name}");
            let store = match open_steps(&disk, SEGMENT) {
                Ok(store) => store,
                Err(StoreError::Damaged { file, .. }) => {
                    assert_eq!(file, **name, "{case}");
                    continue;
                }
                Err(other) => panic!("{case}: {other}"),
            };
            assert_eq!(store.vote().as_deref(), Some(&b"a vote"[..]), "{case}");
            let damage = scrubbed(&store);
            match store.entries(0..u64::MAX, usize::MAX) {
                Ok(found) => {
                    // The end may be cut where nothing says that it was safe.
                    assert!(entries().starts_with(&found), "{case}");
                    assert!(found.len() >= if *name == active { 25 } else { 31 }, "{case}: {}", found.len());
                    // A note in a segment that was passed by is read by nobody else.
                    assert!(damage.is_empty() || damage == [name.as_str()], "{case}: {damage:?}");
                }
                Err(StoreError::Damaged { file, .. }) => {
                    assert_eq!((&file, damage.len()), (*name, 1), "{case}");
                    // What the images do not hold the outcome of was read at the start.
                    let from = store.image().unwrap().last.index + 1;
                    let rest = store.entries(from..u64::MAX, usize::MAX).unwrap();
                    assert_eq!(rest, entries()[from as usize..], "{case}");
                }
                Err(other) => panic!("{case}: {other}"),
            }
        }
    }
}

#[test]
fn no_byte_of_an_image_changes_unseen() {
    let files = written();
    let images: Vec<&String> = files.keys().filter(|name| name.ends_with(".img")).collect();
    assert_eq!(images.len(), 2);
    for name in &images {
        for at in 0..files[*name].len() {
            let disk = disk_with(files.clone());
            disk.flip(name, at, 0x20);
            let store =
                open_steps(&disk, SEGMENT).unwrap_or_else(|error| panic!("byte {at} of {name}: {error}"));
            let found = store.read_image().unwrap();
            let damaged = scrubbed(&store);
            match found {
                Some((meta, image)) => {
                    let which = if meta.last.index == 20 { "new" } else { "old" };
                    assert_eq!(image.chunks, chunks(which), "byte {at} of {name}");
                    assert_eq!(meta.members, Bytes::from_static(b"members"));
                    assert!(which == "new" || name.ends_with("2.img"), "byte {at} of {name}");
                    assert!(damaged.iter().all(|file| file == *name));
                }
                // A chunk that both share.
                None => assert_eq!(store.first(), 0, "byte {at} of {name}"),
            }
        }
    }
}

#[test]
fn an_image_that_was_shortened_is_not_used() {
    let files = written();
    let name = "00000000000000000002.img";
    for len in 0..files[name].len() {
        let mut files = files.clone();
        files.get_mut(name).unwrap().truncate(len);
        let store = open_steps(&disk_with(files), SEGMENT).unwrap();
        assert_eq!(store.read_image().unwrap().unwrap().1.chunks, chunks("old"), "cut to {len}");
    }
}

#[test]
fn a_log_without_its_beginning_needs_a_whole_image() {
    let mut files = written();
    files.remove("00000000000000000001.seg").unwrap();
    open_steps(&disk_with(files.clone()), SEGMENT).unwrap();
    files.remove("00000000000000000001.img").unwrap();
    let disk = disk_with(files.clone());
    // The chunk that only the newest image has.
    disk.flip("00000000000000000002.img", files["00000000000000000002.img"].len() - 1, 1);
    let refused = open_steps(&disk, SEGMENT).and_then(|store| store.read_image().map(|_| ())).unwrap_err();
    assert!(refused.to_string().starts_with("the log is damaged in "), "{refused}");
}

#[test]
fn a_log_that_ends_before_its_image_lost_something() {
    let mut files = written();
    let names: Vec<String> = files.keys().filter(|name| name.ends_with(".seg")).cloned().collect();
    // Those with entry 20 and what comes after it.
    names[10..].iter().for_each(|name| drop(files.remove(name)));
    let refused = open_steps(&disk_with(files.clone()), SEGMENT).map(|_| ()).unwrap_err();
    let why = refused.to_string();
    assert!(why.contains("image 00000000000000000002.img beside it holds the outcome of entry 20"), "{why}");
    let disk = disk_with(files);
    let told = repair(&disk, true).unwrap();
    assert_eq!((told.keeps, told.horizon), (Index(19), Index(20)));
    let store = open_steps(&disk, SEGMENT).unwrap();
    assert_eq!(
        (store.first(), store.last(), store.vote().as_deref()),
        (21, Some(id(20)), Some(&b"a vote"[..]))
    );
}

#[test]
fn nothing_to_repair_is_refused() {
    let disk = disk_with(written());
    for accept_loss in [false, true] {
        assert!(matches!(repair(&disk, accept_loss), Err(StoreError::Undamaged)));
    }
    assert!(matches!(repair(&Disk::new(1), true), Err(StoreError::Undamaged)));
    assert_eq!(disk.files(), written());
}

#[test]
fn a_repair_tells_its_price_and_keeps_what_it_can() {
    let files = written();
    for name in files.keys().filter(|name| name.ends_with(".seg") || name.ends_with(".img")) {
        for at in (0..files[name].len()).step_by(5) {
            let disk = disk_with(files.clone());
            disk.flip(name, at, 0x20);
            let flipped = disk.files();
            let Some(told) = damage(&disk) else { continue };
            let case = format!("byte {at} of {name}: {told:?}");
            assert_eq!(told.damage[0].file, *name, "{case}");
            assert_eq!((disk.files(), told.aside.len()), (flipped.clone(), 0), "{case}: nothing is changed");
            let done = repair(&disk, true).unwrap();
            assert_eq!(Repair { aside: vec![], ..done.clone() }, told, "{case}");
            let copy = disk.files()[&format!("{name}.damaged-1")].clone();
            assert_eq!(copy, flipped[name], "{case}");
            let all_lost = told.keeps.next()..=Index(LAST - 1);
            assert_eq!(told.lost, (!all_lost.is_empty()).then_some(all_lost), "{case}");
            check_repaired(&case, &disk, &told);
            assert!(matches!(repair(&disk, true), Err(StoreError::Undamaged)), "{case}");
        }
    }
}

fn check_repaired(case: &str, disk: &Disk, told: &Repair) {
    let store = open_steps(disk, SEGMENT).unwrap_or_else(|error| panic!("{case}: {error}"));
    let (first, last) = (store.first(), store.last().unwrap().index);
    assert_eq!(all(&store), entries()[first as usize..=last as usize], "{case}");
    assert_eq!(store.horizon(), told.horizon, "{case}");
    assert_eq!(store.batch_at(last), told.keeps, "{case}");
    assert!(first == 0 || store.read_image().unwrap().is_some_and(|(meta, _)| meta.last.index + 1 >= first));
    assert!(scrubbed(&store).is_empty(), "{case}");
    add(&store, &[blank(last + 1, 9)]);
    drop(store);
    assert_eq!(open_steps(disk, SEGMENT).unwrap().last(), Some(LogId { index: last + 1, term: 9 }), "{case}");
}

#[test]
fn a_repair_that_was_cut_off_can_be_done_again() {
    let files = written();
    // In a segment that an image covers, in one that holds the newest image's last entry, behind it, in an image, and
    // several at once.
    let cases = [vec![1], vec![11], vec![13], vec![1, 3, 13], vec![0]];
    for numbers in cases {
        let broken = || {
            let disk = disk_with(files.clone());
            for number in &numbers {
                match number {
                    0 => disk.flip("00000000000000000002.img", 80, 1),
                    number => disk.flip(&format!("{number:020}.seg"), 400, 1),
                }
            }
            disk
        };
        let whole = broken();
        let told = repair(&whole, true).unwrap();
        for at in 0..whole.operations() {
            let disk = broken();
            disk.cut_power_at(at);
            repair(&disk, true).unwrap_err();
            for disk in [disk.crash_by_chance(), disk.kill()] {
                let case = format!("{numbers:?}, cut at {at}");
                match repair(&disk, true) {
                    Ok(_) | Err(StoreError::Undamaged) => {}
                    Err(other) => panic!("{case}: {other}"),
                }
                let store = open_steps(&disk, SEGMENT).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(
                    (store.horizon(), store.batch_at(u64::MAX - 1)),
                    (told.horizon, told.keeps),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn a_missing_or_shortened_segment_is_repaired_too() {
    let files = written();
    for number in [1, 2, 10, 11, 13, 16] {
        for len in [None, Some(0), Some(500), Some(1000)] {
            let mut files = files.clone();
            let name = format!("{number:020}.seg");
            match len {
                None => drop(files.remove(&name)),
                Some(len) => files.get_mut(&name).unwrap().truncate(len),
            }
            let disk = disk_with(files);
            let case = format!("{name} cut to {len:?}");
            let Some(told) = damage(&disk) else {
                // An image stands for the beginning, and nothing shows that a last one is gone without a trace.
                assert!([1, 16].contains(&number) && len.is_none(), "{case}");
                continue;
            };
            repair(&disk, true).unwrap();
            check_repaired(&case, &disk, &told);
        }
    }
}

#[test]
fn a_scrub_reads_everything_and_begins_anew() {
    let disk = disk_with(written());
    let store = open_steps(&disk, SEGMENT).unwrap();
    let names = || -> Vec<String> { std::iter::from_fn(|| store.scrub().unwrap()).collect() };
    let first = names();
    let sealed = disk.files().keys().filter(|name| name.ends_with(".seg")).count() - 1;
    assert_eq!(first.len(), sealed + 2, "{first:?}");
    assert_eq!(names(), first);
    disk.flip("00000000000000000003.seg", 300, 1);
    assert_eq!(scrubbed(&store), ["00000000000000000003.seg"]);
    assert_eq!(disk.count(Operation::Write), 0);
}

/// What a repair would say.
fn damage(disk: &Disk) -> Option<Repair> {
    match repair(disk, false) {
        Ok(told) => Some(told),
        Err(StoreError::Undamaged) => {
            open_steps(disk, SEGMENT).expect("what needs no repair opens");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// The files that a scrub finds damaged.
fn scrubbed(store: &Store) -> Vec<String> {
    let mut damaged = Vec::new();
    loop {
        match store.scrub() {
            Ok(Some(_)) => {}
            Ok(None) => return damaged,
            Err(StoreError::Damaged { file, .. }) => damaged.push(file),
            Err(other) => panic!("{other}"),
        }
    }
}

fn entries() -> Vec<Entry> {
    let head = [membership(0), blank(1, 1)];
    head.into_iter().chain((2..=LAST).map(|at| batch_entry(at, 1, at - 1))).collect()
}

fn id(index: u64) -> LogId {
    LogId { index, term: 1 }
}

fn meta(last: u64) -> ImageMeta {
    let members = Bytes::from_static(b"members");
    ImageMeta { last: id(last), index: Index(last - 1), members, chain: None }
}

/// Two chunks, of which the images share one.
fn chunks(text: &str) -> Vec<Chunk> {
    [text, "shared by both"].map(|text| Chunk::new(text.repeat(10).into())).to_vec()
}
