//! The event stream: what a line holds, what a subscriber may ask for, and the id that it resumes from.

use std::fmt;
use std::str::FromStr;

use base::{Index, Uuid};
use model::document::{List, Map};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `Events` of Nomad's API.
///
/// One line of the stream: the matching events of one index. The empty object is a heartbeat.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Events {
    pub index: u64,
    pub events: List<Event>,
}

/// `Event` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Event {
    pub topic: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub key: String,
    pub filter_keys: List<String>,
    pub index: u64,
    pub payload: Map<String, Value>,
    pub namespace: String,
}

/// The topics that events have. Whoever asks for another one would wait for ever.
pub const TOPICS: [&str; 17] = [
    "Allocation",
    "Deployment",
    "Evaluation",
    "Job",
    "Node",
    "ACLAuthMethod",
    "ACLBindingRule",
    "ACLPolicy",
    "ACLRole",
    "ACLToken",
    "Variable",
    "Service",
    "Recording",
    "HostVolume",
    "CSIVolume",
    "CSIPlugin",
    "NodePool",
];

/// The id of one event, `index.ordinal`: a total order over all events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    pub index: Index,
    /// Its place within the batch, from 0.
    pub ordinal: u32,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.ordinal)
    }
}

/// Where a reader goes on: after an event of a cluster, or after everything of an index.
///
/// As text `42.7@5d16e7fe`, with the first half-word of the cluster's id; `42.7` and `42` are of any cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamPosition {
    pub after: EventId,
    pub cluster: Option<ClusterTag>,
}

/// Tells clusters apart: a position in the stream of one means nothing in that of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterTag(pub u32);

impl ClusterTag {
    /// `None` for the nil id of a server that does not know its cluster yet.
    pub fn of(cluster: Uuid) -> Option<ClusterTag> {
        let [a, b, c, d, ..] = cluster.0;
        (!cluster.is_nil()).then_some(ClusterTag(u32::from_be_bytes([a, b, c, d])))
    }
}

impl fmt::Display for ClusterTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.after {
            EventId { index, ordinal: u32::MAX } => index.fmt(f)?,
            after => after.fmt(f)?,
        }
        match self.cluster {
            Some(cluster) => write!(f, "@{cluster}"),
            None => Ok(()),
        }
    }
}

impl FromStr for StreamPosition {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<StreamPosition, EventIdError> {
        let error = || EventIdError(text.to_string());
        let (id, tag) = text.split_once('@').map_or((text, None), |(id, tag)| (id, Some(tag)));
        let cluster = match tag {
            Some(tag) if tag.len() == 8 && tag.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Some(ClusterTag(u32::from_str_radix(tag, 16).map_err(|_| error())?))
            }
            Some(_) => return Err(error()),
            None => None,
        };
        let after = match digits(id) {
            Some(index) => EventId { index: Index(index), ordinal: u32::MAX },
            None => id.parse().map_err(|_| error())?,
        };
        Ok(StreamPosition { after, cluster })
    }
}

/// The text is not an event id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an event id: expected an index, or index.ordinal like 42.0")]
pub struct EventIdError(pub String);

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<EventId, EventIdError> {
        let (index, ordinal) = text.split_once('.').ok_or_else(|| EventIdError(text.to_string()))?;
        match (digits(index), digits(ordinal).and_then(|n| u32::try_from(n).ok())) {
            (Some(index), Some(ordinal)) => Ok(EventId { index: Index(index), ordinal }),
            _ => Err(EventIdError(text.to_string())),
        }
    }
}

/// Unlike `parse`, refuses a leading `+`.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// What a subscriber asks for: a topic and a key, each possibly `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicFilter {
    pub topic: String,
    pub key: String,
}

/// More than one `:` in a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid topic query: Invalid key value pair for topic, topic: {0}")]
pub struct TopicError(pub String);

impl FromStr for TopicFilter {
    type Err = TopicError;

    /// Reads `Topic` or `Topic:key`.
    fn from_str(text: &str) -> Result<TopicFilter, TopicError> {
        let (topic, key) = text.split_once(':').unwrap_or((text, "*"));
        if key.contains(':') {
            return Err(TopicError(text.to_string()));
        }
        Ok(TopicFilter { topic: topic.to_string(), key: key.to_string() })
    }
}

impl TopicFilter {
    /// True when an event of this topic with one of these keys (its own, then its filter keys) was asked for.
    pub fn matches<'a>(&self, topic: &str, keys: impl IntoIterator<Item = &'a str>) -> bool {
        (self.topic == "*" || self.topic == topic)
            && (self.key == "*" || keys.into_iter().any(|key| key == self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_an_index_and_an_ordinal() {
        let id: EventId = "42.7".parse().unwrap();
        assert_eq!((id, id.to_string()), (EventId { index: Index(42), ordinal: 7 }, "42.7".to_string()));
        for text in ["", "42", "42.", ".1", "+1.0", "1.-1", "1.2.3", "1.4294967296"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_position_may_name_its_cluster_and_may_be_a_whole_index() {
        let position: StreamPosition = "42.7@5d16e7fe".parse().unwrap();
        assert_eq!(position.after, "42.7".parse().unwrap());
        assert_eq!(
            (position.cluster, position.to_string()),
            (Some(ClusterTag(0x5d16_e7fe)), "42.7@5d16e7fe".into())
        );
        let of_any: StreamPosition = "42".parse().unwrap();
        assert_eq!((of_any.cluster, of_any.after.index, of_any.after.ordinal), (None, Index(42), u32::MAX));
        let whole: StreamPosition = "42@5d16e7fe".parse().unwrap();
        assert_eq!(whole.to_string(), "42@5d16e7fe");
        for text in ["", "@5d16e7fe", "42.7@", "42.7@5d16", "42.7@5d16e7fg", "x", "42."] {
            assert!(text.parse::<StreamPosition>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_has_no_cluster_yet_has_no_tag() {
        let cluster: Uuid = "5d16e7fe-0000-0000-0000-000000000001".parse().unwrap();
        assert_eq!(ClusterTag::of(cluster), Some(ClusterTag(0x5d16_e7fe)));
        assert_eq!(ClusterTag::of(Uuid::NIL), None);
    }

    #[test]
    fn a_filter_matches_by_topic_and_by_any_of_the_keys() {
        let filter: TopicFilter = "Allocation:web".parse().unwrap();
        assert!(filter.matches("Allocation", ["5d16e7fe", "web"]));
        assert!(!filter.matches("Allocation", ["5d16e7fe"]));
        assert!(!filter.matches("Job", ["web"]));
        let everything: TopicFilter = "*".parse().unwrap();
        assert!(everything.matches("Node", ["n1"]));
        assert_eq!("a:b:c".parse::<TopicFilter>(), Err(TopicError("a:b:c".to_string())));
    }
}
