//! Counts that are set from outside, and the policies they go by.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::StatusCode;
use axum::routing::get;
use base::Uuid;
use model::Command;
use model::command::ScaleJob;
use model::document::Map;
use state::State;
use state::job::JobState;

use api::{ScalingPolicy, ScalingPolicyListStub, ScalingRequest};

use super::{jobs, write};
use crate::access::{ListScalingPolicies, ReadScale, ReadScalingPolicy, Somewhere};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::Page;
use crate::request::{Call, Json, Read, Reading, Write};
use crate::view;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/job/{id}/scale", get(status).merge(write(scale)))
        .route("/v1/scaling/policies", get(policies))
        .route("/v1/scaling/policy/", get(async |_: Call<Somewhere<ReadScalingPolicy>>| policy_not_found()))
        .route("/v1/scaling/policy/{id}", get(policy))
}

async fn status(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadScale>) -> Answer {
    let key = jobs::key(&read.params, &id);
    let index = |state: &State| {
        let job = state.jobs.lookup(&key);
        job.map_or(state.tables.jobs, |job| job.modified.max(state.tables.allocs))
    };
    let missing = || Failure::not_found(jobs::NOT_FOUND);
    let view =
        |state: &State| Ok(view::job::scale_status(state, state.jobs.lookup(&key).ok_or_else(missing)?));
    server.read(&read, index, view).await
}

async fn scale(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<ScalingRequest>,
) -> Answer {
    let named = request.target.get("Job").filter(|named| !named.is_empty());
    if named.is_some_and(|named| *named != id) {
        return Err(Failure::invalid("job ID in payload did not match URL"));
    }
    let group = request.target.get("Group").cloned().unwrap_or_default();
    if group.is_empty() {
        return Err(Failure::invalid("missing task group name for scaling action"));
    }
    let key = jobs::key(&write.params, &id);
    let command = ScaleJob {
        key,
        group,
        count: request.count,
        message: request.message,
        error: request.error,
        meta: request.meta,
        enforce_index: Some(request.job_modify_index).filter(|index| *index > 0),
    };
    let receipt = server.submit(&write, Command::ScaleJob(Box::new(command))).await;
    let receipt = receipt.map_err(|failure| match failure.status {
        StatusCode::NOT_FOUND => Failure::not_found(format!("job {id:?} not found")),
        StatusCode::CONFLICT => Failure::internal(failure.text),
        _ => failure,
    })?;
    written(receipt.index, &jobs::evaluated(&receipt, String::new()))
}

async fn policies(With(server): With<AppState>, read: Read<ListScalingPolicies>) -> Answer {
    read.without_filter()?;
    let wanted = |name| read.params.get(name).unwrap_or_default().to_string();
    let (job_id, kind) = (wanted("job"), wanted("type"));
    let view = move |state: &State, read: &Reading| {
        let jobs = state
            .jobs
            .iter()
            .map(|(_, job)| job)
            .filter(|job| read.shows(&job.key.namespace) && (job_id.is_empty() || job_id == job.key.id));
        let own = jobs.flat_map(of_job).filter(|policy| {
            (kind.is_empty() || policy.kind == kind) && policy.id.starts_with(&read.options.prefix)
        });
        let mut stubs: Vec<ScalingPolicyListStub> = own.map(stub).collect();
        stubs.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Page::whole(stubs.into_iter()))
    };
    server.list(read, |state: &State| state.tables.jobs, view).await
}

async fn policy(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadScalingPolicy>>,
) -> Answer {
    let find = |state: &State| {
        let mut all = state.jobs.iter().flat_map(|(_, job)| of_job(job));
        all.find(|policy| policy.id == id)
    };
    let index = |state: &State| state.tables.jobs;
    server.read(&read, index, |state| find(state).ok_or_else(policy_not_found)).await
}

fn policy_not_found() -> Failure {
    Failure::not_found("policy not found")
}

/// The policies of a job's groups and tasks. Their ids follow from what they are for, so they stay.
pub(super) fn of_job(job: &JobState) -> Vec<ScalingPolicy> {
    let current = job.current();
    let mut all = Vec::new();
    for group in current.job.task_groups.iter() {
        let group_name = group.name.as_deref().unwrap_or_default();
        all.extend(group.scaling.as_ref().map(|policy| complete(job, policy, group_name, "")));
        for task in group.tasks.iter() {
            let own = task.scaling_policies.iter();
            all.extend(own.map(|policy| complete(job, policy, group_name, &task.name)));
        }
    }
    all
}

fn complete(job: &JobState, policy: &ScalingPolicy, group: &str, task: &str) -> ScalingPolicy {
    let target =
        [("Namespace", &*job.key.namespace), ("Job", &*job.key.id), ("Group", group), ("Task", task)];
    let target = target.into_iter().filter(|(_, name)| !name.is_empty());
    let target: Map<String, String> =
        target.map(|(kind, name)| (kind.to_string(), name.to_string())).collect();
    let kind = if policy.kind.is_empty() { "horizontal" } else { &policy.kind };
    let named = [kind, &*job.key.namespace, &*job.key.id, group, task].join("\0");
    let hash = blake3::hash(named.as_bytes());
    let id = Uuid::from_random(hash.as_bytes()[..16].try_into().expect("a hash has more than 16 bytes"));
    ScalingPolicy {
        id: id.to_string(),
        kind: kind.to_string(),
        enabled: Some(policy.enabled.unwrap_or(true) && !job.is_stopped()),
        target,
        create_index: job.created.0,
        modify_index: job.job_modified.0,
        ..policy.clone()
    }
}

fn stub(policy: ScalingPolicy) -> ScalingPolicyListStub {
    ScalingPolicyListStub {
        id: policy.id,
        enabled: policy.enabled.unwrap_or_default(),
        kind: policy.kind,
        target: policy.target,
        create_index: policy.create_index,
        modify_index: policy.modify_index,
    }
}
