//! Readers at the head, below the horizon and at the end.

use base::Index;
use tokio::time::{Instant, timeout};

use crate::readers::{about, reader, said};
use crate::support::{Log, PATIENCE, busy, everything, long, read, toggle};
use feed::Cursor;
use feed::HEARTBEAT;
use feed::TAIL_BATCHES;
use feed::{Feed, FeedError};

#[tokio::test]
async fn a_reader_beyond_the_end_waits_and_sees_nothing_twice() {
    let mut world = long(1, 3);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let mut ahead = reader(&feed, log.last().0 + 1, about(&[]), true);
    assert_eq!(said(&mut ahead, "retry").await, "retry: 1000\n\n");
    let task = tokio::spawn(async move { said(&mut ahead, "\n\n").await });
    toggle(&mut world, 1);
    log.extend(&world.log[3..]);
    let text = timeout(PATIENCE, task).await.unwrap().unwrap();
    // Nobody founded a cluster in this log.
    assert!(text.starts_with("id: 4.0\nevent: Node\ntime: 1000000000000000\ndata: {"), "{text}");
    assert_eq!(text.matches("id: ").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_lives() {
    let world = busy();
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let start = Instant::now();
    let mut lines = reader(&feed, log.last().0 + 1, about(&[]), false);
    for beat in 0..3 {
        assert_eq!(lines.next().await.unwrap(), b"{}\n");
        assert_eq!(start.elapsed().as_secs(), beat * HEARTBEAT.as_secs());
    }
    // A reader whose filter matches none of this gets its position with the heartbeat.
    let mut messages = reader(&feed, 1, about(&["Service"]), true);
    let text = said(&mut messages, "checkpoint").await;
    let api::ClusterTag(tag) = feed.cluster().unwrap();
    assert_eq!(
        text,
        format!(
            "retry: 1000\n\n: heartbeat\n\nid: 11.0@{tag:08x}\nevent: checkpoint\ndata: {{\"Index\":11}}\n\n"
        )
    );
    assert_eq!(messages.next().await.unwrap(), b": heartbeat\n\n");
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let log = Log::of(&busy().log);
    let feed = Feed::new(log.clone());
    let mut open = reader(&feed, log.last().0 + 1, about(&[]), false);
    assert!(open.next().await.is_some());
    let task = tokio::spawn(async move { open.next().await });
    feed.close();
    assert_eq!(timeout(PATIENCE, task).await.unwrap().unwrap(), None);
    let mut late = reader(&feed, 1, about(&[]), false);
    assert!(late.next().await.is_some());
    assert_eq!(late.next().await, None);
}

#[tokio::test]
async fn what_lies_below_the_horizon_is_never_skipped_silently() {
    let world = long(2, TAIL_BATCHES + 200);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    assert_eq!(feed.oldest(), Index(1));
    log.forget_before(150);
    // No state is at hand that batch 150 follows on: the oldest is what follows on the published one.
    let oldest = feed.oldest();
    assert_eq!(oldest, log.last().next());
    for index in [1, 149, 150, log.last().0] {
        let refused = feed.page(Cursor::at(Index(index)), &everything()).await;
        assert!(matches!(refused, Err(FeedError::Gone)), "{index}");
    }
}

/// Nobody read for long, and the log has lost what followed on the state that was read last.
#[tokio::test]
async fn a_reader_from_the_oldest_event_misses_nothing_that_follows() {
    let mut world = long(2, 300);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    log.forget_before(150);
    let oldest = feed.oldest();
    toggle(&mut world, 1);
    toggle(&mut world, 2);
    log.extend(&world.log[300..]);
    let events = read(&feed, Cursor::at(oldest), log.last(), &everything()).await;
    assert_eq!(events.iter().map(|events| events.id.index.0).collect::<Vec<_>>(), [301, 302]);
}

#[tokio::test]
async fn the_oldest_event_follows_on_a_state_at_hand() {
    let mut world = long(2, TAIL_BATCHES + 200);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    // Reading it all leaves a checkpoint at batch 1,024.
    let all = read(&feed, Cursor::at(Index(1)), log.last(), &everything()).await;
    log.forget_before(600);
    assert_eq!(feed.oldest(), Index(1_025));
    let rest = read(&feed, Cursor::at(Index(1_025)), log.last(), &everything()).await;
    assert_eq!(rest, all[1_024..]);
    toggle(&mut world, 1);
    log.extend(&world.log[TAIL_BATCHES + 200..]);
    assert_eq!(read(&feed, Cursor::at(log.last()), log.last(), &everything()).await.len(), 1);
}
