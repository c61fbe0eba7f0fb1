//! Sinks of the event stream: which there may be, and when they send. Each has a cursor, made and deleted with it.

use base::Duration;
use model::event::{
    EventCursorAcked, EventSinkDeleted, EventSinkParked, EventSinkPaused, EventSinkResumed, EventSinkSet,
};
use model::{
    Doc, Event, EventSinkSettings, EventSinkTarget, KAFKA_SINK_EPOCH, OTLP_TRACES_EPOCH, OtlpSignal,
    ParkEventSink, Rejection, SetEventCursor, SetEventSink, cursor_of_sink,
};
use state::State;
use state::sink::{Sink, Status};

use crate::cursor;
use crate::decision::{Context, Decision};

/// Most sinks of a cluster: each is a task of the leader, and has a cursor.
pub const SINKS_MAX: usize = 32;
/// Longest name of a sink in bytes: that of its cursor has a prefix.
const NAME_MAX: usize = 64;
/// Longest address and longest subject, in bytes.
const ADDRESS_MAX: usize = 2048;
/// Longest `APP-NAME` of RFC 5424, and how many facilities it has.
const APP_NAME_MAX: usize = 48;
const FACILITIES: u8 = 24;
/// Longest name of a topic of Kafka.
const TOPIC_MAX: usize = 249;
/// Most attempts for one event: with the longest pause between them that is more than an hour and a half.
const ATTEMPTS_MAX: u32 = 100;
const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const TIMEOUT_MAX: Duration = Duration::from_secs(120);
/// Of one file, and how many of them.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 4096..=(16 << 30);
const FILES: std::ops::RangeInclusive<u32> = 1..=100;
/// Longest reason that is kept, in bytes; what is longer is cut.
const REASON_MAX: usize = 512;

/// Makes a sink with its cursor, or changes them; where it is and whether it sends stays as it is then.
///
/// # Errors
/// [`Rejection::EventSinkInvalid`] with the field; [`Rejection::EventSinkRefused`] when there are as many as there may be; as for
/// cursors.
pub(crate) fn set(state: &State, ctx: &Context, wanted: &SetEventSink) -> Result<Decision, Rejection> {
    let SetEventSink { name, settings, events, start } = wanted;
    check(name, settings)?;
    let needed = match settings.target {
        EventSinkTarget::Kafka { .. } => KAFKA_SINK_EPOCH,
        EventSinkTarget::Otlp { signal: OtlpSignal::Traces, .. } => OTLP_TRACES_EPOCH,
        _ => 0,
    };
    if state.epoch() < needed {
        return Err(Rejection::EpochTooLow { needed, epoch: state.epoch() });
    }
    let before = state.sinks.get(name);
    if before.is_none() && state.sinks.len() >= SINKS_MAX {
        let why = format!("there are {SINKS_MAX} event sinks, and no more are kept: delete one first");
        return Err(Rejection::EventSinkRefused(why));
    }
    let cursor = SetEventCursor { name: cursor_of_sink(name), settings: events.clone(), start: *start };
    let mut decision = cursor::place_or_change(state, ctx, &cursor)?;
    if before.is_none_or(|before| before.settings != *settings) {
        decision.events.push(EventSinkSet { name: name.clone(), settings: Doc::of(settings) }.into());
    }
    Ok(decision)
}

/// # Errors
/// [`Rejection::EventSinkUnknown`].
pub(crate) fn delete(state: &State, name: &str) -> Result<Decision, Rejection> {
    known(state, name)?;
    let mut decision = cursor::removed(state, &cursor_of_sink(name));
    decision.events.push(EventSinkDeleted { name: name.to_string() }.into());
    Ok(decision)
}

/// # Errors
/// As [`delete`].
pub(crate) fn pause(state: &State, name: &str) -> Result<Decision, Rejection> {
    Ok(match known(state, name)?.status {
        Status::Paused => Decision::nothing(),
        Status::Running | Status::Parked(_) => EventSinkPaused { name: name.to_string() }.into(),
    })
}

/// # Errors
/// As [`delete`].
pub(crate) fn resume(state: &State, name: &str) -> Result<Decision, Rejection> {
    Ok(match known(state, name)?.status {
        Status::Running => Decision::nothing(),
        Status::Paused | Status::Parked(_) => EventSinkResumed { name: name.to_string() }.into(),
    })
}

/// # Errors
/// [`Rejection::EventSinkRefused`] for one that is not parked: nobody would know which event is given up.
pub(crate) fn skip(state: &State, name: &str) -> Result<Decision, Rejection> {
    let Status::Parked(parked) = &known(state, name)?.status else {
        let why = format!("event sink {name:?} is not parked: there is no event to skip");
        return Err(Rejection::EventSinkRefused(why));
    };
    let mut events: Vec<Event> = Vec::new();
    let cursor = cursor_of_sink(name);
    // Somebody may have put its cursor behind that event meanwhile.
    if state.cursors.get(&cursor).is_some_and(|known| known.position < parked.event) {
        events.push(EventCursorAcked { name: cursor, position: parked.event }.into());
    }
    events.push(EventSinkResumed { name: name.to_string() }.into());
    Ok(Decision::of(events))
}

