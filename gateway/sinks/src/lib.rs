//! Sinks of the event stream: the leader sends events to webhooks, NATS JetStream, Kafka, files, syslog and OpenTelemetry by
//! itself.
//!
//! Each sink that runs is one task, which reads the feed from where the sink's cursor is, sends event after event, and
//! acknowledges what has arrived ([`mod@sender`]). What a task remembers is the state's: a new leader goes on where the last
//! acknowledgement was, so that what is repeated has the same ids. Targets know nothing of that: they take one event
//! ([`target`]). Nothing here decides anything, and no secret leaves it but on its way to the target.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::iter_over_hash_type))]

mod figures;
mod file;
mod http;
#[cfg(feature = "kafka")]
mod kafka;
mod nats;
mod otlp;
mod sender;
mod syslog;
mod target;
mod traces;
mod trust;
mod webhook;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::Index;
use control::{Control, Subject};
use delivery::AddressRules;
use feed::Feed;
use history::History;
use keyring::Signer;
use model::{EventCursorSettings, EventSinkSettings, cursor_of_sink};
use state::State;
use state::cursor::Cursor;
use state::sink::Status;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use figures::Figures;
use sender::Sender;

/// How often tasks are looked at, besides whenever sinks, cursors or the leader changed: one that ended is begun again after so
/// long.
const POLL: Duration = Duration::from_secs(2);

/// What tasks of sinks work with.
#[derive(Clone)]
pub struct Sinks {
    pub control: Control,
    pub events: Feed,
    /// What spans are derived of.
    pub history: Arc<History>,
    /// Opens variables.
    pub signer: Arc<Signer>,
    /// Where sinks that are files write.
    pub directory: PathBuf,
    /// Which addresses may be sent to.
    pub addresses: AddressRules,
    /// How it goes.
    pub figures: Figures,
}

/// The task of a sink, with what it was begun for. It ends with this.
struct Task {
    settings: EventSinkSettings,
    events: EventCursorSettings,
    /// When somebody had last put its cursor elsewhere.
    moved: Option<Index>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Sinks {
    /// Goes on for as long as the server runs: while it leads, each sink that runs has its task.
    pub async fn keep(self) {
        let mut tasks: BTreeMap<String, Task> = BTreeMap::new();
        let mut news = self.control.changes_of(Subject::Sinks);
        let mut leadership = self.control.leadership();
        loop {
            let state = self.control.state();
            let leads = self.control.leads();
            tasks.retain(|name, task| leads && task.is_due(&state, name));
            if leads {
                self.begin(&state, &mut tasks);
            }
            self.figures.reports.keep(|name| leads && state.sinks.get(name).is_some());
            tokio::select! {
                () = news.changed() => {}
                changed = leadership.changed() => if changed.is_err() { return },
                () = sleep(POLL) => {}
            }
        }
    }

    fn begin(&self, state: &State, tasks: &mut BTreeMap<String, Task>) {
        for (name, sink) in state.sinks.iter().filter(|(_, sink)| sink.status == Status::Running) {
            let Some(cursor) = state.cursors.get(&cursor_of_sink(name)) else { continue };
            if tasks.get(name).is_some_and(|task| !task.handle.is_finished()) {
                continue;
            }
            let (settings, events) = (sink.settings.clone(), cursor.settings.clone());
            self.figures.reports.begun(name);
            let sender = Sender::new(self.clone(), name, &settings, &events);
            let name = name.to_string();
            let handle = tokio::spawn({
                let name = name.clone();
                async move {
                    if let Err(why) = sender.run().await {
                        tracing::warn!(sink = name, %why, "a sink begins again");
                        // Not at once: what made it end may be there for a while.
                        sleep(POLL).await;
                    }
                }
            });
            let moved = moved(cursor);
            tasks.insert(name, Task { settings, events, moved, handle });
        }
    }
}

impl Task {
    /// What it was begun for is what is wanted still.
    fn is_due(&self, state: &State, name: &str) -> bool {
        let cursor = state.cursors.get(&cursor_of_sink(name));
        state
            .sinks
            .get(name)
            .is_some_and(|sink| sink.status == Status::Running && sink.settings == self.settings)
            && cursor.is_some_and(|cursor| {
                let stays = moved(cursor).is_none_or(|at| Some(at) == self.moved);
                stays && cursor.settings == self.events
            })
    }
}

/// The last change of the cursor, if that was no acknowledgement.
fn moved(cursor: &Cursor) -> Option<Index> {
    let acked = cursor.acknowledged.as_ref().map(|acknowledged| acknowledged.index);
    (acked != Some(cursor.modified)).then_some(cursor.modified)
}
