//! Samples of events about sinks of the stream.

use base::{Duration, Index};
use model::event::*;
use model::*;

pub fn samples(name: &str) -> Vec<Event> {
    let (smallest, full) = (String::new, || "billing-ż".to_string());
    match name {
        "EventSinkSet" => {
            let settings = EventSinkSettings {
                target: EventSinkTarget::Webhook { url: "https://example.com/events".into() },
                secret: Some(VariableKey::new("default", "sinks/billing")),
                attempts_max: 10,
                timeout: Duration::from_secs(30),
            };
            vec![
                EventSinkSet { name: smallest(), settings: Doc::default() }.into(),
                EventSinkSet { name: full(), settings: Doc::of(&settings) }.into(),
            ]
        }
        "EventSinkDeleted" => {
            vec![EventSinkDeleted { name: smallest() }.into(), EventSinkDeleted { name: full() }.into()]
        }
        "EventSinkPaused" => {
            vec![EventSinkPaused { name: smallest() }.into(), EventSinkPaused { name: full() }.into()]
        }
        "EventSinkResumed" => {
            vec![EventSinkResumed { name: smallest() }.into(), EventSinkResumed { name: full() }.into()]
        }
        "EventSinkParked" => {
            let event = EventPosition { index: Index(1 << 40), ordinal: 3 };
            let empty = EventPosition::default();
            let none = String::new();
            vec![
                EventSinkParked { name: smallest(), event: empty, attempts: 0, reason: none }.into(),
                EventSinkParked { name: full(), event, attempts: 10, reason: "answered 500".into() }.into(),
            ]
        }
        other => crate::samples_erasure::samples(other),
    }
}
