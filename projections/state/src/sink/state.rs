use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash, Time};
use model::{EventPosition, EventSinkSettings, EventSinkTarget, OtlpSignal};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// A sink as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sink {
    pub settings: EventSinkSettings,
    pub status: Status,
    pub created: Index,
    /// The last batch that changed it, but for what its cursor says.
    pub modified: Index,
}

/// Whether it sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Status {
    Running,
    /// Somebody stopped it.
    Paused,
    /// An event did not get through.
    Parked(Parked),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    pub event: EventPosition,
    pub attempts: u32,
    pub reason: String,
    pub at: Time,
}

/// All sinks, by name; a clone is a pointer copy. There are few: rules bound their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sinks(Arc<Content>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    by_name: BTreeMap<String, Arc<Sink>>,
    changed: Index,
    /// The sum of the hashes of all sinks.
    sum: u64,
}

impl Sinks {
    pub(crate) fn of(rows: Vec<(String, Sink)>, changed: Index) -> Sinks {
        let mut sinks = Sinks::default();
        for (name, sink) in rows {
            sinks.set(changed, &name, Some(sink));
        }
        Arc::make_mut(&mut sinks.0).changed = changed;
        sinks
    }

    /// The last batch that changed one.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    pub fn get(&self, name: &str) -> Option<&Sink> {
        self.0.by_name.get(name).map(|sink| &**sink)
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Sink)> {
        self.0.by_name.iter().map(|(name, sink)| (name.as_str(), &**sink))
    }

    pub fn len(&self) -> usize {
        self.0.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.by_name.is_empty()
    }

    pub(crate) fn is_same(&self, other: &Sinks) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn rows(&self) -> Vec<(String, Sink)> {
        self.iter().map(|(name, sink)| (name.to_string(), sink.clone())).collect()
    }

    pub(crate) fn set(&mut self, now: Index, name: &str, sink: Option<Sink>) {
        let content = Arc::make_mut(&mut self.0);
        content.changed = now;
        if let Some(before) = content.by_name.remove(name) {
            content.sum = content.sum.wrapping_sub(hash(name, &before));
        }
        if let Some(sink) = sink {
            content.sum = content.sum.wrapping_add(hash(name, &sink));
            content.by_name.insert(name.to_string(), Arc::new(sink));
        }
    }

    /// Everything is as in the state that was restored. A cluster without sinks keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Sinks) {
        if self.changed().max(before.changed()) > Index::ZERO {
            Arc::make_mut(&mut self.0).changed = now;
        }
    }

    /// Nothing was made or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.changed() == Index::ZERO {
            return;
        }
        let mut rows = self.rows();
        for (_, sink) in &mut rows {
            (sink.created, sink.modified) = (sink.created.min(limit), sink.modified.min(limit));
            if let Status::Parked(parked) = &mut sink.status {
                parked.event = parked.event.min(EventPosition { index: limit, ordinal: u32::MAX });
            }
        }
        *self = Sinks::of(rows, self.changed().min(limit));
    }

    /// Zero for a cluster that never had a sink: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(self.0.sum)
    }

    /// What [`Sinks::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        let rows = self.iter();
        self.hash_with(rows.fold(0, |sum: u64, (name, sink)| sum.wrapping_add(hash(name, sink))))
    }

    fn hash_with(&self, sum: u64) -> u64 {
        if self.changed() == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::EventSinks as u64);
        hash.pair(self.changed().0, sum);
        hash.finish()
    }
}

fn hash(name: &str, sink: &Sink) -> u64 {
    let Sink { settings, status, created, modified } = sink;
    let EventSinkSettings { target, secret, attempts_max, timeout } = settings;
    let mut hash = StableHash::new(Domain::EventSinks as u64);
    hash.text(name);
    match target {
        EventSinkTarget::Webhook { url } => {
            hash.word(1);
            hash.text(url);
        }
        EventSinkTarget::Nats { address, subject, tls } => {
            hash.word(2);
            hash.text(address);
            hash.text(subject);
            // Digests of sinks without it stay what they were.
            if *tls {
                hash.word(1);
            }
        }
        EventSinkTarget::File { max_bytes, max_files } => {
            hash.word(3);
            hash.pair(*max_bytes, u64::from(*max_files));
        }
        EventSinkTarget::Syslog { address, transport, facility, app_name } => {
            hash.pair(4, *transport as u64);
            hash.text(address);
            hash.word(u64::from(*facility));
            hash.text(app_name);
        }
        EventSinkTarget::Otlp { url, signal } => {
            hash.word(5);
            hash.text(url);
            // Digests of sinks of logs stay what they were.
            match signal {
                OtlpSignal::Logs => {}
                OtlpSignal::Traces => hash.word(1),
            }
        }
        EventSinkTarget::Kafka { address, topic, tls } => {
            hash.pair(6, u64::from(*tls));
            hash.text(address);
            hash.text(topic);
        }
    }
    if let Some(secret) = secret {
        hash.text(&secret.namespace);
        hash.text(&secret.path);
    }
    hash.pair(u64::from(*attempts_max), timeout.0 as u64);
    match status {
        Status::Running => hash.word(1),
        Status::Paused => hash.word(2),
        Status::Parked(Parked { event, attempts, reason, at }) => {
            hash.pair(event.index.0, u64::from(event.ordinal));
            hash.pair(u64::from(*attempts), at.0 as u64);
            hash.text(reason);
        }
    }
    hash.pair(created.0, modified.0);
    hash.finish()
}
