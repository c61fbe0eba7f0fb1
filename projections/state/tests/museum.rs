//! What earlier releases wrote still means what it meant. Each exhibit in `tests/museum` is the folder of a log as a
//! server leaves it, with two images in it, and the digest of the state it leads to.
//!
//! Exhibits are never changed. When a test fails on the newest, a frozen layout moved: bring the old one back, or make a
//! new version beside it and add an exhibit that has it:
//!
//! ```sh
//! NEW_EXHIBIT=1 cargo test -p state --test all museum
//! ```
//!
//! That writes the next number and touches none that is there. Before the first release there is nobody to keep a
//! promise to: then an exhibit may be removed and written anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::history::{History, missing};
use bytes::Bytes;
use journal::store::simulated::Disk;
use journal::store::{Driving, Entry, ImageMeta, LogId, Payload, RETENTION, Settings, Store};
use model::Batch;
use state::State;
use state::image::{Imager, restore};

/// Small, so that a log of a few batches has several.
const SEGMENT_BYTES: u64 = 16 << 10;
const BATCHES: usize = 240;
/// Histories of which the smallest one becomes an exhibit.
const CANDIDATES: usize = 3;
/// After which batches an image is kept.
const IMAGES_AFTER: [u64; 2] = [91, 92];
const VOTE: &[u8] = b"a vote";
const MEMBERS: &[u8] = b"members";
/// Beside the files of the log.
const DIGEST: &str = "digest.txt";

const MOVED: &str = "a frozen layout moved; tests/museum.rs says what to do";

type Files = BTreeMap<String, Vec<u8>>;

/// I9.
#[test]
fn every_exhibit_leads_to_its_digest() {
    if std::env::var_os("NEW_EXHIBIT").is_some() {
        add();
    }
    assert!(!exhibits().is_empty(), "the exhibits are where they belong");
    for (number, mut files) in exhibits() {
        let told = String::from_utf8(files.remove(DIGEST).unwrap()).unwrap();
        let disk = Disk::with(files, 1);
        let store = open(&disk);
        assert_eq!(store.vote().as_deref(), Some(VOTE), "{number}: {MOVED}");
        let log = batches(&store);
        let folded = fold(State::default(), &log);
        assert_eq!(describe(&folded), told, "folded from {number}: {MOVED}");
        assert_eq!(folded.digest(), folded.recomputed_digest());
        let (meta, image) = store.read_image().unwrap().expect("an exhibit has images");
        assert_eq!((meta.index.0, &meta.members[..]), (IMAGES_AFTER[1], MEMBERS));
        let restored = fold(restore(&image).unwrap(), &log[IMAGES_AFTER[1] as usize..]);
        assert!(restored == folded, "restored from {number}: {MOVED}");
    }
}

/// An older exhibit may be written in another way today; the newest is how it is written now.
#[test]
fn the_newest_exhibit_is_written_the_same_today() {
    let (number, mut files) = exhibits().pop_last().unwrap();
    files.remove(DIGEST).unwrap();
    let log = batches(&open(&Disk::with(files.clone(), 1)));
    assert_eq!(missing(&log), [""; 0], "a kind of event is in no exhibit: add one, see above");
    let today = written(&log);
    assert!(files.keys().eq(today.keys()), "{number} is {:?} today: {MOVED}", today.keys());
    for (name, bytes) in &files {
        assert!(*bytes == today[name], "{name} of {number} is written in another way: {MOVED}");
    }
}

/// A short history that has everything.
fn add() {
    let wide = |history: &History| missing(&history.log).is_empty();
    // The second image is smaller only if it refers to chunks of the first.
    let image = |files: &Files, nth: u64| files[&format!("{nth:020}.img")].len();
    let shares = |files: &Files| image(files, 2) < image(files, 1);
    let fitting = (0..).map(|seed| History::of(seed, BATCHES)).filter(wide);
    let fitting = fitting.map(|it| (written(&it.log), it)).filter(|it| shares(&it.0));
    // Every test of the museum reads all of it.
    let size = |it: &(Files, History)| it.0.values().map(Vec::len).sum::<usize>();
    let (files, history) = fitting.take(CANDIDATES).min_by_key(size).unwrap();
    let folder = museum().join(format!("{:03}", exhibits().len() + 1));
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    fs::write(folder.join(DIGEST), describe(&history.state)).unwrap();
}

/// The files of a log that was written the usual way: the members first, then what happened, with images on the way.
fn written(log: &[Batch]) -> Files {
    let disk = Disk::new(1);
    let store = open(&disk);
    let (mut state, mut imager) = (State::default(), Imager::default());
    append(&store, 0, Payload::Membership(Bytes::from_static(MEMBERS)));
    store.save_vote(Bytes::from_static(VOTE), Box::new(|| {})).unwrap();
    for batch in log {
        append(&store, batch.index.0, Payload::Batch(journal::encode(batch)));
        state.apply(batch).unwrap();
        if IMAGES_AFTER.contains(&batch.index.0) {
            let last = LogId { index: batch.index.0, term: 1 };
            store.save_committed(last).unwrap();
            let members = Bytes::from_static(MEMBERS);
            let meta = ImageMeta { last, index: batch.index, members, chain: None };
            store.keep(meta, imager.image(&state).chunks, batch.time).unwrap();
        }
    }
    while store.step() {}
    let (files, ours) = (disk.files(), |name: &String| name.ends_with(".seg") || name.ends_with(".img"));
    files.into_iter().filter(|(name, _)| ours(name)).collect()
}

fn append(store: &Store, index: u64, payload: Payload) {
    store.append(vec![Entry { index, term: 1, payload }], Box::new(|| {})).unwrap();
    while store.step() {}
}

fn open(disk: &Disk) -> Store {
    let driving = Driving::Steps { on_work: Arc::new(|| {}) };
    let settings =
        Settings { segment_bytes: SEGMENT_BYTES, retention: RETENTION, archive: None, keep: None, driving };
    Store::open(Arc::new(disk.clone()), settings, Arc::new(|why| panic!("{why}"))).expect(MOVED)
}

fn batches(store: &Store) -> Vec<Batch> {
    let entries = store.entries(0..u64::MAX, usize::MAX).expect(MOVED);
    let batch = |entry: Entry| match entry.payload {
        Payload::Batch(batch) => Some(batch.decode().expect(MOVED)),
        Payload::Blank | Payload::Membership(_) => None,
    };
    entries.into_iter().filter_map(batch).collect()
}

fn fold(mut state: State, log: &[Batch]) -> State {
    for batch in log {
        state.apply(batch).unwrap();
    }
    state
}

fn describe(state: &State) -> String {
    let mut text = format!("index {}\n", state.index);
    for (table, number) in state.digest().tables() {
        writeln!(text, "{table} {number:016x}").unwrap();
    }
    text
}

fn museum() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum")
}

/// The files of each by its number, the oldest first.
fn exhibits() -> BTreeMap<String, Files> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()));
        entries.map(|paths| paths.collect::<Vec<_>>()).unwrap_or_default().into_iter()
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    let read = |folder: &Path| names(folder).map(|path| (name(&path), fs::read(&path).unwrap())).collect();
    names(&museum()).map(|folder| (name(&folder), read(&folder))).collect()
}
