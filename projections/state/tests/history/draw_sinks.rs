//! What happens to sinks of the event stream.

use base::{Duration, Index, Rng};
use model::event::*;
use model::{
    Doc, EventPosition, EventSinkSettings, EventSinkTarget, OtlpSignal, SyslogTransport, VariableKey,
};
use state::State;

/// Chance of their own, so that all else in a history stays as it was without sinks.
pub fn events_with(mut others: Vec<Event>, state: &State) -> Vec<Event> {
    others.extend(events(state, &mut Rng::new(state.index.0)));
    others
}

fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    let name = format!("sink-{}", rng.below(4));
    // What needs something to be there comes with it, so that a short history has all of it.
    let mut events = Vec::new();
    if state.sinks.get(&name).is_none() || rng.below(2) == 0 {
        events.push(EventSinkSet { name: name.clone(), settings: Doc::of(&settings(rng)) }.into());
    }
    events.push(match rng.below(2) {
        0 => EventSinkPaused { name: name.clone() }.into(),
        _ => {
            let event = EventPosition { index: Index(rng.below(state.index.0.max(1))), ordinal: 2 };
            let (attempts, reason) = (rng.below(9) as u32, "answered 500".to_string());
            EventSinkParked { name: name.clone(), event, attempts, reason }.into()
        }
    });
    if rng.below(2) == 0 {
        events.push(EventSinkResumed { name: name.clone() }.into());
    }
    if rng.below(3) == 0 {
        events.push(EventSinkDeleted { name }.into());
    }
    events
}

fn settings(rng: &mut Rng) -> EventSinkSettings {
    let target = match rng.below(6) {
        0 => EventSinkTarget::Webhook { url: "https://example.com/".into() },
        1 => {
            let (address, subject) = ("nats:4222".into(), "sojourn.events".into());
            EventSinkTarget::Nats { address, subject, tls: rng.below(2) == 0 }
        }
        2 => EventSinkTarget::Syslog {
            address: "logs:601".into(),
            transport: [SyslogTransport::Udp, SyslogTransport::Tcp, SyslogTransport::Tls]
                [rng.below(3) as usize],
            facility: rng.below(24) as u8,
            app_name: "sojourn".into(),
        },
        3 => {
            let signal = if rng.below(2) == 0 { OtlpSignal::Traces } else { OtlpSignal::Logs };
            EventSinkTarget::Otlp { url: "https://example.com/otlp".into(), signal }
        }
        4 => {
            let (address, topic) = ("kafka:9092".into(), "sojourn.events".into());
            EventSinkTarget::Kafka { address, topic, tls: rng.below(2) == 0 }
        }
        _ => EventSinkTarget::File { max_bytes: 1 << 20, max_files: 3 },
    };
    let secret = (rng.below(2) == 0).then(|| VariableKey::new("default", "sinks/a"));
    let timeout = Duration::from_secs(1 + rng.below(9) as i64);
    EventSinkSettings { target, secret, attempts_max: 1 + rng.below(9) as u32, timeout }
}
