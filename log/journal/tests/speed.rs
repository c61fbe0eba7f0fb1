//! What a start and an image cost on a real disk. Run with `--release -- --ignored --nocapture --test-threads 1`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::*;
use base::{Index, Time};
use bytes::Bytes;
use journal::store::{Directory, Entry, ImageMeta, LogId, Payload, SEGMENT_BYTES, Store};
use model::Chunk;

const BATCHES: u64 = 600_000;

#[test]
#[ignore = "measures"]
fn a_start_with_and_without_an_image() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = open(dir.path());
        append(&store, &[membership(0), blank(1, 1)]);
        for from in (1..=BATCHES).step_by(2000) {
            let entry = |nth| Entry { index: nth + 1, term: 1, payload: Payload::Batch(encoded(nth, 800)) };
            append(&store, &(from..from + 2000).map(entry).collect::<Vec<Entry>>());
        }
    }
    let started = Instant::now();
    let store = open(dir.path());
    println!("{BATCHES} batches of about 1 KB, no image: opened in {:?}", started.elapsed());
    store.keep(meta(BATCHES), vec![], Time(0)).unwrap();
    drop(store);
    let started = Instant::now();
    let store = open(dir.path());
    println!("an image of the last one: opened in {:?}", started.elapsed());
    let started = Instant::now();
    store.entries(5..6, usize::MAX).unwrap();
    println!("the first entry of a segment that was passed by: {:?}", started.elapsed());
}

#[test]
#[ignore = "measures"]
fn an_image_of_256_mib_beside_appends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    append(&store, &[membership(0), blank(1, 1)]);
    let chunk = |nth: u64| Chunk::new(Bytes::from(nth.to_le_bytes().repeat(32 << 10 >> 3)));
    let chunks: Vec<Chunk> = (0..8192).map(chunk).collect();
    append(&store, &[batch_entry(2, 1, 1)]);
    let keeping = AtomicBool::new(true);
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let appends = scope.spawn(|| {
            let mut waits = Vec::new();
            while keeping.load(Ordering::Relaxed) {
                let (nth, started) = (waits.len() as u64 + 2, Instant::now());
                append(&store, &[batch_entry(nth + 1, 1, nth)]);
                waits.push(started.elapsed());
            }
            waits
        });
        let started = Instant::now();
        store.keep(meta(1), chunks.clone(), Time(0)).unwrap();
        println!("kept in {:?}", started.elapsed());
        keeping.store(false, Ordering::Relaxed);
        appends.join().unwrap()
    });
    waits.sort_unstable();
    let at = |part: usize| waits[(waits.len() - 1) * part / 100];
    println!("{} appends meanwhile: p50 {:?}, p99 {:?}, slowest {:?}", waits.len(), at(50), at(99), at(100));
    append(&store, &[blank(waits.len() as u64 + 3, 1)]);
    let started = Instant::now();
    store
        .keep(meta(2), chunks.into_iter().map(|chunk| Chunk { bytes: None, ..chunk }).collect(), Time(0))
        .unwrap();
    println!("kept again without a change in {:?}", started.elapsed());
    let started = Instant::now();
    store.read_image().unwrap();
    println!("read in {:?}", started.elapsed());
}

fn open(dir: &Path) -> Store {
    Store::open(Arc::new(Directory::open(dir).unwrap()), threads(SEGMENT_BYTES), no_fatal()).unwrap()
}

/// Of a log of a membership, a blank and batches.
fn meta(batch: u64) -> ImageMeta {
    let last = LogId { index: batch + 1, term: 1 };
    ImageMeta { last, index: Index(batch), members: Bytes::new(), chain: None }
}
