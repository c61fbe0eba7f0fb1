//! Versions of events that are no longer written, and how each becomes the one after it.
//!
//! Empty: every kind is in its first version. When a payload has to change, its old type moves here unchanged,
//! under its (kind, version), with one pure function to the next version; the table in `model::event` names
//! the new version; the golden file of the old one stays and must go on reading.

use model::Event;

use crate::frame::FrameError;

pub(crate) fn decode(kind: u16, version: u16, _payload: &[u8]) -> Result<Event, FrameError> {
    Err(FrameError::UnknownEvent { kind, version })
}
