//! The job table of the web interface.

use std::collections::BTreeSet;

use api::JobStatusesRequest;
use axum::Router;
use axum::extract::State as With;
use axum::routing::get;
use model::JobKey;
use state::State;
use state::job::JobState;

use super::jobs;
use crate::access::{ReadJob, Somewhere};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Changed;
use crate::request::{Json, Read, Reading};
use crate::view;

/// Jobs that one request may name.
const NAMED_MAX: usize = 1_000;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/jobs/statuses", get(list).post(named))
}

async fn list(With(server): With<AppState>, read: Read<ReadJob>) -> Answer {
    let with_children = read.params.boolean("include_children")?;
    answer(&server, read.into(), None, with_children).await
}

async fn named(
    With(server): With<AppState>,
    mut read: Read<Somewhere<ReadJob>>,
    Json(request): Json<JobStatusesRequest>,
) -> Answer {
    if request.jobs.is_empty() {
        return Err(Failure::invalid("no jobs in request"));
    }
    if request.jobs.len() > NAMED_MAX {
        return Err(Failure::invalid(format!("Jobs: expected at most {NAMED_MAX}")));
    }
    let with_children = request.include_children || read.params.boolean("include_children")?;
    let namespace = |name: &str| if name.is_empty() { "default".to_string() } else { name.to_string() };
    let keys = request.jobs.iter().map(|job| JobKey::new(&namespace(&job.namespace), &job.id));
    let keys: BTreeSet<JobKey> = keys.collect();
    if read.options.namespace == "default" {
        read.options.namespace = "*".to_string();
    }
    read.options.per_page = None;
    answer(&server, read.into(), Some(keys), with_children).await
}

async fn answer(
    server: &AppState,
    mut read: Reading,
    keys: Option<BTreeSet<JobKey>>,
    with_children: bool,
) -> Answer {
    // The newest come first, unless the order is reversed.
    read.options.reverse = !read.options.reverse;
    let watched = keys.clone();
    let index = move |state: &State| match &watched {
        None => jobs::index(state).max(state.tables.deployments),
        // Only what was asked about wakes who waits for it; a job that comes or goes changes its table.
        Some(keys) if keys.iter().all(|key| state.jobs.find(key).is_some()) => {
            let known = keys.iter().filter_map(|key| state.jobs.lookup(key));
            known.map(|job| view::statuses::changed(state, job)).max().unwrap_or_default()
        }
        Some(_) => state.tables.jobs.max(state.tables.allocs),
    };
    let view = move |state: &State, read: &Reading| {
        let shown = |job: &&JobState| {
            read.shows(&job.key.namespace)
                && (with_children || job.parent().is_none())
                && job.key.id.starts_with(&read.options.prefix)
        };
        let all: Vec<&JobState> = match &keys {
            None => state.jobs.iter().map(|(_, job)| job).filter(shown).collect(),
            Some(keys) => keys.iter().filter_map(|key| state.jobs.lookup(key)).filter(shown).collect(),
        };
        let changed = |job: &JobState| Changed(view::statuses::changed(state, job), job.key.clone());
        let page =
            read.page("Job", all.into_iter().map(|job| (changed(job), job)), |job| jobs::as_json(job))?;
        Ok(page.map(|job| view::statuses::line(state, job)))
    };
    server.list(read, index, view).await
}
