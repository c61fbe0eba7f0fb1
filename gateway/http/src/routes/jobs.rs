use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::get;
use base::Index;
use control::Subject;
use model::document::{Job, JobSubmission};
use model::{Command, JobKey};
use state::State;
use state::deployment::Deployment;
use state::eval::EvalRow;
use state::job::{JobRow, JobState};

use api::diff::{self, Detail};
use api::{
    JobDeregisterResponse, JobDiff, JobEvaluateRequest, JobRegisterResponse, JobRevertRequest,
    JobStabilityRequest, JobStabilityResponse, JobVersionsResponse, Params,
};

use super::write;
use crate::access::{ListJobs, ReadJob};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::blocking::{Changing, Watched};
use crate::error::Failure;
use crate::page::Page;
use crate::request::{self, Json, OptionalJson, Read, Reading, Write};
use crate::view;

pub(super) const NOT_FOUND: &str = "job not found";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/job/{id}/summary", get(summary))
        .route("/v1/job/{id}/allocations", get(allocations))
        .route("/v1/job/{id}/evaluations", get(evaluations))
        .route("/v1/job/{id}/deployments", get(deployments))
        .route("/v1/job/{id}/deployment", get(deployment))
        .route("/v1/job/{id}/versions", get(versions))
        .route("/v1/job/{id}/submission", get(submission))
        .route("/v1/job/{id}/actions", get(actions))
        .route("/v1/job/{id}/evaluate", write(evaluate))
        .route("/v1/job/{id}/revert", write(revert))
        .route("/v1/job/{id}/stable", write(set_stability))
}

pub(super) async fn list(With(server): With<AppState>, read: Read<ListJobs>) -> Answer {
    let with_meta = read.params.boolean("meta")?;
    let view = move |state: &State, row: &JobRow| view::job::stub(state, state.jobs.get(*row), with_meta);
    server.list_each(read, index, jobs, view).await
}

pub(super) async fn read(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<ReadJob>,
) -> Answer {
    let key = key(&read.params, &id);
    let index = watched(&key, |state| own_index(state, &key, |job| job.modified));
    let view = |state: &State| find(state, &key).map(|job| state::job::document(job, job.current()));
    server.read(&read, index, view).await
}

pub(super) async fn deregister(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let key = key(&write.params, &id);
    // Where it is in several regions, the others have been asked before.
    write.params.boolean("global")?;
    let command = Command::DeregisterJob {
        key,
        purge: write.params.boolean("purge")?,
        eval_priority: eval_priority(write.params.number("eval_priority")?.unwrap_or(0))?,
        no_shutdown_delay: write.params.boolean("no_shutdown_delay")?,
    };
    let receipt = server.submit(&write, command).await?;
    let eval = receipt.reply.evals.first();
    let response = JobDeregisterResponse {
        eval_id: eval.map(|eval| eval.to_string()).unwrap_or_default(),
        eval_create_index: eval.map_or(0, |_| receipt.index.0),
        job_modify_index: receipt.reply.job_modified.0,
        index: receipt.index.0,
        known_leader: true,
        ..JobDeregisterResponse::default()
    };
    written(receipt.index, &response)
}

async fn evaluate(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    OptionalJson(request): OptionalJson<JobEvaluateRequest>,
) -> Answer {
    let key = key(&write.params, &id);
    if !request.job_id.is_empty() && request.job_id != id {
        return Err(Failure::invalid("JobID not same as job name"));
    }
    let force_reschedule = request.eval_options.force_reschedule;
    let receipt = server.submit(&write, Command::EvaluateJob { key, force_reschedule }).await?;
    written(receipt.index, &evaluated(&receipt, String::new()))
}

async fn summary(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = key(&read.params, &id);
    let index = watched(&key, |state| own_index(state, &key, |job| job.summary_modified));
    server.read(&read, index, |state| Ok(view::job::summary(state, find(state, &key)?))).await
}

async fn allocations(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    read.without_filter()?;
    let key = key(&read.params, &id);
    let all = read.params.boolean("all")?;
    let find = move |state: &State, _: &Reading| {
        let job = state.jobs.lookup(&key);
        let rows = job.into_iter().flat_map(|job| job.allocs.iter().map(move |row| (job, *row)));
        let known = rows.filter(|(job, row)| {
            let alloc = state.allocs.get(*row);
            // Those of an earlier job of this name are only shown when asked for.
            !alloc.gone && (all || alloc.version.job_created == job.created)
        });
        Ok(Page::whole(known.map(|(_, row)| row)))
    };
    server.list_each(read, |state: &State| state.tables.allocs, find, super::allocations::stub).await
}

