//! Readers that are polled chunk by chunk.

use std::sync::Arc;

use base::Index;
use feed::{Cursor, Encoder, EventFilter, Everybody, Feed, Source, Subscription};
use model::Batch;

use crate::support::Log;

/// What a server finds after it was killed: the log.
pub fn restarted(log: &Log) -> Log {
    let batches = log.journal().read(Index(1), usize::MAX).unwrap();
    let batches: Vec<Batch> = batches.iter().map(|batch| batch.decode().unwrap()).collect();
    Log::of(&batches)
}

pub fn about(topics: &[&str]) -> EventFilter {
    let topics = topics.iter().map(|topic| topic.parse().unwrap()).collect();
    EventFilter::of_topics(topics, Arc::new(Everybody))
}

pub fn reader(feed: &Feed, from: u64, filter: EventFilter, messages: bool) -> Subscription {
    let start = Cursor::at(Index(from));
    let encoder = if messages { Encoder::messages(start) } else { Encoder::lines() };
    Subscription::new(feed.clone(), filter, start, encoder, feed.slot().unwrap())
}

/// What a reader says until it has said `until`.
pub async fn said(reader: &mut Subscription, until: &str) -> String {
    let mut text = String::new();
    while !text.contains(until) {
        text.push_str(std::str::from_utf8(&reader.next().await.expect("the stream goes on")).unwrap());
    }
    text
}
