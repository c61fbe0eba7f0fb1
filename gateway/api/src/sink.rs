//! Sinks of the event stream. Ours alone.

use model::document::shape::duration_or_empty;
use model::document::{Duration, List, Timestamp};
use serde::{Deserialize, Serialize};

use crate::cursor::as_text;

/// The body of `PUT /v1/event/sink/:name`. Zero and empty mean the default; what is not of its kind is refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "PascalCase")]
pub struct EventSinkRequest {
    /// `webhook`, `nats`, `kafka`, `file`, `syslog` or `otlp`.
    pub kind: String,
    /// Of a webhook, or of a collector of OpenTelemetry.
    #[serde(rename = "URL")]
    pub url: String,
    /// Of a collector: `logs` or `traces`; `logs` unless given.
    pub signal: String,
    /// `HOST:PORT` of a NATS or syslog server; of brokers of Kafka, one or several with commas.
    pub address: String,
    /// Of the messages in NATS; of Kafka the topic.
    pub subject: String,
    /// NATS: nothing is sent without TLS. Where it is not set, what the server asks for. Kafka: whether brokers speak TLS.
    #[serde(rename = "TLS")]
    pub tls: bool,
    /// Of syslog: `udp`, `tcp` or `tls`; `tcp` unless given.
    pub transport: String,
    /// Of syslog: `local0` unless given.
    pub facility: String,
    /// Of syslog: `sojourn` unless given.
    pub app_name: String,
    /// A file that would be longer is put aside; 64 MiB unless given.
    pub max_bytes: u64,
    /// Files that are kept, the one being written included; 4 unless given.
    pub max_files: u32,
    /// The path of the variable whose items authorise and sign.
    pub secret_variable: String,
    /// Its namespace; `default` unless given.
    pub secret_namespace: String,
    /// After so many failures of one event nothing is sent until somebody says so; 10 unless given.
    pub max_attempts: u32,
    /// How long one attempt may take; 30 s unless given.
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub timeout: Duration,
    /// Where a new sink begins: as `from` of the stream. Empty: `now`, and what there is stays where it is.
    pub from: String,
    /// `Topic` or `Topic:key`; everything without one.
    pub topics: List<String>,
    /// `default` unless given; `*` for all.
    pub namespace: String,
    pub filter: String,
}

/// The answer of `GET /v1/event/sink/:name`, and an entry of `GET /v1/event/sinks`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventSink {
    pub name: String,
    pub kind: String,
    #[serde(rename = "URL")]
    pub url: String,
    pub signal: String,
    pub address: String,
    pub subject: String,
    #[serde(rename = "TLS")]
    pub tls: bool,
    pub transport: String,
    pub facility: String,
    pub app_name: String,
    pub max_bytes: u64,
    pub max_files: u32,
    pub secret_variable: String,
    pub secret_namespace: String,
    pub max_attempts: u32,
    #[serde(deserialize_with = "duration_or_empty", serialize_with = "as_text")]
    pub timeout: Duration,
    pub from: String,
    pub topics: List<String>,
    pub namespace: String,
    pub filter: String,
    /// `running`, `paused` or `parked`.
    pub status: String,
    /// The event that did not get through, of a parked sink.
    pub parked_event: String,
    pub parked_attempts: u32,
    pub parked_reason: String,
    pub parked_at: Option<Timestamp>,
    /// The cursor that keeps where it is.
    pub cursor: String,
    /// The id of the last event that is known to have arrived; an index stands for all of its events.
    pub position: String,
    /// As of cursors.
    pub lag_batches: u64,
    pub lag_seconds: u64,
    pub acked_at: Option<Timestamp>,
    /// The server that answers leads, and sends: what follows is known to it alone, and counts since it leads.
    pub reported: bool,
    pub sent: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Attempts that failed for the event that it tries to send.
    pub failed_attempts: u32,
    /// When that is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// The last attempt that failed, even if it went better after that.
    pub last_failure_event: String,
    pub last_failure_reason: String,
    pub last_failure_at: Option<Timestamp>,
    pub create_index: u64,
    pub modify_index: u64,
}
