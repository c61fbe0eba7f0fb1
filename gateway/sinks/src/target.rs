//! Where events go, and what becomes of them there.

use std::path::Path;
use std::time::Duration;

use base::Time;
use bytes::Bytes;
use delivery::AddressRules;
use keyring::Items;
use model::{EventPosition, EventSinkSettings, EventSinkTarget};

use crate::file::File;
#[cfg(feature = "kafka")]
use crate::kafka::Kafka;
use crate::nats::Nats;
use crate::otlp::Otlp;
use crate::syslog::Syslog;
use crate::webhook::Webhook;

/// Events that a target takes together, at most.
const TOGETHER: usize = 256;

/// An event on its way, which has the same id and bytes whenever and by whomever it is sent.
#[derive(Clone, Default)]
pub(crate) struct Outgoing {
    pub at: EventPosition,
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

    /// How many events may be sent together. Most take one after the other: what follows one that fails must not be there
    /// before it.
    pub(crate) fn together_max(&self) -> usize {
        match self {
            Target::Otlp(otlp) if otlp.takes_many() => TOGETHER,
            #[cfg(feature = "kafka")]
            Target::Kafka(_) => TOGETHER,
            Target::Webhook(_) | Target::Nats(_) | Target::File(_) | Target::Syslog(_) | Target::Otlp(_) => 1,
        }
    }

    /// Sends as many events as may be sent together, waits until the target has them, and takes out those that it has.
    /// Dropped half-way, others may have arrived.
    ///
    /// # Errors
    /// [`Undelivered`]: why the first of those that are left has not arrived.
    pub(crate) async fn deliver(
        &mut self,
        waiting: &mut Vec<Outgoing>,
        secret: &Items,
    ) -> Result<(), Undelivered> {
        match self {
            #[cfg(feature = "kafka")]
            Target::Kafka(kafka) => return kafka.deliver(waiting, secret).await,
            Target::Otlp(otlp) => otlp.deliver(waiting, secret).await?,
            Target::Webhook(webhook) => webhook.deliver(only(waiting), secret).await?,
            Target::Nats(nats) => nats.deliver(only(waiting), secret).await?,
            // A file that is put aside is synced first, which takes as long as its disk.
            Target::File(file) => tokio::task::block_in_place(|| file.deliver(only(waiting)))?,
            Target::Syslog(syslog) => syslog.deliver(only(waiting), secret).await?,
        }
        waiting.clear();
        Ok(())
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

/// Of what goes out one after the other.
pub(crate) fn only(waiting: &[Outgoing]) -> &Outgoing {
    let [event] = waiting else { unreachable!("it takes one after the other") };
    event
}
