//! Has it written in the log when this server has dropped the oldest part of its history.

use std::sync::Arc;
use std::time::Duration;

use base::Index;
use control::Control;
use journal::Journal;
use model::event::{Event, HistoryDropped};
use model::{Actor, Command, Request};
use raft::RaftJournal;
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Goes on for as long as the server runs. What a crash leaves unsaid is said after the next start. While an archive cannot be read that
/// is wanted, nobody knows how far back the server reaches, and nothing is said.
pub(crate) async fn keep(control: Control, journal: Arc<RaftJournal>, server: String, with_archive: bool) {
    loop {
        sleep(LOOK_EVERY).await;
        let oldest = journal.horizon();
        let state = control.state();
        let known = state.dropped_history.get(&server).map_or(Index(1), |said| said.oldest);
        if oldest == known || state.cluster.is_nil() || (with_archive && !reads_archive(&journal)) {
            continue;
        }
        let reader = journal.clone();
        let first = tokio::task::spawn_blocking(move || reader.read(oldest, 1)).await;
        // Dropped as well meanwhile, or not there yet: the next look finds another one.
        let Ok(Ok(batches)) = first else { continue };
        let Some(time) = batches.first().map(|batch| batch.time()) else { continue };
        let dropped = HistoryDropped { server: server.clone(), oldest, time };
        if state.epoch() < Event::from(dropped).since() {
            continue;
        }
        let command = Command::NoteDroppedHistory { server: server.clone(), oldest, time };
        let request = Request::unnamed(Actor::Server("retention".to_string()), command);
        if let Err(error) = control.submit(request).await {
            tracing::debug!(%error, %oldest, "that history was dropped is said later");
        }
    }
}

fn reads_archive(journal: &RaftJournal) -> bool {
    journal.history().archive.is_some_and(|archive| archive.damaged.is_empty())
}
