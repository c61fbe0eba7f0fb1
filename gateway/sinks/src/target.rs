//! Where events go, and what becomes of them there.

use std::path::Path;

use bytes::Bytes;
use keyring::Items;
use model::{EventSinkSettings, EventSinkTarget};

use crate::file::File;
use crate::nats::Nats;
use crate::webhook::Webhook;

/// An event on its way, which has the same id and bytes whenever and by whomever it is sent.
pub(crate) struct Outgoing {
    /// `INDEX.ORDINAL@CLUSTER`.
    pub id: String,
    /// In the envelope of CloudEvents 1.0.
    pub body: Bytes,
}

/// Why an event did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// It may another time.
    Later(String),
    /// It never will.
    Rejected(String),
}

pub(crate) enum Target {
    Webhook(Webhook),
    Nats(Nats),
    File(File),
}

impl Target {
    /// # Errors
    /// It cannot be used here.
    pub(crate) fn open(name: &str, settings: &EventSinkSettings, directory: &Path) -> Result<Target, String> {
        Ok(match &settings.target {
            EventSinkTarget::Webhook { url } => Target::Webhook(Webhook::new(url)?),
            EventSinkTarget::Nats { address, subject } => Target::Nats(Nats::new(address, subject)),
            EventSinkTarget::File { max_bytes, max_files } => {
                Target::File(File::open(directory, name, *max_bytes, *max_files)?)
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
        }
    }

    /// What was delivered stays, whatever happens: called before it is acknowledged.
    ///
    /// # Errors
    /// It cannot be known.
    pub(crate) async fn flush(&mut self) -> Result<(), String> {
        match self {
            Target::Webhook(_) | Target::Nats(_) => Ok(()),
            Target::File(file) => file.flush().await,
        }
    }

    /// What an attempt that took too long has left behind is not used again.
    pub(crate) fn give_up(&mut self) {
        if let Target::Nats(nats) = self {
            nats.disconnect();
        }
    }
}
