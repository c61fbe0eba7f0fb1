//! How much history this server has, and copies of it. Each server keeps its own.

use api::{HistoryArchive, HistoryDropped, HistoryFileVerified, HistoryKept, HistoryStorage, KeptHistory};
use axum::Router;
use axum::extract::State as With;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use base::{Duration, Index, Time};
use journal::store::{ArchiveStatus, HistoryFile, KeptSpan, KeptStatus, StoreError};
use model::document::List;
use model::event::ObjectKinds;
use state::DroppedHistory;

use crate::access::{Management, ReadOperator, Right};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::cluster_admin::{Entries, HistoryFiles};
use crate::error::Failure;
use crate::request::{Read, ReadNow};

/// The index with which to ask for the next file.
const NEXT: HeaderName = HeaderName::from_static("x-sojourn-next-index");

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/operator/history", get(status))
        .route("/v1/operator/history/verify", get(verify))
        .route("/v1/operator/history/export", get(export))
}

async fn status(With(server): With<AppState>, ReadNow(_): ReadNow<ReadOperator>) -> Answer {
    let (files, journal) = (server.history_files.clone(), server.control.journal().clone());
    let name = server.agent.name.clone();
    let dropped: Vec<HistoryDropped> = server.control.state().dropped_history.iter().map(dropped).collect();
    let status = tokio::task::spawn_blocking(move || {
        let status = files.status();
        let oldest = journal.read(status.oldest, 1).ok().and_then(|batches| batches.first().cloned());
        let age = status.retention.age.map_or(Duration::ZERO, Duration::from);
        HistoryStorage {
            server: name,
            oldest_index: status.oldest.0,
            oldest_time: oldest.map(|batch| batch.time().into()),
            newest_index: journal.committed().0,
            min_age: age.to_string(),
            max_bytes: status.retention.bytes,
            segments: status.segments,
            segment_bytes: status.segment_bytes,
            log_oldest_index: status.log_oldest.0,
            archive: status.archive.map(archive),
            kept: status.kept.map(kept),
            dropped: dropped.into(),
        }
    });
    Ok(answer::json(&status.await?))
}

fn dropped((server, said): (&String, &DroppedHistory)) -> HistoryDropped {
    HistoryDropped {
        server: server.clone(),
        oldest_index: said.oldest.0,
        oldest_time: Some(said.time.into()),
        index: said.noted.0,
    }
}

fn archive(status: ArchiveStatus) -> HistoryArchive {
    HistoryArchive {
        files: status.files,
        bytes: status.bytes,
        raw_bytes: status.raw_bytes,
        max_bytes: status.max_bytes,
        oldest_index: status.oldest.map_or(0, |index| index.0),
        apart_files: status.apart_files,
        apart_bytes: status.apart_bytes,
        damaged: status.damaged.into(),
        failed: status.failed.unwrap_or_default(),
    }
}

fn kept(status: KeptStatus) -> HistoryKept {
    HistoryKept {
        kinds: words(status.kinds),
        parts: status.spans.iter().map(kept_part).collect::<Vec<_>>().into(),
        files: status.files,
        bytes: status.bytes,
        raw_bytes: status.raw_bytes,
        max_bytes: status.max_bytes,
        damaged: status.damaged.into(),
        failed: status.failed.unwrap_or_default(),
    }
}

/// As the API shows it.
pub(crate) fn kept_part(span: &KeptSpan) -> KeptHistory {
    let time = |time: Time| (time != Time::ZERO).then(|| time.into());
    KeptHistory {
        first_index: span.first.0,
        last_index: span.last.0,
        first_time: time(span.first_time),
        last_time: time(span.last_time),
        kinds: words(span.kinds),
        facts: span.facts,
    }
}

fn words(kinds: ObjectKinds) -> List<String> {
    kinds.words().into_iter().map(str::to_string).collect::<Vec<_>>().into()
}

async fn verify(With(server): With<AppState>, ReadNow(read): ReadNow<ReadOperator>) -> Answer {
    let file = one_file(&server, &read, |files, of, from| files.verify(of, from)).await?;
    Ok(answer::json(&history_file(file)))
}

/// It holds what no policy grants: everything that ever was in the log.
async fn export(With(server): With<AppState>, ReadNow(read): ReadNow<Management>) -> Answer {
    let (file, bytes) = one_file(&server, &read, |files, of, from| files.export(of, from)).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (NEXT, HeaderValue::from(file.last.next().0)),
    ];
    Ok((headers, bytes).into_response())
}

/// Reads the file that `from` is in; with `kept` the first one of kept facts that does not end below it. Each takes memory for a segment, so one is read at a time.
async fn one_file<R: Right, T: Send + 'static>(
    server: &AppState,
    read: &Read<R>,
    work: impl FnOnce(&dyn HistoryFiles, Entries, Index) -> Result<Option<T>, StoreError> + Send + 'static,
) -> Result<T, Failure> {
    let expected = || Failure::invalid("from: expected an index, at least 1");
    let from = read.params.number("from")?.and_then(|from| u64::try_from(from).ok());
    let from = Index(from.filter(|from| *from > 0).ok_or_else(expected)?);
    let of = if read.params.boolean("kept")? { Entries::Kept } else { Entries::All };
    let permit = server.history_reads.clone().try_acquire_owned();
    let permit = permit.map_err(|_| {
        Failure::too_many("another file of history is being read: one is at a time, try again later")
    })?;
    let files = server.history_files.clone();
    let newest = server.control.journal().committed();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work(&*files, of, from)
    });
    done.await?.map_err(failure)?.ok_or_else(|| {
        Failure::not_found(match of {
            Entries::All => format!("index {from} is not committed here: the newest is {newest}"),
            Entries::Kept => format!("no facts are kept of index {from}, or of later ones"),
        })
    })
}

fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::Compacted { .. } => Failure::new(StatusCode::GONE, error.to_string()),
        error => Failure::internal(error.to_string()),
    }
}

/// A file of history as the API shows it.
pub fn history_file(file: HistoryFile) -> HistoryFileVerified {
    HistoryFileVerified {
        name: file.name,
        first_index: file.first.0,
        last_index: file.last.0,
        first_time: file.first_time.into(),
        last_time: file.last_time.into(),
        bytes: file.bytes,
        raw_bytes: file.raw_bytes,
        begins: file.begins,
        ends: file.ends,
    }
}
