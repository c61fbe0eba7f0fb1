//! What the log costs on this machine. Run with `--release -- --ignored --nocapture --test-threads 1`.

mod support;

use std::time::{Duration, Instant};

use base::Index;
use journal::Journal;
use support::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    println!("a bare write and fdatasync: {:?}", bare(dir.path(), 2000));
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    let mut took = Vec::new();
    for index in 1..=5000 {
        let batch = batch(index, 30);
        let begin = Instant::now();
        server.journal.propose(term, batch).unwrap();
        server.heard().await;
        took.push(begin.elapsed());
    }
    println!("propose to sink, one in flight: {}", percentiles(took));
    server.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn many_at_once_and_again_after_a_restart() {
    const COUNT: u64 = 100_000;
    const WINDOW: u64 = 256;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::open(dir.path()).await;
    let term = server.leading().await;
    let batches: Vec<_> = (1..=COUNT).map(|index| batch(index, 30)).collect();
    let begin = Instant::now();
    let (mut proposed, mut committed) = (0, 0);
    while committed < COUNT {
        while proposed < (committed + WINDOW).min(COUNT) {
            server.journal.propose(term, batches[proposed as usize].clone()).unwrap();
            proposed += 1;
        }
        server.heard().await;
        committed += 1;
    }
    let took = begin.elapsed();
    println!("{COUNT} batches of {} bytes, {WINDOW} in flight: {took:?}", batches[0].bytes().len());
    println!("  {:.0} batches/s", COUNT as f64 / took.as_secs_f64());
    server.journal.shutdown().await;
    drop(server);
    let begin = Instant::now();
    let mut again = Server::open(dir.path()).await;
    println!("opened after {:?}", begin.elapsed());
    assert_eq!(again.replayed().await, COUNT);
    println!("replayed and leading after {:?}", begin.elapsed());
    let begin = Instant::now();
    let mut from = Index(1);
    while from.0 <= COUNT {
        from = again.journal.read(from, 1 << 20).unwrap().last().unwrap().index().next();
    }
    println!("read back in {:?}", begin.elapsed());
    again.journal.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn a_first_start() {
    let dir = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let mut server = Server::open_with(dir.path(), journal::store::SEGMENT_BYTES).await;
    server.leading().await;
    println!("leading {:?} after the first start, with usual segments", begin.elapsed());
    server.journal.shutdown().await;
    drop(server);
    let begin = Instant::now();
    let mut server = Server::open_with(dir.path(), journal::store::SEGMENT_BYTES).await;
    server.leading().await;
    println!("leading {:?} after the second", begin.elapsed());
    server.journal.shutdown().await;
}

fn bare(dir: &std::path::Path, count: usize) -> String {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(dir.join("bare")).unwrap();
    file.write_all_at(&vec![0; 4 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let took = (0..count).map(|nth| {
        let begin = Instant::now();
        file.write_all_at(&[7; 384], nth as u64 * 384).unwrap();
        file.sync_data().unwrap();
        begin.elapsed()
    });
    percentiles(took.collect())
}

fn percentiles(mut took: Vec<Duration>) -> String {
    took.sort();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    format!("p50 {:?}, p99 {:?}, max {:?}", at(0.5), at(0.99), at(1.0))
}
