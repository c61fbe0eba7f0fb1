//! Images are kept, read back whole, sent and installed; what they stand for may go.

use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::KeepError;
use journal::store::simulated::Operation;
use journal::store::{
    Directory, Entry, IMAGE_FILES_MAX, ImageMeta, LogId, Retention, Settings, Store, StoreError,
};
use model::{Chunk, ChunkId, Image};

const SMALL: u64 = 2048;
const NOW: Time = Time(1_700_000_100_000_000_000);

#[test]
fn an_image_is_there_after_a_restart() {
    let disk = Disk::new(1);
    let chunks = chunks_of(&["nodes", "jobs", "nodes", ""]);
    {
        let store = log_of(&disk, 20);
        assert_eq!((store.image(), store.read_image().unwrap()), (None, None));
        store.keep(meta(10), chunks.clone(), NOW).unwrap();
    }
    let store = open_steps(&disk, SMALL).unwrap();
    let (kept, image) = store.read_image().unwrap().unwrap();
    assert_eq!((kept.last, kept.index, &kept.members[..]), (id(10), Index(9), &b"members"[..]));
    assert_eq!(image, Image { index: Index(9), chunks: chunks.clone() });
    assert_eq!(store.image(), Some(kept.clone()));
    assert_eq!(store.chunk_ids(), Some((kept, chunks.iter().map(|chunk| chunk.id).collect())));
    assert_eq!(store.chunk(chunks[1].id).unwrap(), chunks[1].bytes);
    assert_eq!(store.chunk(ChunkId([9; 16])).unwrap(), None);
    assert_eq!(store.committed(), Some(id(10)), "an image holds what is committed");
}

#[test]
fn an_image_is_refused_that_does_not_fit_the_log() {
    let disk = Disk::new(1);
    let store = log_of(&disk, 20);
    let refused = |meta: ImageMeta, chunks: Vec<Chunk>| store.keep(meta, chunks, NOW).unwrap_err();
    let other_term = ImageMeta { last: LogId { index: 10, term: 7 }, ..meta(10) };
    assert_eq!(refused(other_term, vec![]), KeepError::NotCommitted(Index(9)));
    assert_eq!(refused(meta(30), vec![]), KeepError::NotCommitted(Index(29)));
    let refusal = refused(ImageMeta { index: Index(3), ..meta(10) }, vec![]).to_string();
    assert_eq!(refusal, "the image is not kept: entry 10 stands after batch 9, not 3");
    let unknown = Chunk { bytes: None, ..Chunk::new(Bytes::from_static(b"x")) };
    assert_eq!(refused(meta(10), vec![unknown.clone()]), KeepError::UnknownChunk(unknown.id));
    let false_id = Chunk { id: ChunkId([1; 16]), ..Chunk::new(Bytes::from_static(b"x")) };
    assert!(matches!(refused(meta(10), vec![false_id]), KeepError::Failed(_)));
    store.keep(meta(10), vec![], NOW).unwrap();
    assert_eq!(refused(meta(10), vec![]), KeepError::NotNewer { index: Index(9), kept: Index(9) });
}

#[test]
fn an_image_waits_until_its_last_entry_is_safe() {
    let disk = Disk::new(1);
    let store = log_of(&disk, 5);
    store.append(vec![batch_entry(6, 1, 5)], done().0).unwrap();
    let early = store.keep(meta(6), vec![], NOW).unwrap_err().to_string();
    assert_eq!(early, "the image is not kept: entry 6 is not yet safe on this server: try again");
    run(&store);
    store.keep(meta(6), vec![], NOW).unwrap();
}

#[test]
fn chunks_that_are_there_are_not_written_again() {
    let disk = Disk::new(1);
    let large = |letter: &str| letter.repeat(10_000);
    let store = log_of(&disk, 20);
    let first = chunks_of(&[&large("a"), &large("b"), &large("c")]);
    store.keep(meta(10), first.clone(), NOW).unwrap();
    let without = |chunk: &Chunk| Chunk { bytes: None, ..chunk.clone() };
    let second = vec![without(&first[0]), chunks_of(&[&large("d")])[0].clone(), first[2].clone()];
    store.keep(meta(12), second.clone(), NOW).unwrap();
    assert!(disk.files()["00000000000000000002.img"].len() < 11_000);
    let store = open_steps(&disk, SMALL).unwrap();
    let expected = chunks_of(&[&large("a"), &large("d"), &large("c")]);
    assert_eq!(store.read_image().unwrap().unwrap().1.chunks, expected);
}