/// Whoever stopped or changed it meanwhile knows better than the leader's task.
///
/// # Errors
/// As [`delete`].
pub(crate) fn park(state: &State, wanted: &ParkEventSink) -> Result<Decision, Rejection> {
    let ParkEventSink { name, event, attempts, reason } = wanted;
    if known(state, name)?.status != Status::Running {
        return Ok(Decision::nothing());
    }
    let end = (0..=REASON_MAX.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    let reason = reason[..end.unwrap_or_default()].to_string();
    Ok(EventSinkParked { name: name.clone(), event: *event, attempts: *attempts, reason }.into())
}

fn known<'a>(state: &'a State, name: &str) -> Result<&'a Sink, Rejection> {
    state.sinks.get(name).ok_or_else(|| Rejection::EventSinkUnknown(name.to_string()))
}

fn check(name: &str, settings: &EventSinkSettings) -> Result<(), Rejection> {
    let EventSinkSettings { target, secret, attempts_max, timeout } = settings;
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !(1..=NAME_MAX).contains(&name.len()) || !name.chars().all(is_fit) {
        return invalid("Name", "1 to 64 letters, digits, dashes and underscores");
    }
    check_target(target)?;
    if secret.as_ref().is_some_and(|secret| secret.path.is_empty()) {
        return invalid("SecretVariable", "the path of a variable");
    }
    if !(1..=ATTEMPTS_MAX).contains(attempts_max) {
        return invalid("MaxAttempts", "1 to 100");
    }
    if *timeout < TIMEOUT_MIN || *timeout > TIMEOUT_MAX {
        return invalid("Timeout", "100ms to 2m");
    }
    Ok(())
}

fn check_target(target: &EventSinkTarget) -> Result<(), Rejection> {
    match target {
        EventSinkTarget::Webhook { url } | EventSinkTarget::Otlp { url, .. } => {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            if url.len() > ADDRESS_MAX || rest.is_none_or(|rest| !is_word(rest)) {
                return invalid("URL", "http:// or https:// with a host, at most 2048 bytes");
            }
            // It would be in the log, and shown to whoever may read sinks.
            let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
            if authority.is_some_and(|authority| authority.contains('@')) {
                return invalid("URL", "no user and password: put them in the variable, as authorization");
            }
        }
        EventSinkTarget::Nats { address, subject, .. } => {
            check_address(address)?;
            let is_subject = |subject: &str| {
                is_word(subject)
                    && subject.split('.').all(|part| !part.is_empty() && part != "*" && part != ">")
            };
            if subject.len() > ADDRESS_MAX || !is_subject(subject) {
                return invalid("Subject", "a subject of NATS without wildcards, like sojourn.events");
            }
        }
        EventSinkTarget::File { max_bytes, max_files } => {
            if !FILE_BYTES.contains(max_bytes) {
                return invalid("MaxBytes", "4096 to 17179869184");
            }
            if !FILES.contains(max_files) {
                return invalid("MaxFiles", "1 to 100");
            }
        }
        EventSinkTarget::Syslog { address, facility, app_name, .. } => {
            check_address(address)?;
            if *facility >= FACILITIES {
                return invalid("Facility", "a facility of RFC 5424, like local0");
            }
            let is_word = app_name.chars().all(|c| c.is_ascii_graphic());
            if !(1..=APP_NAME_MAX).contains(&app_name.len()) || !is_word {
                return invalid("AppName", "1 to 48 characters of ASCII without spaces");
            }
        }
        EventSinkTarget::Kafka { address, topic, .. } => {
            if address.len() > ADDRESS_MAX {
                return invalid("Address", "at most 2048 bytes");
            }
            address
                .split(',')
                .try_for_each(|one| check_address_as(one, "HOST:PORT, or several with commas"))?;
            let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            let is_path = matches!(topic.as_str(), "." | "..");
            if !(1..=TOPIC_MAX).contains(&topic.len()) || !topic.chars().all(is_fit) || is_path {
                let expected = "a topic of Kafka: 1 to 249 letters, digits, dots, dashes and underscores";
                return invalid("Subject", expected);
            }
        }
    }
    Ok(())
}

fn check_address(address: &str) -> Result<(), Rejection> {
    check_address_as(address, "HOST:PORT")
}

fn check_address_as(address: &str, expected: &'static str) -> Result<(), Rejection> {
    let port = address.rsplit_once(':').filter(|(host, _)| is_word(host) && !host.contains('/'));
    if address.len() > ADDRESS_MAX || port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        return invalid("Address", expected);
    }
    Ok(())
}

/// Something, without what would end a line or a word.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control())
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::EventSinkInvalid { field: field.into(), expected: expected.into() })
}
