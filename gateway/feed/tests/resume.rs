//! Wherever a reader goes on, it sees exactly what an uninterrupted one sees.

use std::sync::Arc;

use base::Index;

use crate::readers::{about, reader, restarted, said};
use crate::support::{Log, busy, everything, ids, long, read, toggle};
use feed::Feed;
use feed::TAIL_BATCHES;
use feed::{CHECKPOINTS_MAX, PARKED_MAX};
use feed::{Cursor, Entry, EventFilter, PAGE_BYTES, Viewer};
use test_world::node_id;

const START: Cursor = Cursor { index: Index(1), ordinal: 0 };

#[tokio::test]
async fn every_event_of_the_log_is_sent_once_in_order() {
    let world = busy();
    let log = Log::of(&world.log);
    let events = ids(&read(&Feed::new(log.clone()), START, log.last(), &everything()).await);
    assert!(events.is_sorted_by(|a, b| a < b));
    assert_eq!((events.len(), events.last().map(ToString::to_string)), (24, Some("11.0".to_string())));
}

#[tokio::test]
async fn resuming_after_any_event_sends_exactly_the_rest() {
    let world = busy();
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let all = read(&feed, START, log.last(), &everything()).await;
    for (at, event) in all.iter().enumerate() {
        let rest = read(&feed, Cursor::after(event.id), log.last(), &everything()).await;
        assert_eq!(rest, all[at + 1..], "after {}", event.id);
    }
}

/// Longer than the tail: what is old is folded again, from a checkpoint or from where another reader stopped.
#[tokio::test]
async fn resuming_in_the_far_past_sends_exactly_the_rest() {
    let world = long(7, TAIL_BATCHES * 3);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let all = read(&feed, START, log.last(), &everything()).await;
    assert_eq!(all.len(), TAIL_BATCHES * 3);
    assert!(ids(&all).is_sorted_by(|a, b| a < b));
    // Back and forth, so that states at hand lie on either side.
    for at in (0..all.len()).step_by(211).flat_map(|at| [at, all.len() - 1 - at]) {
        let page = feed.page(Cursor::after(all[at].id), &everything()).await;
        if at + 1 < all.len() {
            let events = page.unwrap().events;
            assert_eq!(events, all[at + 1..at + 1 + events.len()], "after {}", all[at].id);
            assert!(!events.is_empty());
        }
    }
}

#[tokio::test]
async fn a_restart_sends_the_same_bytes() {
    let world = long(3, TAIL_BATCHES + 500);
    let log = Log::of(&world.log[..200]);
    let feed = Feed::new(log.clone());
    // Followed live in uneven steps, with the states that are published, and sent again by a server that folds the whole log.
    let mut live = read(&feed, START, log.last(), &everything()).await;
    let mut rest = &world.log[200..];
    for size in [1, 1, 37].into_iter().cycle() {
        let (step, later) = rest.split_at(size.min(rest.len()));
        if step.is_empty() {
            break;
        }
        rest = later;
        let from = Cursor::at(log.last().next());
        log.extend(step);
        live.extend(read(&feed, from, log.last(), &everything()).await);
    }
    let again = restarted(&log);
    assert_eq!(read(&Feed::new(again.clone()), START, again.last(), &everything()).await, live);
}

#[tokio::test]
async fn a_kill_between_any_two_events_loses_and_repeats_nothing() {
    let world = busy();
    let (mut log, mut events) = (Log::new(), Vec::new());
    let mut cursor = START;
    for batch in &world.log {
        log.extend(std::slice::from_ref(batch));
        log = restarted(&log);
        let news = read(&Feed::new(log.clone()), cursor, log.last(), &everything()).await;
        cursor = news.last().map_or(cursor, |event| Cursor::after(event.id));
        events.extend(news);
    }
    let whole = read(&Feed::new(log.clone()), START, log.last(), &everything()).await;
    assert_eq!(events, whole);
}