#[test]
fn images_lie_in_few_files_that_are_mostly_used() {
    let disk = Disk::new(1);
    let store = log_of(&disk, 60);
    // One of twenty chunks changes each time.
    let mut parts: Vec<String> = (0..20).map(|part| format!("part {part} {}", "x".repeat(500))).collect();
    for round in 0..50 {
        parts[round % 20] = format!("round {round} {}", "y".repeat(500));
        let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
        store.keep(meta(5 + round as u64), chunks_of(&texts), NOW).unwrap();
        assert_eq!(store.read_image().unwrap().unwrap().1.chunks, chunks_of(&texts));
        let images: Vec<(String, usize)> = disk
            .files()
            .into_iter()
            .filter(|(name, _)| name.ends_with(".img"))
            .map(|(n, b)| (n, b.len()))
            .collect();
        assert!(images.len() <= IMAGE_FILES_MAX + 1, "{images:?}");
        let bytes: usize = images.iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes < 4 * 20 * 600, "{images:?}");
    }
}

#[test]
fn a_file_that_is_mostly_unused_goes() {
    // Of the first file's ten chunks so many stay in use.
    for (used, stays) in [(6, true), (4, false)] {
        let disk = Disk::new(1);
        let store = log_of(&disk, 20);
        let texts = |from: usize, change: &str| -> Vec<String> {
            (0..10)
                .map(|at| if at < from { at.to_string() } else { format!("{at} {change}") }.repeat(900))
                .collect()
        };
        for (last, texts) in [(10, texts(10, "")), (11, texts(used, "a")), (12, texts(used, "a"))] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            store.keep(meta(last), chunks_of(&texts), NOW).unwrap();
        }
        assert_eq!(disk.files().contains_key("00000000000000000001.img"), stays, "{used} of 10");
    }
}

#[test]
fn a_damaged_image_gives_way_to_the_one_before_it() {
    let disk = Disk::new(1);
    {
        let store = log_of(&disk, 20);
        store.keep(meta(10), chunks_of(&["ten"]), NOW).unwrap();
        store.keep(meta(15), chunks_of(&["fifteen"]), NOW).unwrap();
    }
    // Where the chunk is, and where the table is.
    for at in [disk.files()["00000000000000000002.img"].len() - 1, 70] {
        let disk = disk_with(disk.files());
        disk.flip("00000000000000000002.img", at, 1);
        let store = open_steps(&disk, SMALL).unwrap();
        assert_eq!(store.read_image().unwrap().unwrap().1.chunks, chunks_of(&["ten"]));
        assert_eq!(store.image().unwrap().last, id(10), "from now on it is the newest");
        store.keep(meta(16), chunks_of(&["sixteen"]), NOW).unwrap();
        assert_eq!(open_steps(&disk, SMALL).unwrap().image().unwrap().last, id(16));
    }
    disk.flip("00000000000000000002.img", 70, 1);
    disk.flip("00000000000000000001.img", 70, 1);
    let store = open_steps(&disk, SMALL).unwrap();
    assert_eq!(store.read_image().unwrap(), None, "the log is there from its first entry");
    assert_eq!(store.first(), 0);
}

#[test]
fn an_installed_image_takes_the_place_of_the_log() {
    let (chain, chunks) = (chain_at(12), chunks_of(&["state"]));
    let disk = Disk::new(1);
    {
        let store = log_of(&disk, 5);
        store.append(vec![blank(6, 2)], done().0).unwrap();
        store.save_vote(Bytes::from_static(b"vote"), done().0).unwrap();
        let (tell, told) = done();
        store.install(ImageMeta { chain, ..meta(12) }, chunks.clone(), tell).unwrap();
        assert!(told.try_recv().is_err());
        run(&store);
        told.try_recv().unwrap();
        check_installed(&store);
        assert!(matches!(store.purge(id(13), done().0), Err(StoreError::OutOfOrder(_))));
        store.purge(id(12), done().0).unwrap();
        add(&store, &[batch_entry(13, 1, 12), blank(14, 3)]);
        let segments = disk.files().into_keys().filter(|name| name.ends_with(".seg")).count();
        assert_eq!(segments, 1, "what was void is gone");
    }
    let store = open_steps(&disk, SMALL).unwrap();
    assert_eq!(all(&store), [batch_entry(13, 1, 12), blank(14, 3)]);
    assert_eq!(
        (store.first(), store.horizon(), store.vote().as_deref()),
        (13, Index(12), Some(&b"vote"[..]))
    );
    assert_eq!(store.read_image().unwrap().unwrap().1.chunks, chunks);
    let removed = store.entries(12..14, usize::MAX).unwrap_err().to_string();
    assert_eq!(removed, "entry 12 is not in the log: it begins with entry 13");
    let compacted = store.batches(Index(11), Index(13), usize::MAX).unwrap_err().to_string();
    assert_eq!(compacted, "batch 11 is no longer kept: the oldest is 12");
    assert_eq!(store.batches(Index(12), Index(13), usize::MAX).unwrap().len(), 1);
    assert_eq!(store.batch_at(14), Index(12));
}

