//! Versions of events that are no longer written, and how each becomes the one after it.
//!
//! When a payload has to change, its old type moves here unchanged, under its (kind, version), with one pure function
//! to the next version; the table in `model::event` names the new version; the golden file of the old one stays and must
//! go on reading.

use model::event::{EvalOutcome, EvalUpdated};
use model::{Doc, EvalId, EvalStatus, Event};
use rkyv::rancor;
use rkyv::{Archive, Deserialize, Serialize};

use crate::frame::FrameError;
use crate::registry::aligned;

pub(crate) fn decode(kind: u16, version: u16, payload: &[u8]) -> Result<Event, FrameError> {
    match (kind, version) {
        (31, 1) => aligned(payload, rkyv::from_bytes::<EvalUpdatedV1, rancor::Error>)
            .map(|event| Event::EvalUpdated(event.into()))
            .map_err(|why| FrameError::Payload { kind, version, why: why.to_string() }),
        _ => Err(FrameError::UnknownEvent { kind, version }),
    }
}

#[derive(Archive, Serialize, Deserialize)]
struct EvalUpdatedV1 {
    eval: EvalId,
    status: EvalStatus,
    description: String,
    outcome: EvalOutcome,
}

/// It did not say what was to become of the groups.
impl From<EvalUpdatedV1> for EvalUpdated {
    fn from(EvalUpdatedV1 { eval, status, description, outcome }: EvalUpdatedV1) -> EvalUpdated {
        EvalUpdated { eval, status, description, outcome, desired: Doc::default() }
    }
}
