//! What of a job works on the cluster as it is: nothing is registered. Ours alone.

use axum::Router;
use axum::extract::State as With;
use base::Index;
use jobspec::{Effect, Finding};
use placement::dry_run;
use state::State;

use api::{Consistency, DoctorFinding, DoctorGroup, JobDoctor, JobRegisterRequest, JobValidateRequest};

use super::register::{Checked, checked};
use super::write;
use crate::access::{Each, PlanJob};
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Call, Json, random};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/jobs/doctor", write(doctor))
}

async fn doctor(
    With(server): With<AppState>,
    call: Call<Each>,
    Json(request): Json<JobValidateRequest>,
) -> Answer {
    server.fresh(Consistency::Leased, Index::ZERO).await?;
    let asked = JobRegisterRequest { job: request.job, ..JobRegisterRequest::default() };
    let checked = checked(&server, &call.params, asked)?;
    call.access.require::<PlanJob>(&checked.registration.key.namespace)?;
    let state = server.control.state();
    // Pure work for a processor, as a plan is.
    let turn = server.renders.clone().acquire_owned().await.expect("nobody closes the semaphore");
    let answered = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        examined(&state, checked)
    });
    Ok(answer::json(&answered.await??))
}

fn examined(state: &State, checked: Checked) -> Result<JobDoctor, Failure> {
    let Checked { registration, findings, mut errors } = checked;
    let mut found = JobDoctor {
        nodes: state.nodes.len() as u64,
        warnings: registration.warnings.into(),
        findings: findings.iter().map(shown).collect::<Vec<_>>().into(),
        ..JobDoctor::default()
    };
    if errors.is_empty() {
        match dry_run(state, &registration.command, u64::from_le_bytes(random()), now()) {
            Ok(run) => {
                let group = |(name, failed): (String, model::document::AllocationMetric)| {
                    let never_placed = failed.nodes_exhausted == 0 && failed.quota_exhausted.is_empty();
                    (name, DoctorGroup { never_placed, failed })
                };
                found.groups = run.failed.into_iter().map(group).collect();
            }
            Err(rejection) => errors.push(rejection.to_string()),
        }
    }
    found.errors = errors.into();
    Ok(found)
}

fn shown(finding: &Finding) -> DoctorFinding {
    let effect = match finding.effect {
        Effect::Ignored => "ignored",
        Effect::Fails => "fails",
        Effect::MayFail => "may fail",
        Effect::NeverPlaced => "never placed",
        Effect::Works => "works",
    };
    DoctorFinding {
        group: finding.group.clone(),
        task: finding.task.clone(),
        what: finding.what.clone(),
        effect: effect.to_string(),
        text: finding.consequence(),
    }
}
