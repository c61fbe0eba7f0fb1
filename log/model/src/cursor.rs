//! Cursors: how far readers of the event stream have come, kept for them by the cluster.

use base::{Duration, Index};
use rkyv::{Archive, Deserialize, Serialize};

use crate::command::CommandKind;

/// The last event that a reader has done with. The largest ordinal stands for the whole batch.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct EventPosition {
    pub index: Index,
    pub ordinal: u32,
}

impl EventPosition {
    /// Everything before the batch is done with, and nothing of it.
    pub fn before(index: Index) -> EventPosition {
        EventPosition { index: Index(index.0.saturating_sub(1)), ordinal: u32::MAX }
    }
}

/// What a cursor gives to its readers. The fields may grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct EventCursorSettings {
    /// `Topic` or `Topic:key`; all, where there are none.
    pub topics: Vec<String>,
    /// `*` for all.
    pub namespace: String,
    /// An expression; may be empty.
    pub filter: String,
    /// Where it began, as it was asked for.
    pub from: String,
    /// The accessor of the token that may acknowledge besides operators; empty for none.
    pub reader: String,
    /// Above zero: it is deleted when it was not used for so long.
    pub ttl: Duration,
    /// Among how many readers it is split; zero when it is not. What is stored of others stays what it was.
    #[serde(skip_serializing_if = "is_zero")]
    pub members: u32,
}

fn is_zero(members: &u32) -> bool {
    *members == 0
}

/// The epoch that splitting a cursor came with.
pub const SPLIT_CURSOR_EPOCH: u16 = 4;

/// Creates a cursor, or changes what it gives.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SetEventCursor {
    pub name: String,
    /// An empty `from` is `now` for a new cursor, and leaves another as it is.
    pub settings: EventCursorSettings,
    /// Where a new one begins. `None`: with what comes next.
    pub start: Option<EventPosition>,
}

impl CommandKind {
    /// It changes cursors or sinks and nothing else: readers of the stream are not shown it, or each would wake itself for ever.
    pub const fn is_of_cursors(self) -> bool {
        matches!(
            self,
            CommandKind::SetEventCursor
                | CommandKind::AckEventCursor
                | CommandKind::AckEventCursorMember
                | CommandKind::SplitEventCursor
                | CommandKind::ResetEventCursor
                | CommandKind::DeleteEventCursor
                | CommandKind::ExpireEventCursors
                | CommandKind::SetEventSink
                | CommandKind::DeleteEventSink
                | CommandKind::PauseEventSink
                | CommandKind::ResumeEventSink
                | CommandKind::SkipEventSink
                | CommandKind::ParkEventSink
        )
    }
}