fn check_installed(store: &Store) {
    assert_eq!((store.first(), store.last(), store.horizon()), (13, Some(id(12)), Index(12)));
    assert_eq!((store.committed(), store.purged()), (Some(id(12)), Some(id(12))));
    assert_eq!(all(store), []);
}

#[test]
fn a_log_that_has_the_last_entry_of_an_image_stays() {
    let disk = Disk::new(1);
    let store = log_of(&disk, 20);
    let (tell, told) = done();
    store.install(ImageMeta { chain: chain_at(12), ..meta(12) }, chunks_of(&["state"]), tell).unwrap();
    told.try_recv().expect("it is safe at once");
    assert_eq!((store.first(), all(&store).len()), (0, 21));
    assert_eq!(open_steps(&disk, SMALL).unwrap().image().unwrap().last, id(12));
    // The same index and term, and yet another log: that is not to be mended by an image.
    let other = ImageMeta { chain: Some(Default::default()), ..meta(15) };
    assert!(matches!(store.install(other, vec![], done().0), Err(KeepError::Failed(_))));
}

#[test]
fn equal_logs_have_equal_chains_however_they_came() {
    let whole = log_of(&Disk::new(1), 20);
    whole.keep(meta(20), vec![], NOW).unwrap();
    let late = open_steps(&Disk::new(1), SMALL).unwrap();
    late.install(ImageMeta { chain: chain_at(12), ..meta(12) }, vec![], done().0).unwrap();
    run(&late);
    add(&late, &entries()[13..=20]);
    late.keep(meta(20), vec![], NOW).unwrap();
    assert_eq!(late.image(), whole.image());
}

#[test]
fn old_segments_go_when_two_images_stand_for_them() {
    let disk = Disk::new(1);
    let settings = Settings { retention: Retention { bytes: 3 * SMALL, age: None }, ..steps(SMALL) };
    let open = |disk: &Disk| Store::open(Arc::new(disk.clone()), settings.clone(), no_fatal()).unwrap();
    let store = open(&disk);
    fill(&store, 60);
    let segments = || disk.files().into_keys().filter(|name| name.ends_with(".seg")).count();
    let before = segments();
    store.purge(id(50), done().0).unwrap();
    run(&store);
    store.keep(meta(30), vec![], NOW).unwrap();
    assert_eq!((segments(), store.first()), (before, 0), "one image is not enough");
    store.keep(meta(40), vec![], NOW).unwrap();
    let first = store.first();
    assert!(first > 0 && first <= 31, "{first}: not beyond the older image");
    store.keep(meta(59), vec![], NOW).unwrap();
    store.keep(meta(60), vec![], NOW).unwrap();
    let first = store.first();
    assert!(first > 31 && first <= 51, "{first}: not beyond what is purged");
    let store = open(&disk);
    assert_eq!((store.first(), store.last()), (first, Some(id(60))));
    assert_eq!(all(&store), entries()[first as usize..61]);
    assert_eq!(store.horizon(), Index(first - 1));
    add(&store, &[blank(61, 9)]);
    assert_eq!(open(&disk).last(), Some(LogId { index: 61, term: 9 }));
}

#[test]
fn segments_go_by_age_as_well() {
    let disk = Disk::new(1);
    let age = Some(Duration::from_secs(60));
    let settings = Settings { retention: Retention { bytes: u64::MAX, age }, ..steps(SMALL) };
    let store = Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap();
    fill(&store, 60);
    store.purge(id(60), done().0).unwrap();
    run(&store);
    let soon = Time(1_700_000_000_000_000_000 + 59_000_000_000);
    (50..=55).for_each(|last| store.keep(meta(last), vec![], soon).unwrap());
    assert_eq!(store.first(), 0);
    store.keep(meta(60), vec![], NOW).unwrap();
    assert!(store.first() > 40);
}

#[test]
fn a_missing_beginning_without_an_image_is_refused() {
    let disk = Disk::new(1);
    {
        let settings = Settings { retention: Retention { bytes: 0, age: None }, ..steps(SMALL) };
        let store = Store::open(Arc::new(disk.clone()), settings, no_fatal()).unwrap();
        fill(&store, 60);
        store.purge(id(60), done().0).unwrap();
        run(&store);
        store.keep(meta(50), vec![], NOW).unwrap();
        store.keep(meta(55), vec![], NOW).unwrap();
        assert!(store.first() > 0);
    }
    let mut files = disk.files();
    files.retain(|name, _| !name.ends_with(".img"));
    let refused = open_steps(&disk_with(files), SMALL).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("and no image beside it holds the outcome of what came before"), "{refused}");
}