async fn evaluations(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    read.without_filter()?;
    let key = key(&read.params, &id);
    let find = move |state: &State, _: &Reading| {
        let rows = state.jobs.lookup(&key).into_iter().flat_map(|job| job.evals.iter().copied());
        Ok(Page::whole(rows.filter(|row| !state.evals.get(*row).gone)))
    };
    let view = |state: &State, row: &EvalRow| state::eval::document(state, state.evals.get(*row));
    server.list_each(read, |state: &State| state.tables.evals, find, view).await
}

async fn deployments(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    read.without_filter()?;
    let key = key(&read.params, &id);
    // A job that was purged took its deployments with it: all there are belong to this one.
    read.params.boolean("all")?;
    let view = move |state: &State, _: &Reading| {
        Ok(Page::whole(deployments_of(state, &key).map(|known| state::deployment::document(state, known))))
    };
    server.list(read, |state: &State| state.tables.deployments, view).await
}

async fn deployment(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = key(&read.params, &id);
    let index = watched(&key, |state| {
        deployments_of(state, &key).next_back().map_or(state.tables.deployments, |known| known.modified)
    });
    let view = |state: &State| {
        let newest = deployments_of(state, &key).next_back();
        Ok(newest.map(|known| state::deployment::document(state, known)))
    };
    server.read(&read, index, view).await
}

/// Oldest first.
fn deployments_of<'a>(
    state: &'a State,
    key: &JobKey,
) -> impl DoubleEndedIterator<Item = &'a Deployment> + use<'a> {
    let rows = state.jobs.lookup(key).map_or(&[][..], |job| &job.deployments[..]);
    rows.iter().map(|row| state.deployments.get(*row))
}

async fn revert(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<JobRevertRequest>,
) -> Answer {
    let key = named(&write.params, &id, &request.job_id)?;
    let command =
        Command::RevertJob { key, version: request.job_version, only_from: request.enforce_prior_version };
    let receipt = server.submit(&write, command).await?;
    written(receipt.index, &evaluated(&receipt, String::new()))
}

async fn set_stability(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<JobStabilityRequest>,
) -> Answer {
    let key = named(&write.params, &id, &request.job_id)?;
    let (version, stable) = (request.job_version, request.stable);
    let command = Command::SetJobStability { key, version, stable };
    let receipt = server.submit(&write, command).await?;
    let job_modify_index = receipt.reply.job_modified.0;
    written(receipt.index, &JobStabilityResponse { job_modify_index, index: receipt.index.0 })
}

/// The path and the body both name it.
fn named(params: &Params, path: &str, body: &str) -> Result<JobKey, Failure> {
    if body.is_empty() {
        return Err(Failure::invalid("JobID must be specified"));
    }
    if path != body {
        return Err(Failure::invalid("Job ID does not match"));
    }
    Ok(key(params, path))
}

async fn versions(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = key(&read.params, &id);
    let wants_diffs = read.params.boolean("diffs")?;
    let given = |name| read.params.get(name).filter(|value: &&str| !value.is_empty()).map(str::to_string);
    let (reference, tag) = (given("diff_version"), given("diff_tag"));
    let index = watched(&key, |state| own_index(state, &key, |job| job.modified));
    let known_leader = server.known_leader();
    let view = |state: &State| {
        let job = state.jobs.lookup(&key).ok_or_else(|| Failure::not_found("job versions not found"))?;
        let versions: Vec<Job> =
            job.versions.iter().map(|version| state::job::document(job, version)).collect();
        let compared = match (&tag, &reference) {
            _ if !wants_diffs => Vec::new(),
            (None, None) => neighbours(&versions),
            (Some(tag), _) => against(&versions, job.tagged(tag), &format!("tag {tag:?}"))?,
            (None, Some(number)) => against(&versions, number.parse().ok(), &format!("version {number:?}"))?,
        };
        Ok(JobVersionsResponse {
            diffs: compared.into(),
            versions: versions.into(),
            index: job.modified.0,
            known_leader,
            ..JobVersionsResponse::default()
        })
    };
    server.read(&read, index, view).await
}

/// What each version changed about the one before it.
fn neighbours(versions: &[Job]) -> Vec<JobDiff> {
    versions.windows(2).map(|pair| diff::jobs(Some(&pair[1]), &pair[0], Detail::Contextual)).collect()
}

