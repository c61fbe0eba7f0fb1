//! What the log costs on this machine. Run with `--release -- --ignored --nocapture --test-threads 1`.

use std::time::{Duration, Instant};

use crate::support::cluster::Cluster;
use crate::support::*;
use base::Index;
use journal::Journal;

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

/// Three servers in this process, on the same disk.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn three_servers() {
    const COUNT: u64 = 20_000;
    for events in [1, 64] {
        let mut cluster = Cluster::founded(3).await;
        let (leader, term) = cluster.leader(&[1, 2, 3]).await;
        let batches: Vec<_> =
            (1..=2 * COUNT).map(|index| journal::encode(&batch_of(1, index, events, 30))).collect();
        let server = cluster.server(leader);
        server.heard_so_far();
        let mut took = Vec::new();
        for batch in &batches[..2000] {
            let begin = Instant::now();
            server.journal.propose(term, batch.clone()).unwrap();
            server.heard().await;
            took.push(begin.elapsed());
        }
        println!("{events} events, {} bytes a batch", batches[0].bytes().len());
        println!("  propose to sink, one in flight: {}", percentiles(took));
        for window in [8, 256] {
            let begin = Instant::now();
            let first = server.journal.committed().0;
            let (mut proposed, mut committed) = (first, first);
            while committed < first + COUNT / 2 {
                while proposed < (committed + window).min(first + COUNT / 2) {
                    server.journal.propose(term, batches[proposed as usize].clone()).unwrap();
                    proposed += 1;
                }
                server.heard().await;
                committed += 1;
            }
            let rate = (COUNT / 2) as f64 / begin.elapsed().as_secs_f64();
            println!("  {window} in flight: {rate:.0} batches/s, {:.0} events/s", rate * events as f64);
        }
        cluster.stop_all().await;
    }
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
