//! What the stream shows of the recording of another cluster, besides what was observed there.

use std::sync::Arc;

use base::{Index, Time};
use feed::{Cursor, EventFilter, Everybody, Feed};
use model::event::ObservationGap;
use model::{Command, Observe};
use serde_json::{Value, json};
use test_world::World;

use crate::support::{Log, everything, read};

const SOURCE: &str = "http://nomad:4646";

#[tokio::test]
async fn a_gap_is_an_event_of_its_own_topic() {
    let mut world = World::new();
    world.submit(Command::FoundCluster { scheduler: Default::default() }).unwrap();
    let nothing =
        Observe { source: SOURCE.into(), index: 5, seen: Time::from_secs(1), documents: Vec::new() };
    world.submit(Command::Observe(Box::new(nothing))).unwrap();
    let reason = "the stream does not reach back to what was seen last".to_string();
    let gap = ObservationGap { source: SOURCE.into(), from: 5, to: 12, reason: reason.clone() };
    world.submit(Command::NoteObservationGap(Box::new(gap))).unwrap();
    world.check_replay();

    let log = Log::of(&world.log);
    let feed = Feed::new(log.clone());
    let recording = EventFilter::of_topics(vec!["Recording".parse().unwrap()], Arc::new(Everybody));
    let by_key = EventFilter::of_topics(vec!["Recording:recording".parse().unwrap()], Arc::new(Everybody));
    for filter in [everything(), Arc::new(recording), Arc::new(by_key)] {
        let events = read(&feed, Cursor::at(Index(1)), log.last(), &filter).await;
        let [event] = &events[..] else { panic!("one event, and not {}", events.len()) };
        let shown: Value = serde_json::from_slice(&event.body).unwrap();
        assert_eq!(
            (&shown["Topic"], &shown["Type"], &shown["Key"], &shown["Index"]),
            (&json!("Recording"), &json!("ObservationGap"), &json!("recording"), &json!(log.last().0))
        );
        let payload = json!({"ObservationGap": {"Source": SOURCE, "From": 5, "To": 12, "Reason": reason}});
        assert_eq!(shown["Payload"], payload);
    }
    let nodes = EventFilter::of_topics(vec!["Node".parse().unwrap()], Arc::new(Everybody));
    assert!(read(&feed, Cursor::at(Index(1)), log.last(), &Arc::new(nodes)).await.is_empty());
}