#[tokio::test]
async fn a_batch_larger_than_a_page_is_one_line() {
    let mut world = busy();
    world.register_node(2, "b").unwrap();
    world
        .submit(model::Command::UpdateNodeStatus { node: node_id(2), claimed: model::NodeStatus::Ready })
        .unwrap();
    world.register_job("web", "service", base::Duration::ZERO).unwrap();
    let mut placed = world.placement("web", 0, 2, None);
    for at in 1..400_u32 {
        let more = world.placement("web", at, 2, None);
        placed.ids.extend(more.ids);
        placed.nodes.extend(more.nodes);
        placed.names.extend(more.names);
    }
    placed.template = model::Doc::of(&model::Template::default());
    crate::support::settle(&mut world, |plan| plan.placed.push(placed));
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let mut reader = reader(&feed, log.last().0, about(&[]), false);
    let text = said(&mut reader, "]}\n").await;
    assert!(text.len() > 3 * PAGE_BYTES, "it takes several pages");
    let (opening, line) = text.split_once('\n').unwrap();
    assert_eq!(opening, "{}");
    let events: api::Events = serde_json::from_str(line).unwrap();
    assert_eq!((events.index, events.events.len()), (log.last().0, 403));
}

#[tokio::test]
async fn filters_take_what_they_name_and_nothing_else() {
    let world = busy();
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let count = async |filter: EventFilter| read(&feed, START, log.last(), &Arc::new(filter)).await.len();
    assert_eq!(count(about(&["Node"])).await, 5);
    assert_eq!(count(about(&["Job:web", "Job:db"])).await, 3);
    assert_eq!(count(about(&["Allocation:web"])).await, 9, "a job's allocations are found by its id");
    assert_eq!(count(about(&["*:web"])).await, 19);
    assert_eq!(count(about(&["Service"])).await, 0);
    let elsewhere = EventFilter { namespace: Some("prod".to_string()), ..about(&[]) };
    assert_eq!(count(elsewhere).await, 5, "nodes are in no namespace");
    let denied = EventFilter { viewer: Arc::new(WithoutNodes), ..about(&[]) };
    assert_eq!(count(denied).await, 19);
}

#[tokio::test]
async fn a_filtered_reader_gets_its_position() {
    let world = long(2, 1_000);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let mut filtered = reader(&feed, 1, about(&["Job"]), true);
    let text = said(&mut filtered, "checkpoint").await;
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let id = id.parse::<api::StreamPosition>().unwrap().after;
    assert!(id.index > Index(256), "{id}");
    assert!(text.contains(&format!("data: {{\"Index\":{}}}", id.index)));
    // Nothing that it matches lies before, and what comes after is found from there.
    let mut world = world;
    world.register_job("web", "service", base::Duration::ZERO).unwrap();
    log.extend(&world.log[1_000..]);
    let rest = read(&feed, Cursor::after(id), log.last(), &Arc::new(about(&["Job"]))).await;
    assert_eq!(ids(&rest).iter().map(ToString::to_string).collect::<Vec<_>>(), ["1001.0"]);
}

#[tokio::test]
async fn what_is_kept_does_not_grow_with_the_log_or_its_readers() {
    let mut world = long(5, TAIL_BATCHES);
    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    for round in 0..40 {
        let from = world.log.len();
        (0..100).for_each(|at| toggle(&mut world, 1 + at % 5));
        log.extend(&world.log[from..]);
        let page = feed.page(Cursor::at(Index(1 + round * 90)), &everything()).await.unwrap();
        assert!(!page.events.is_empty());
        read(&feed, Cursor::at(Index(from as u64 + 1)), log.last(), &everything()).await;
    }
    let kept = feed.held();
    assert!(kept.batches <= TAIL_BATCHES, "{kept:?}");
    assert!(kept.parked <= PARKED_MAX, "{kept:?}");
    assert!(kept.checkpoints <= CHECKPOINTS_MAX, "{kept:?}");
}

/// Sees everything but nodes.
struct WithoutNodes;

impl Viewer for WithoutNodes {
    fn may_see(&self, entry: &Entry) -> bool {
        entry.topic != "Node"
    }

    fn may_go_on(&self) -> bool {
        true
    }
}
