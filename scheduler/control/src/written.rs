//! What one batch may change for one command only.
//!
//! Everything in a batch has one index. A client takes the index it is answered with for that of its own write, and writes
//! on only if the object is still at it. If two writes of an object shared an index, whoever made the first would overwrite
//! the second unseen; and the event stream, which shows each object once in a batch, would leave the first out.

use model::{Event, JobKey, Subject};

/// An object with an index that clients compare.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Written {
    Job(JobKey),
    /// Objects that are the cluster's, by the kind of event: they are written too rarely to distinguish them further.
    OfCluster(u16),
}

impl Written {
    pub fn by(event: &Event) -> Option<Written> {
        match event.subject() {
            Subject::Job(key) => Some(Written::Job(key.clone())),
            // A piece of a snapshot has no index that anybody compares.
            Subject::Cluster if matches!(event, Event::StateChunkGiven(_)) => None,
            Subject::Cluster => Some(Written::OfCluster(event.kind())),
            // Their batches are the busiest, and their writers compare nothing.
            Subject::Node(_) | Subject::Evals(_) | Subject::Allocs(_) | Subject::Deployment(_) => None,
        }
    }
}
