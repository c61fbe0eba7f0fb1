//! What happened to sinks of the event stream. How far they have come is said of their cursors.

use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::cursor::EventPosition;

/// There is such a sink from here on, or it works otherwise than before.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventSinkSet {
    pub name: String,
    /// `EventSinkSettings`.
    pub settings: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventSinkDeleted {
    pub name: String,
}

/// Somebody stopped it.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventSinkPaused {
    pub name: String,
}

/// An event does not get through: nothing is sent until somebody says so.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventSinkParked {
    pub name: String,
    pub event: EventPosition,
    pub attempts: u32,
    pub reason: String,
}

/// It sends again, from where its cursor is.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EventSinkResumed {
    pub name: String,
}
