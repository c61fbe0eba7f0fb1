//! Where events go, and what becomes of them there.

use std::path::Path;
use std::time::Duration;

use base::Time;
use bytes::Bytes;
use delivery::AddressRules;
use keyring::Items;
use model::{EventSinkSettings, EventSinkTarget};

use crate::file::File;
#[cfg(feature = "kafka")]
use crate::kafka::Kafka;
use crate::nats::Nats;
use crate::otlp::Otlp;
use crate::syslog::Syslog;
use crate::webhook::Webhook;

/// An event on its way, which has the same id and bytes whenever and by whomever it is sent.
#[derive(Clone, Default)]
pub(crate) struct Outgoing {
    /// `INDEX.ORDINAL@CLUSTER`.
    pub id: String,
    /// In the envelope of CloudEvents 1.0; of a sink of traces the request that brings its spans.
    pub body: Bytes,
    /// The servers' time, of its batch.
    pub time: Time,
    pub topic: &'static str,
    pub kind: &'static str,
}

/// Why an event did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// It may another time.
    Later(String),
    /// The same, and the target has said after how long.
    Busy(String, Duration),
    /// It never will.
    Rejected(String),
    /// The connection broke, and what was sent over it before may not have arrived either.
    Lost(String),
}

pub(crate) enum Target {
    Webhook(Webhook),
    Nats(Nats),
    File(File),
    Syslog(Syslog),
    Otlp(Otlp),
    #[cfg(feature = "kafka")]
    Kafka(Kafka),
}

impl Target {
    /// # Errors
    /// It cannot be used here.
    pub(crate) fn open(
        name: &str,
        settings: &EventSinkSettings,
        directory: &Path,
        rules: &AddressRules,
    ) -> Result<Target, String> {
        Ok(match &settings.target {
            EventSinkTarget::Webhook { url } => Target::Webhook(Webhook::new(url, rules)?),
            EventSinkTarget::Nats { address, subject, tls } => {
                Target::Nats(Nats::new(address, subject, *tls, rules))
            }
            EventSinkTarget::File { max_bytes, max_files } => {
                Target::File(File::open(directory, name, *max_bytes, *max_files)?)
            }
            EventSinkTarget::Syslog { address, transport, facility, app_name } => {
                Target::Syslog(Syslog::new(address, *transport, *facility, app_name, rules))
            }
            EventSinkTarget::Otlp { url, signal } => Target::Otlp(Otlp::new(url, *signal, rules)?),
            #[cfg(feature = "kafka")]
            EventSinkTarget::Kafka { address, topic, tls } => {
                Target::Kafka(Kafka::new(address, topic, *tls, settings.timeout.to_std(), rules))
            }
            #[cfg(not(feature = "kafka"))]
            EventSinkTarget::Kafka { .. } => {
                return Err("this program was built without kafka, the feature that sends to it".to_string());
            }
        })
    }

    /// Sends one event, and waits until the target has it. Dropped half-way, it may have arrived.
    ///
    /// # Errors
    /// [`Undelivered`].
    pub(crate) async fn deliver(&mut self, event: &Outgoing, secret: &Items) -> Result<(), Undelivered> {
        match self {
            Target::Webhook(webhook) => webhook.deliver(event, secret).await,
            Target::Nats(nats) => nats.deliver(event, secret).await,
            // A file that is put aside is synced first, which takes as long as its disk.
            Target::File(file) => tokio::task::block_in_place(|| file.deliver(event)),
            Target::Syslog(syslog) => syslog.deliver(event, secret).await,
            Target::Otlp(otlp) => otlp.deliver(event, secret).await,
            #[cfg(feature = "kafka")]
            Target::Kafka(kafka) => kafka.deliver(event, secret).await,
        }
    }

    /// What was delivered stays, whatever happens: called before it is acknowledged.
    ///
    /// # Errors
    /// It cannot be known, or is [`Undelivered::Lost`].
    pub(crate) async fn flush(&mut self) -> Result<(), Undelivered> {
        match self {
            Target::Webhook(_) | Target::Nats(_) | Target::Otlp(_) => Ok(()),
            #[cfg(feature = "kafka")]
            Target::Kafka(_) => Ok(()),
            Target::File(file) => file.flush().await.map_err(Undelivered::Later),
            Target::Syslog(syslog) => syslog.flush().await,
        }
    }

    /// What an attempt that took too long has left behind is not used again.
    pub(crate) fn give_up(&mut self) {
        match self {
            Target::Nats(nats) => nats.disconnect(),
            Target::Syslog(syslog) => syslog.disconnect(),
            #[cfg(feature = "kafka")]
            Target::Kafka(kafka) => kafka.disconnect(),
            Target::Webhook(_) | Target::File(_) | Target::Otlp(_) => {}
        }
    }
}
