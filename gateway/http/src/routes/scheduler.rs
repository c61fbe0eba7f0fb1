//! How the scheduler works in the whole cluster.

use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::routing::get;
use base::Index;
use model::{Algorithm, Command, Preempting, SchedulerRules};
use state::State;
use state::operator::Configured;

use api::{
    PreemptionConfig, SchedulerConfiguration, SchedulerConfigurationResponse, SchedulerScan,
    SchedulerSetConfigurationResponse,
};

use super::write;
use crate::access::ReadOperator;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Json, Read, Write};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/operator/scheduler/configuration", get(read).merge(write(configure)))
        .route("/v1/operator/scheduler/scan", get(scan).merge(write(set_scan)))
}

async fn read(With(server): With<AppState>, read: Read<ReadOperator>) -> Answer {
    let known_leader = server.known_leader();
    let view = |state: &State| {
        Ok(SchedulerConfigurationResponse {
            scheduler_config: Some(view(state)),
            index: index(state).0,
            known_leader,
            ..SchedulerConfigurationResponse::default()
        })
    };
    server.read(&read, index, view).await
}

/// The whole configuration is replaced. `cas` that does not match is no failure: the answer says `Updated: false`.
async fn configure(
    With(server): With<AppState>,
    write: Write,
    Json(wanted): Json<SchedulerConfiguration>,
) -> Answer {
    let only_at = write.params.number("cas")?.map(|index| {
        let index = u64::try_from(index);
        index.map(Index).map_err(|_| Failure::invalid("cas: expected a modify index"))
    });
    let only_at = only_at.transpose()?;
    match server.submit(&write, Command::SetScheduler { rules: rules(&wanted)?, only_at }).await {
        Ok(receipt) => answer::written(receipt.index, &updated(receipt.index)),
        Err(failure) if failure.status == StatusCode::CONFLICT => {
            let now = index(&server.control.state());
            answer::written(now, &SchedulerSetConfigurationResponse { updated: false, index: now.0 })
        }
        Err(failure) => Err(failure),
    }
}

async fn scan(With(server): With<AppState>, read: Read<ReadOperator>) -> Answer {
    let view = |state: &State| {
        let sampled = state.scheduler().is_some_and(|rules| rules.sampled);
        Ok(SchedulerScan { scan: (if sampled { SAMPLE } else { ALL }).to_string() })
    };
    server.read(&read, index, view).await
}

async fn set_scan(With(server): With<AppState>, write: Write, Json(wanted): Json<SchedulerScan>) -> Answer {
    let sampled = match wanted.scan.as_str() {
        ALL => false,
        SAMPLE => true,
        other => return Err(Failure::invalid(format!("invalid Scan {other:?}: expected all or sample"))),
    };
    let receipt = server.submit(&write, Command::SetSampling { sampled }).await?;
    answer::written(receipt.index, &updated(receipt.index))
}

const ALL: &str = "all";
const SAMPLE: &str = "sample";

fn updated(index: Index) -> SchedulerSetConfigurationResponse {
    SchedulerSetConfigurationResponse { updated: true, index: index.0 }
}

fn index(state: &State) -> Index {
    Configured::index(state.operator.scheduler.as_ref())
}

/// # Errors
/// 400 with the field that is wrong.
pub(super) fn rules(wanted: &SchedulerConfiguration) -> Result<SchedulerRules, Failure> {
    let algorithm = match wanted.scheduler_algorithm.as_str() {
        "" => Some(Algorithm::Binpack),
        word => Algorithm::from_word(word),
    };
    let invalid = |field: &str, given: String, expected: &str| {
        Failure::invalid(format!("invalid {field} {given}: expected {expected}"))
    };
    let limit = wanted.node_limit_for_feasibility_checks;
    let preempting = &wanted.preemption_config;
    Ok(SchedulerRules {
        algorithm: algorithm.ok_or_else(|| {
            invalid("SchedulerAlgorithm", format!("{:?}", wanted.scheduler_algorithm), "binpack or spread")
        })?,
        memory_oversubscription: wanted.memory_oversubscription_enabled,
        preempting: Preempting {
            service: preempting.service_scheduler_enabled,
            batch: preempting.batch_scheduler_enabled,
            system: preempting.system_scheduler_enabled,
            sysbatch: preempting.sys_batch_scheduler_enabled,
        },
        reject_job_registration: wanted.reject_job_registration,
        pause_eval_broker: wanted.pause_eval_broker,
        node_limit: u32::try_from(limit).map_err(|_| {
            invalid("NodeLimitForFeasibilityChecks", limit.to_string(), "a number below 2^32")
        })?,
        sampled: false,
    })
}

/// Before the cluster was founded: what it will begin with.
pub(crate) fn view(state: &State) -> SchedulerConfiguration {
    let unset = Configured { rules: SchedulerRules::default(), created: Index::ZERO, modified: Index::ZERO };
    let Configured { rules, created, modified } = state.operator.scheduler.as_ref().unwrap_or(&unset);
    SchedulerConfiguration {
        scheduler_algorithm: rules.algorithm.to_string(),
        preemption_config: PreemptionConfig {
            system_scheduler_enabled: rules.preempting.system,
            sys_batch_scheduler_enabled: rules.preempting.sysbatch,
            batch_scheduler_enabled: rules.preempting.batch,
            service_scheduler_enabled: rules.preempting.service,
        },
        memory_oversubscription_enabled: rules.memory_oversubscription,
        reject_job_registration: rules.reject_job_registration,
        pause_eval_broker: rules.pause_eval_broker,
        node_limit_for_feasibility_checks: u64::from(rules.node_limit),
        create_index: created.0,
        modify_index: modified.0,
    }
}
