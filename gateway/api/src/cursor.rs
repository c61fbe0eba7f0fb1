//! Durable cursors of the event stream. Ours alone.

use model::document::shape::duration_or_empty;
use model::document::{Duration, List, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

/// The body of `PUT /v1/event/cursor/:name`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursorRequest {
    /// Where a new cursor begins: as `from` of the stream. Empty: `now`, and what there is stays where it is.
    pub from: String,
    /// `Topic` or `Topic:key`; everything without one.
    pub topics: List<String>,
    /// `default` unless given; `*` for all.
    pub namespace: String,
    pub filter: String,
    /// The accessor of the token that may acknowledge besides operators.
    pub reader: String,
    /// What is not used for so long is deleted. Zero: never.
    #[serde(rename = "TTL", deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub ttl: Duration,
    /// Among how many readers a new one is split. Zero: as it is, and a new one is not split; one: not split.
    pub members: u32,
}

/// The answer of `GET /v1/event/cursor/:name`, and an entry of `GET /v1/event/cursors`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursor {
    pub name: String,
    pub topics: List<String>,
    pub namespace: String,
    pub filter: String,
    /// Where it began, as it was asked for.
    pub from: String,
    pub reader: String,
    #[serde(rename = "TTL", deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub ttl: Duration,
    /// When it is deleted unless somebody uses it.
    pub expires: Option<Timestamp>,
    /// The id of the last event that was acknowledged; an index stands for all of its events.
    pub position: String,
    pub position_index: u64,
    /// Batches after the position that are about something else than cursors.
    pub lag_batches: u64,
    /// How long ago the oldest of those was made; 0 without one.
    pub lag_seconds: u64,
    /// The oldest index that can still be read.
    pub oldest_index: u64,
    /// What follows the position is no longer kept: a reader gets 410, or a gap.
    pub gap: bool,
    pub acked_at: Option<Timestamp>,
    /// As the log names who asked: `token:ACCESSOR`.
    pub acked_by: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: Timestamp,
    /// Among how many readers it is split; zero when it is not.
    pub members: u32,
    /// How far each of those has come, in their order.
    pub shares: List<EventCursorShare>,
}

/// How far one of the readers has come that a cursor is split among.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursorShare {
    /// From zero: what `member` of the stream is.
    pub member: u32,
    pub position: String,
    pub position_index: u64,
    pub lag_batches: u64,
    pub lag_seconds: u64,
    pub gap: bool,
    pub acked_at: Option<Timestamp>,
    pub acked_by: String,
}

/// The body of `POST /v1/event/cursor/:name/ack`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursorAckRequest {
    /// The id of the last event that the reader has done with.
    #[serde(rename = "ID")]
    pub id: String,
    /// Which of the readers that the cursor is split among; none where it is not.
    pub member: Option<u32>,
}

/// The body of `POST /v1/event/cursor/:name/reset`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursorResetRequest {
    /// As `from` of the stream. Empty, with members: where the cursor is.
    pub to: String,
    /// Splits it among so many readers, who all begin there; one joins it again. Zero: as it is.
    pub members: u32,
}

/// Where a cursor is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventCursorPosition {
    pub position: String,
    /// The index of the change, or the newest without one.
    pub index: u64,
}

pub(crate) fn as_text<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    match duration.0 {
        base::Duration::ZERO => to.serialize_str(""),
        set => to.collect_str(&set),
    }
}
