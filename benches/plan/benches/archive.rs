//! `cargo bench -p plan-bench --bench archive`: how small a segment of the log becomes, and in what time.
//!
//! A log of 8,000 jobs of ten allocations on 1,000 nodes: each job is registered, placed, reported running and dead by its
//! nodes, one report a batch, and stopped. Its first whole segment of 64 MiB is compressed in blocks of 1 MiB, as the archive
//! does it, with several levels of zstd. Prints how many times smaller it becomes, and MB of the segment in a second for both
//! ways, on one processor.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Instant;

use journal::store::SEGMENT_BYTES;
use plan_bench::is_trial;
use plan_bench::written::WrittenLog;
use zstd::bulk::{Compressor, Decompressor};

const NODES: usize = 1_000;
const PER_JOB: usize = 10;
const LEVELS: [i32; 8] = [1, 3, 5, 7, 9, 12, 15, 19];
const BLOCK: usize = 1 << 20;

fn main() {
    let quick = is_trial();
    let dir = tempfile::tempdir().unwrap();
    let (batches, events) = written(dir.path(), if quick { 20 } else { 8_000 });
    println!("archive: a log of {batches} batches with {events} events");
    let segment = std::fs::read(first_of_the_longest(dir.path())).unwrap();
    let used = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    println!("archive: {used} bytes of a segment");
    let levels = if quick { &LEVELS[..1] } else { &LEVELS };
    for level in levels {
        measure(&segment[..used.min(SEGMENT_BYTES as usize)], *level);
    }
}

fn measure(bytes: &[u8], level: i32) {
    let (mut compressor, mut decompressor) = (Compressor::new(level).unwrap(), Decompressor::new().unwrap());
    let start = Instant::now();
    let blocks: Vec<Vec<u8>> = bytes.chunks(BLOCK).map(|block| compressor.compress(block).unwrap()).collect();
    let packing = start.elapsed();
    let start = Instant::now();
    let unpacked: usize =
        blocks.iter().map(|block| decompressor.decompress(block, BLOCK).unwrap().len()).sum();
    let unpacking = start.elapsed();
    assert_eq!(unpacked, bytes.len());
    let packed: usize = blocks.iter().map(Vec::len).sum();
    let speed = |spent: std::time::Duration| bytes.len() as f64 / 1e6 / spent.as_secs_f64();
    println!(
        "level {level:>2}: {:.2} times smaller, {:.0} MB/s to compress, {:.0} MB/s to decompress",
        bytes.len() as f64 / packed as f64,
        speed(packing),
        speed(unpacking),
    );
}

fn first_of_the_longest(dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let segments = files.filter(|path| path.extension().is_some_and(|kind| kind == "seg"));
    let length = |path: &PathBuf| path.metadata().unwrap().len();
    segments.min_by_key(|path| (Reverse(length(path)), path.clone())).unwrap()
}

/// Makes a log, and returns how many batches and events are in it.
fn written(dir: &Path, jobs: usize) -> (u64, usize) {
    let mut log = WrittenLog::new(dir, NODES);
    for number in 0..jobs {
        let name = format!("job-{number}");
        log.begin(&name, PER_JOB);
        log.end(&name);
    }
    log.flush();
    (log.state.index.0, log.events)
}
