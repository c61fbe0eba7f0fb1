//! Dry runs: what registering a job would lead to.

use axum::Router;
use axum::extract::{Path, State as With};
use base::Index;
use placement::dry_run;
use state::State;
use state::job::JobState;

use api::diff::{self, Detail};
use api::{Consistency, JobPlanRequest, JobPlanResponse, JobRegisterRequest};

use super::register::{Registration, registration, warning_text};
use super::write;
use crate::access::{Each, PlanJob};
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Call, Json, random};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/job/{id}/plan", write(plan))
}

async fn plan(
    With(server): With<AppState>,
    Path(id): Path<String>,
    call: Call<Each>,
    Json(request): Json<JobPlanRequest>,
) -> Answer {
    let job = request.job.ok_or_else(|| Failure::invalid("Job must be specified"))?;
    match job.id.as_deref() {
        None | Some("") => return Err(Failure::invalid("Job must have a valid ID")),
        Some(named) if named != id => return Err(Failure::invalid("Job ID does not match")),
        Some(_) => {}
    }
    let asked = JobRegisterRequest { job: Some(job), ..JobRegisterRequest::default() };
    let registration = registration(&server, &call.params, asked)?;
    call.access.require::<PlanJob>(&registration.key.namespace)?;
    server.fresh(Consistency::Leased, Index::ZERO).await?;
    let state = server.control.state();
    // Pure work for a processor, which must not delay other requests: as many at once as lists are rendered.
    let turn = server.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let answered = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        response(&state, &registration, request.diff)
    });
    let response = answered.await??;
    answer::written(Index(response.index), &response)
}

fn response(
    state: &State,
    registration: &Registration,
    wants_diff: bool,
) -> Result<JobPlanResponse, Failure> {
    let Registration { key, command, warnings } = registration;
    let run = dry_run(state, command, u64::from_le_bytes(random()), now())?;
    let stored = state.jobs.lookup(key);
    let shown = |job: &JobState| state::job::document(job, job.current());
    let before = stored.filter(|job| !job.is_stopped()).map(shown);
    let diff = wants_diff.then(|| {
        // As it would be stored: what servers fill in is no difference.
        let after = run.state.jobs.lookup(key).map(shown).unwrap_or_default();
        let mut diff = diff::jobs(before.as_ref(), &after, Detail::Contextual);
        diff::annotate(&mut diff, &run.annotations.desired_tg_updates);
        diff
    });
    let launch = command.job.periodic.as_ref().and_then(|periodic| jobspec::next_launch(periodic, now()));
    let index = stored.map_or(0, |job| job.job_modified.0);
    Ok(JobPlanResponse {
        job_modify_index: index,
        created_evals: run.created.into(),
        diff,
        annotations: Some(run.annotations),
        failed_tg_allocs: run.failed.into(),
        next_periodic_launch: launch.map(Into::into).unwrap_or_default(),
        warnings: warning_text(warnings),
        index,
    })
}
