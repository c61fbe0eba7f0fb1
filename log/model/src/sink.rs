//! Sinks: where the leader sends the event stream by itself.

use base::Duration;

use crate::cursor::{EventCursorSettings, EventPosition};
use crate::variable::VariableKey;

/// The first epoch whose servers know Kafka.
pub const KAFKA_SINK_EPOCH: u16 = 4;
/// The first epoch whose servers know that a collector may be sent something else than logs.
pub const OTLP_TRACES_EPOCH: u16 = 4;

/// What comes before the name of a sink in that of its cursor.
const CURSOR_PREFIX: &str = "sink.";

/// The cursor that keeps how far a sink has come.
pub fn cursor_of_sink(sink: &str) -> String {
    format!("{CURSOR_PREFIX}{sink}")
}

/// The sink that a cursor would belong to.
pub fn sink_of_cursor(cursor: &str) -> Option<&str> {
    cursor.strip_prefix(CURSOR_PREFIX)
}

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "TargetDocument", into = "TargetDocument")]
pub enum EventSinkTarget {
    /// A request of HTTP for each event.
    Webhook { url: String },
    /// A message of NATS JetStream for each event. With `tls`, over nothing else.
    Nats { address: String, subject: String, tls: bool },
    /// A line for each event, in a file of the leader's data directory.
    File { max_bytes: u64, max_files: u32 },
    /// A message of RFC 5424 for each event.
    Syslog { address: String, transport: SyslogTransport, facility: u8, app_name: String },
    /// A log record of OpenTelemetry for each event, or the spans that it ended, over HTTP.
    Otlp { url: String, signal: OtlpSignal },
    /// A record of Kafka for each event; `address` has one broker or several, separated by commas.
    Kafka { address: String, topic: String, tls: bool },
}

/// How messages of syslog get there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SyslogTransport {
    /// A datagram for each.
    Udp,
    /// Each behind its length.
    #[default]
    Tcp,
    /// The same, encrypted.
    Tls,
}

/// What a collector of OpenTelemetry is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum OtlpSignal {
    #[default]
    Logs,
    Traces,
}

/// A target in documents, which have no variants that hold something.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
enum TargetKind {
    Webhook,
    Nats,
    #[default]
    File,
    Syslog,
    Otlp,
    Kafka,
}

/// Only the fields of its kind are set. The fields may grow: what came later stands there only where it says something, so that
/// what is logged of the others stays what it was.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct TargetDocument {
    kind: TargetKind,
    url: String,
    address: String,
    /// Of Kafka the topic.
    subject: String,
    max_bytes: u64,
    max_files: u32,
    #[serde(skip_serializing_if = "is_default")]
    tls: bool,
    #[serde(skip_serializing_if = "is_default")]
    transport: SyslogTransport,
    #[serde(skip_serializing_if = "is_default")]
    facility: u8,
    #[serde(skip_serializing_if = "is_default")]
    app_name: String,
    #[serde(skip_serializing_if = "is_default")]
    signal: OtlpSignal,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<EventSinkTarget> for TargetDocument {
    fn from(target: EventSinkTarget) -> TargetDocument {
        let empty = TargetDocument::default();
        match target {
            EventSinkTarget::Webhook { url } => TargetDocument { kind: TargetKind::Webhook, url, ..empty },
            EventSinkTarget::Nats { address, subject, tls } => {
                TargetDocument { kind: TargetKind::Nats, address, subject, tls, ..empty }
            }
            EventSinkTarget::File { max_bytes, max_files } => {
                TargetDocument { kind: TargetKind::File, max_bytes, max_files, ..empty }
            }
            EventSinkTarget::Syslog { address, transport, facility, app_name } => {
                let kind = TargetKind::Syslog;
                TargetDocument { kind, address, transport, facility, app_name, ..empty }
            }
            EventSinkTarget::Otlp { url, signal } => {
                TargetDocument { kind: TargetKind::Otlp, url, signal, ..empty }
            }
            EventSinkTarget::Kafka { address, topic, tls } => {
                TargetDocument { kind: TargetKind::Kafka, address, subject: topic, tls, ..empty }
            }
        }
    }
}

impl From<TargetDocument> for EventSinkTarget {
    fn from(document: TargetDocument) -> EventSinkTarget {
        let TargetDocument { kind, url, address, subject, max_bytes, max_files, tls, .. } = document;
        let TargetDocument { transport, facility, app_name, signal, .. } = document;
        match kind {
            TargetKind::Webhook => EventSinkTarget::Webhook { url },
            TargetKind::Nats => EventSinkTarget::Nats { address, subject, tls },
            TargetKind::File => EventSinkTarget::File { max_bytes, max_files },
            TargetKind::Syslog => EventSinkTarget::Syslog { address, transport, facility, app_name },
            TargetKind::Otlp => EventSinkTarget::Otlp { url, signal },
            TargetKind::Kafka => EventSinkTarget::Kafka { address, topic: subject, tls },
        }
    }
}

/// How a sink works. The fields may grow.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EventSinkSettings {
    pub target: EventSinkTarget,
    /// The variable whose items authorise and sign; read when something is sent, so that no secret is in the log.
    pub secret: Option<VariableKey>,
    /// An event that failed so often is not tried again until somebody says so.
    pub attempts_max: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
}

/// Makes a sink with its cursor, or changes them.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SetEventSink {
    pub name: String,
    pub settings: EventSinkSettings,
    /// What it is sent. An empty `from` is `now` for a new one, and leaves another as it is.
    pub events: EventCursorSettings,
    /// Where a new one begins. `None`: with what comes next.
    pub start: Option<EventPosition>,
}

/// The leader gave up on an event.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ParkEventSink {
    pub name: String,
    /// The event that does not get through.
    pub event: EventPosition,
    pub attempts: u32,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Doc;

    /// What is in logs of the release before has no such field, and what is logged of a sink of logs still has none.
    #[test]
    fn what_a_collector_is_sent_stands_there_only_where_it_is_not_logs() {
        let of = |signal| EventSinkTarget::Otlp { url: "https://collector/v1/logs".into(), signal };
        let names_it = |doc: &Doc| doc.0.windows(6).any(|word| word == b"signal");
        let (logs, traces) = (Doc::of(&of(OtlpSignal::Logs)), Doc::of(&of(OtlpSignal::Traces)));
        assert!(!names_it(&logs) && names_it(&traces));
        assert_eq!(logs.read::<EventSinkTarget>(), of(OtlpSignal::Logs));
        assert_eq!(traces.read::<EventSinkTarget>(), of(OtlpSignal::Traces));
    }
}
