//! Samples of events about cursors of the stream.

use base::{Duration, Index};
use model::event::*;
use model::*;

pub fn samples(name: &str) -> Vec<Event> {
    let position = || EventPosition { index: Index(1 << 40), ordinal: u32::MAX };
    let (smallest, full) = (String::new, || "billing-ż.v2".to_string());
    match name {
        "EventCursorSet" => {
            let settings = EventCursorSettings {
                topics: vec!["Job".into(), "Allocation:5d16e7fe".into()],
                namespace: "*".into(),
                filter: "Actor != \"server:worker\"".into(),
                from: "-2h".into(),
                reader: "11111111-2222-3333-4444-555555555555".into(),
                ttl: Duration::from_secs(3600),
                members: 0,
            };
            let (position, settings) = (position(), Doc::of(&settings));
            let empty = EventPosition::default();
            vec![
                EventCursorSet { name: smallest(), settings: Doc::default(), position: empty }.into(),
                EventCursorSet { name: full(), settings, position }.into(),
            ]
        }
        "EventCursorAcked" => vec![
            EventCursorAcked { name: smallest(), position: EventPosition::default() }.into(),
            EventCursorAcked { name: full(), position: position() }.into(),
        ],
        "EventCursorReset" => vec![
            EventCursorReset { name: smallest(), position: EventPosition::default() }.into(),
            EventCursorReset { name: full(), position: position() }.into(),
        ],
        "EventCursorDeleted" => {
            vec![EventCursorDeleted { name: smallest() }.into(), EventCursorDeleted { name: full() }.into()]
        }
        "EventCursorMemberAcked" => {
            let empty = EventPosition::default();
            vec![
                EventCursorMemberAcked { name: smallest(), member: 0, position: empty }.into(),
                EventCursorMemberAcked { name: full(), member: 63, position: position() }.into(),
            ]
        }
        "EventCursorSplit" => {
            let empty = EventPosition::default();
            vec![
                EventCursorSplit { name: smallest(), members: 0, position: empty }.into(),
                EventCursorSplit { name: full(), members: 64, position: position() }.into(),
            ]
        }
        other => crate::samples_sinks::samples(other),
    }
}
