use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::StatusCode;
use axum::routing::get;
use control::Subject;
use model::{AllocId, Command, DeploymentId};
use state::State;
use state::deployment::{DeploymentRow, document};

use api::{
    DeploymentAllocHealthRequest, DeploymentFailRequest, DeploymentPauseRequest, DeploymentPromoteRequest,
    DeploymentUpdateResponse,
};

use super::write;
use crate::access::{ReadJob, Somewhere, UnblockDeployment};
use crate::answer::{Answer, written};
use crate::app_state::AppState;
use crate::blocking::Changing;
use crate::error::Failure;
use crate::page::{Creation, Page, id_prefix};
use crate::request::{Call, Json, OptionalJson, Read, Reading, Write, as_json};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/deployments", get(list))
        .route("/v1/deployment/{id}", get(read))
        .route("/v1/deployment/allocations/{id}", get(allocations))
        .route("/v1/deployment/promote/{id}", write(promote))
        .route("/v1/deployment/fail/{id}", write(fail))
        .route("/v1/deployment/pause/{id}", write(pause))
        .route("/v1/deployment/allocation-health/{id}", write(set_health))
        .route("/v1/deployment/unblock/{id}", write(unblock))
}

async fn list(With(server): With<AppState>, read: Read<ReadJob>) -> Answer {
    let view = |state: &State, row: &DeploymentRow| document(state, state.deployments.get(*row));
    server.list_each(read, |state: &State| state.tables.deployments, deployments, view).await
}

async fn read(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    let find = |state: &State| id.parse().ok().and_then(|id: DeploymentId| state.deployments.find(id));
    let index = |state: &State| match find(state) {
        Some(row) => state.deployments.get(row).modified,
        None => state.tables.deployments,
    };
    let view = |state: &State| Ok(document(state, read.deployment(state, &id).ok_or_else(not_found)?));
    let subject = |state: &State| find(state).map(Subject::Deployment);
    server.read(&read, Changing { subject, index }, view).await
}

async fn allocations(
    With(server): With<AppState>,
    Path(id): Path<String>,
    read: Read<Somewhere<ReadJob>>,
) -> Answer {
    read.without_filter()?;
    let find = move |state: &State, read: &Reading| {
        let known = read.deployment(state, &id);
        let of_job = known.into_iter().flat_map(|known| state.jobs.get(known.job).allocs.iter().copied());
        let own = of_job.filter(|row| state.allocs.get(*row).deployment == known.map(|known| known.id));
        Ok(Page::whole(own))
    };
    server.list_each(read, |state: &State| state.tables.allocs, find, super::allocations::stub).await
}

async fn promote(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<DeploymentPromoteRequest>,
) -> Answer {
    let deployment = named(&id, &request.deployment_id)?;
    let groups = if request.all { Vec::new() } else { request.groups.0 };
    if !request.all && groups.is_empty() {
        return Err(Failure::invalid("Must specify at least one group to promote or promote all"));
    }
    change(&server, &write, deployment, Command::PromoteDeployment { deployment, groups }).await
}

async fn fail(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    OptionalJson(request): OptionalJson<DeploymentFailRequest>,
) -> Answer {
    let asked = if request.deployment_id.is_empty() { &id } else { &request.deployment_id };
    let deployment = named(&id, asked)?;
    change(&server, &write, deployment, Command::FailDeployment { deployment }).await
}

async fn pause(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<DeploymentPauseRequest>,
) -> Answer {
    let deployment = named(&id, &request.deployment_id)?;
    let command = match request.pause {
        true => Command::PauseDeployment { deployment },
        false => Command::ResumeDeployment { deployment },
    };
    change(&server, &write, deployment, command).await
}

async fn set_health(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<DeploymentAllocHealthRequest>,
) -> Answer {
    let deployment = named(&id, &request.deployment_id)?;
    let healthy = allocs("HealthyAllocationIDs", &request.healthy_allocation_ids)?;
    let unhealthy = allocs("UnhealthyAllocationIDs", &request.unhealthy_allocation_ids)?;
    change(&server, &write, deployment, Command::SetAllocHealth { deployment, healthy, unhealthy }).await
}

/// Of a job in several regions: it waits for the others no longer.
async fn unblock(
    With(server): With<AppState>,
    Path(id): Path<String>,
    _: Call<UnblockDeployment>,
    write: Write,
    Json(request): Json<DeploymentPauseRequest>,
) -> Answer {
    let deployment = named(&id, &request.deployment_id).map_err(|failure| match failure.status {
        StatusCode::NOT_FOUND => failure.as_internal(),
        _ => failure,
    })?;
    change(&server, &write, deployment, Command::UnblockDeployment { deployment }).await.map_err(|failure| {
        if failure.status == StatusCode::NOT_FOUND { failure.as_internal() } else { failure }
    })
}

async fn change(server: &AppState, write: &Write, deployment: DeploymentId, command: Command) -> Answer {
    let receipt = server.submit(write, command).await?;
    let eval = receipt.reply.evals.first();
    let state = server.control.state();
    let response = DeploymentUpdateResponse {
        eval_id: eval.map(ToString::to_string).unwrap_or_default(),
        eval_create_index: eval.map_or(0, |_| receipt.index.0),
        deployment_modify_index: state.deployments.lookup(deployment).map_or(0, |known| known.modified.0),
        reverted_job_version: receipt.reply.reverted_to,
        index: receipt.index.0,
    };
    written(receipt.index, &response)
}

/// The path and the body both name it.
fn named(path: &str, body: &str) -> Result<DeploymentId, Failure> {
    if body.is_empty() {
        return Err(Failure::invalid("DeploymentID must be specified"));
    }
    if path != body {
        return Err(Failure::invalid("Deployment ID does not match"));
    }
    path.parse().map_err(|_| not_found())
}

fn allocs(field: &str, ids: &[String]) -> Result<Vec<AllocId>, Failure> {
    let id = |text: &String| {
        text.parse().map_err(|_| Failure::invalid(format!("{field}: expected UUIDs, found {text:?}")))
    };
    ids.iter().map(id).collect()
}

fn deployments(state: &State, read: &Reading) -> Result<Page<DeploymentRow>, Failure> {
    let prefix = id_prefix(&read.options.prefix)?;
    let known = |row: &DeploymentRow| state.deployments.get(*row);
    let shown = |row: &DeploymentRow| read.shows(&state.jobs.get(known(row).job).key.namespace);
    let json = |row: &DeploymentRow| as_json(&document(state, known(row)));
    if prefix.is_empty() {
        let rows = state.deployments.iter().map(|(row, _)| row).filter(shown);
        let rows = rows.map(|row| (Creation(known(&row).created, known(&row).id.0), row));
        return read.page("Deployment", rows, json);
    }
    let rows = state.deployments.with_prefix(&prefix).filter(shown);
    read.page("Deployment", rows.map(|row| (known(&row).id.0, row)), json)
}

fn not_found() -> Failure {
    Failure::not_found("deployment not found")
}