#[test]
fn a_start_does_not_read_what_an_image_stands_for() {
    let disk = Disk::new(1);
    {
        let store = log_of(&disk, 60);
        store.keep(meta(50), vec![], NOW).unwrap();
    }
    // A byte of an entry in the first segment.
    disk.flip("00000000000000000001.seg", 500, 1);
    let store = open_steps(&disk, SMALL).unwrap();
    assert_eq!(store.entries(45..61, usize::MAX).unwrap(), entries()[45..61]);
    assert_eq!(store.batch_at(3), Index(2));
    let damaged = store.entries(2..3, usize::MAX).unwrap_err();
    assert!(matches!(&damaged, StoreError::Damaged { file, .. } if file == "00000000000000000001.seg"));
    // What lies in other segments is read all the same.
    assert_eq!(store.entries(20..61, usize::MAX).unwrap(), entries()[20..61]);
}

#[test]
fn a_failed_sync_of_an_image_is_fatal() {
    let disk = Disk::new(1);
    let died = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, settings) = (died.clone(), steps(SMALL));
    let fatal = Arc::new(move |why: &str| seen.lock().unwrap().push(why.to_string()));
    let store = Store::open(Arc::new(disk.clone()), settings, fatal).unwrap();
    fill(&store, 20);
    disk.fail(Operation::Sync, 0);
    assert!(matches!(store.keep(meta(10), vec![], NOW), Err(KeepError::Failed(_))));
    assert_eq!(*died.lock().unwrap(), ["sync an image: planted"]);
    assert_eq!(store.image(), None);
    assert!(matches!(store.append(vec![blank(21, 1)], done().0), Err(StoreError::Stopped)));
}

#[test]
fn an_image_that_finds_no_space_leaves_the_old_one_and_the_log() {
    let disk = Disk::new(1);
    let store = log_of(&disk, 20);
    store.keep(meta(10), chunks_of(&["ten"]), NOW).unwrap();
    disk.set_capacity(Some(disk.used() + 1000));
    let large = chunks_of(&["x".repeat(2000).as_str()]);
    assert_eq!(store.keep(meta(15), large.clone(), NOW), Err(KeepError::DiskFull));
    assert_eq!(store.image().unwrap().last, id(10));
    assert!(!disk.files().contains_key("image.tmp"));
    add(&store, &[blank(21, 1)]);
    disk.set_capacity(None);
    store.keep(meta(15), large, NOW).unwrap();
    assert_eq!(open_steps(&disk, SMALL).unwrap().image().unwrap().last, id(15));
}

#[test]
fn a_real_directory_keeps_images() {
    let dir = tempfile::tempdir().unwrap();
    let open =
        || Store::open(Arc::new(Directory::open(dir.path()).unwrap()), threads(SMALL), no_fatal()).unwrap();
    let chunks = chunks_of(&["nodes", "jobs"]);
    {
        let store = open();
        append(&store, &entries()[..20]);
        store.keep(meta(10), chunks.clone(), NOW).unwrap();
        store.keep(meta(12), chunks.clone(), NOW).unwrap();
    }
    assert_eq!(open().read_image().unwrap().unwrap().1.chunks, chunks);
}

/// A membership, a blank, and batches: entry `n` holds batch `n - 1`.
fn entries() -> Vec<Entry> {
    let head = [membership(0), blank(1, 1)];
    head.into_iter().chain((2..=60).map(|at| batch_entry(at, 1, at - 1))).collect()
}

/// A log of entries 0 to `last`.
fn log_of(disk: &Disk, last: usize) -> Store {
    let store = open_steps(disk, SMALL).unwrap();
    fill(&store, last);
    store
}

fn fill(store: &Store, last: usize) {
    entries()[..=last].chunks(3).for_each(|group| add(store, group));
}

fn chain_at(last: u64) -> Option<journal::store::Chain> {
    let store = log_of(&Disk::new(1), last as usize);
    store.keep(meta(last), vec![], NOW).unwrap();
    store.image().unwrap().chain
}

fn chunks_of(texts: &[&str]) -> Vec<Chunk> {
    texts.iter().map(|text| Chunk::new(Bytes::copy_from_slice(text.as_bytes()))).collect()
}

fn id(index: u64) -> LogId {
    LogId { index, term: 1 }
}

/// Of the log that [`entries`] makes.
fn meta(last: u64) -> ImageMeta {
    let (index, members) = (Index(last - 1), Bytes::from_static(b"members"));
    ImageMeta { last: id(last), index, members, chain: None }
}