/// How each other version differs from one of them.
fn against(versions: &[Job], number: Option<u64>, named: &str) -> Result<Vec<JobDiff>, Failure> {
    let reference = versions.iter().find(|job| number.is_some() && job.version == number);
    let reference =
        reference.ok_or_else(|| Failure::internal(format!("{named} to compare with not found")))?;
    let others = versions.iter().filter(|job| job.version != reference.version);
    Ok(others.map(|job| diff::jobs(Some(reference), job, Detail::Contextual)).collect())
}

/// The actions of its tasks, by name.
async fn actions(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = key(&read.params, &id);
    let index = watched(&key, |state| own_index(state, &key, |job| job.modified));
    server.read(&read, index, |state| Ok(view::job::actions(find(state, &key)?))).await
}

async fn submission(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadJob>) -> Answer {
    let key = key(&read.params, &id);
    let unreadable = || Failure::invalid("Unable to parse job submission version parameter");
    let number: u64 = read.params.get("version").and_then(|v| v.parse().ok()).ok_or_else(unreadable)?;
    let stored = |state: &State| submission_of(state, &key, number);
    let index = |state: &State| Index(stored(state).map_or(0, |submission| submission.job_modify_index));
    let missing = || Failure::not_found("job source not found");
    server.read(&read, index, |state| stored(state).ok_or_else(missing)).await
}

fn submission_of(state: &State, key: &JobKey, number: u64) -> Option<JobSubmission> {
    let version = state.jobs.lookup(key)?.version(number)?;
    let submission = version.submission.as_deref()?;
    Some(JobSubmission {
        namespace: key.namespace.clone(),
        job_id: key.id.clone(),
        version: version.version,
        job_modify_index: version.registered.0,
        ..submission.clone()
    })
}

fn jobs(state: &State, read: &Reading) -> Result<Page<JobRow>, Failure> {
    let prefix = &read.options.prefix;
    let shown = |job: &JobState| read.shows(&job.key.namespace) && job.key.id.starts_with(prefix.as_str());
    let shown = state.jobs.iter().filter(|(_, job)| shown(job));
    let rows = shown.map(|(row, job)| (job.key.clone(), row));
    read.page("Job", rows, |row| as_json(state.jobs.get(*row)))
}

/// The job as filters look at it.
pub(super) fn as_json(job: &JobState) -> serde_json::Value {
    request::as_json(&state::job::document(job, job.current()))
}

/// What is counted over a job's allocations and evaluations is part of its line.
pub(super) fn index(state: &State) -> Index {
    state.tables.jobs.max(state.tables.allocs).max(state.tables.evals)
}

fn find<'a>(state: &'a State, key: &JobKey) -> Result<&'a JobState, Failure> {
    state.jobs.lookup(key).ok_or_else(|| Failure::not_found(NOT_FOUND))
}

/// A job, and what changes along with it.
fn watched<'a>(key: &'a JobKey, index: impl Fn(&State) -> Index + 'a) -> impl Watched + 'a {
    Changing { subject: |state: &State| state.jobs.find(key).map(Subject::Job), index }
}

fn own_index(state: &State, key: &JobKey, of: impl Fn(&JobState) -> Index) -> Index {
    state.jobs.lookup(key).map_or(state.tables.jobs, of)
}

pub(super) fn key(params: &Params, id: &str) -> JobKey {
    JobKey::new(params.namespace(), id)
}

/// Zero is what clients send for "the job's own".
///
/// # Errors
/// 400 beyond 1 to 100.
pub(super) fn eval_priority(given: i64) -> Result<Option<u32>, Failure> {
    match u32::try_from(given) {
        Ok(0) => Ok(None),
        Ok(priority @ 1..=100) => Ok(Some(priority)),
        _ => Err(Failure::invalid(format!("eval priority must be between 1 and 100, but is {given}"))),
    }
}

/// The answer to whatever created an evaluation of a job.
pub(super) fn evaluated(receipt: &control::Receipt, warnings: String) -> JobRegisterResponse {
    let eval = receipt.reply.evals.first();
    JobRegisterResponse {
        eval_id: eval.map(|eval| eval.to_string()).unwrap_or_default(),
        eval_create_index: eval.map_or(0, |_| receipt.index.0),
        job_modify_index: receipt.reply.job_modified.0,
        warnings,
        index: receipt.index.0,
        known_leader: true,
        ..JobRegisterResponse::default()
    }
}
