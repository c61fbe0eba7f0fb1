//! Children of parameterized and periodic jobs, and tags of versions.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State as With};
use axum::routing::put;
use model::command::DispatchJob;
use model::{Command, JobKey};

use api::{
    JobDispatchRequest, JobDispatchResponse, JobTagResponse, PeriodicForceResponse, TagVersionRequest,
};

use super::jobs::{self, key};
use super::write;
use crate::answer::{self, Answer, written};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Json, OptionalJson, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/job/{id}/dispatch", write(dispatch))
        .route("/v1/job/{id}/dispatch/payload", write(dispatch_payload))
        .route("/v1/job/{id}/periodic/force", write(force))
        .route("/v1/job/{id}/versions/{tag}/tag", put(tag).post(tag).delete(untag))
}

async fn dispatch(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    OptionalJson(request): OptionalJson<JobDispatchRequest>,
) -> Answer {
    if !request.job_id.is_empty() && request.job_id != id {
        return Err(Failure::invalid("Job ID does not match"));
    }
    let command = DispatchJob {
        key: key(&write.params, &id),
        payload: request.payload.0,
        meta: request.meta.0,
        id_prefix: request.id_prefix_template,
        priority: request.priority,
        idempotency_token: token(&write),
    };
    dispatched(&server, &write, command).await
}

/// The body is the payload itself.
async fn dispatch_payload(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    payload: Bytes,
) -> Answer {
    let command = DispatchJob {
        key: key(&write.params, &id),
        payload: payload.to_vec(),
        idempotency_token: token(&write),
        ..DispatchJob::default()
    };
    dispatched(&server, &write, command).await
}

fn token(write: &Write) -> String {
    write.params.get("idempotency_token").unwrap_or_default().to_string()
}

async fn dispatched(server: &AppState, write: &Write, command: DispatchJob) -> Answer {
    let namespace = command.key.namespace.clone();
    let submitted = server.submit(write, Command::DispatchJob(Box::new(command))).await;
    let receipt = submitted.map_err(|failure| match failure == Failure::not_found(jobs::NOT_FOUND) {
        true => Failure::not_found("parameterized job not found"),
        false => failure,
    })?;
    let child = receipt.reply.child.clone().unwrap_or_default();
    let eval = receipt.reply.evals.first();
    let created =
        server.control.state().jobs.lookup(&JobKey::new(&namespace, &child)).map(|job| job.created.0);
    let response = JobDispatchResponse {
        dispatched_job_id: child,
        eval_id: eval.map(ToString::to_string).unwrap_or_default(),
        eval_create_index: eval.map_or(0, |_| receipt.index.0),
        job_create_index: created.unwrap_or(receipt.index.0),
        index: receipt.index.0,
    };
    written(receipt.index, &response)
}

async fn force(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let command = Command::LaunchJob { key: key(&write.params, &id), at: now(), forced: true };
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    let response = PeriodicForceResponse {
        eval_id: receipt.reply.evals.first().map(ToString::to_string).unwrap_or_default(),
        eval_create_index: receipt.index.0,
        index: receipt.index.0,
    };
    written(receipt.index, &response)
}

async fn tag(
    With(server): With<AppState>,
    Path((id, name)): Path<(String, String)>,
    write: Write,
    Json(request): Json<TagVersionRequest>,
) -> Answer {
    let key = key(&write.params, &id);
    let TagVersionRequest { version, latest, description } = request;
    if latest && version.is_some_and(|version| version > 0) {
        return Err(Failure::internal("Latest: expected false where a Version is given"));
    }
    let version = version.filter(|_| !latest);
    let command = Command::TagJobVersion { key: key.clone(), version, name: name.clone(), description };
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    let state = server.control.state();
    let job = state.jobs.lookup(&key);
    let tag = job.and_then(|job| job.tag(job.tagged(&name)?)).cloned().unwrap_or_default();
    Ok(answer::json(&JobTagResponse {
        name: tag.name,
        description: tag.description,
        tagged_time: tag.tagged_time,
        index: receipt.index.0,
        ..JobTagResponse::default()
    }))
}

async fn untag(
    With(server): With<AppState>,
    Path((id, name)): Path<(String, String)>,
    write: Write,
) -> Answer {
    let command = Command::UntagJobVersion { key: key(&write.params, &id), name };
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    Ok(answer::json(&JobTagResponse { index: receipt.index.0, ..JobTagResponse::default() }))
}
