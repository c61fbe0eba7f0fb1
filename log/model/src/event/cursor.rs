//! What happened to cursors of the event stream.

use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::cursor::EventPosition;

/// There is such a cursor from here on, or it gives something else than before.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorSet {
    pub name: String,
    /// `EventCursorSettings`.
    pub settings: Doc,
    pub position: EventPosition,
}

/// A reader has done with everything up to there.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorAcked {
    pub name: String,
    pub position: EventPosition,
}

/// Somebody put it elsewhere, maybe back.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorReset {
    pub name: String,
    pub position: EventPosition,
}

/// One of the readers that it is split among has done with everything of its own up to there.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorMemberAcked {
    pub name: String,
    pub member: u32,
    pub position: EventPosition,
}

/// It is split among so many readers from here on, who all begin there; among none when that is zero.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorSplit {
    pub name: String,
    pub members: u32,
    pub position: EventPosition,
}

/// It is gone: somebody deleted it, or nobody had used it for too long.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventCursorDeleted {
    pub name: String,
}
