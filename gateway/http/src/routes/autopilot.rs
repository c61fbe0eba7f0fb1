use api::AutopilotConfiguration;
use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use base::{Duration, Index};
use model::{Autopilot, Command, Rejection};
use state::State;
use state::operator::Configured;

use crate::access::ReadOperator;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Json, Read, ReadNow, Write};

pub(super) fn router() -> Router<AppState> {
    let invalid = async || Failure::not_found("Invalid method");
    Router::new()
        .route("/v1/operator/autopilot/configuration", get(configuration).put(configure).fallback(invalid))
        .route("/v1/operator/autopilot/health", get(health))
}

async fn configuration(With(server): With<AppState>, read: Read<ReadOperator>) -> Answer {
    let (state, _) = server.moment(&read).await?;
    Ok(answer::json(&view(&state)))
}

/// The whole configuration is replaced. `cas` that does not match is no failure: the answer is `false`.
async fn configure(
    With(server): With<AppState>,
    write: Write,
    Json(wanted): Json<AutopilotConfiguration>,
) -> Answer {
    let only_at = write.params.number("cas")?.map(|index| {
        let index = u64::try_from(index);
        index.map(Index).map_err(|_| Failure::invalid("cas: expected a modify index"))
    });
    let only_at = only_at.transpose()?;
    match server.submit(&write, Command::SetAutopilot { rules: rules(&wanted)?, only_at }).await {
        Ok(receipt) => answer::written(receipt.index, &true),
        Err(failure) if failure.status == StatusCode::CONFLICT => Ok(answer::json(&false)),
        Err(failure) => Err(failure),
    }
}

/// 429 while some server is not healthy, with the same body.
async fn health(With(server): With<AppState>, _: ReadNow<ReadOperator>) -> Answer {
    let health = server.cluster.health().await?;
    let status = if health.healthy { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
    Ok((status, answer::json(&health)).into_response())
}

fn rules(wanted: &AutopilotConfiguration) -> Result<Autopilot, Failure> {
    let enterprise = [
        ("EnableRedundancyZones", wanted.enable_redundancy_zones),
        ("DisableUpgradeMigration", wanted.disable_upgrade_migration),
        ("EnableCustomUpgrades", wanted.enable_custom_upgrades),
    ];
    if let Some((field, _)) = enterprise.iter().find(|(_, on)| *on) {
        return Err(Failure::invalid(format!("{field} belongs to enterprise releases")));
    }
    let span = |field: &'static str, text: &str| -> Result<i64, Failure> {
        let expected = "a duration like 10s";
        let span: Result<Duration, _> = text.parse();
        let invalid =
            |_| Failure::from(Rejection::AutopilotInvalid { field: field.into(), expected: expected.into() });
        span.map(|span| span.0).map_err(invalid)
    };
    Ok(Autopilot {
        cleanup_dead_servers: wanted.cleanup_dead_servers,
        last_contact_threshold_ns: span("LastContactThreshold", &wanted.last_contact_threshold)?,
        max_trailing_logs: wanted.max_trailing_logs,
        min_quorum: wanted.min_quorum,
        server_stabilization_ns: span("ServerStabilizationTime", &wanted.server_stabilization_time)?,
    })
}

/// Before the first leader wrote it down: what holds anyway.
pub(crate) fn view(state: &State) -> AutopilotConfiguration {
    let unset = Configured { rules: Autopilot::default(), created: Index::ZERO, modified: Index::ZERO };
    let configured = state.operator.autopilot.as_ref().unwrap_or(&unset);
    let rules = &configured.rules;
    AutopilotConfiguration {
        cleanup_dead_servers: rules.cleanup_dead_servers,
        last_contact_threshold: rules.last_contact_threshold().to_string(),
        max_trailing_logs: rules.max_trailing_logs,
        min_quorum: rules.min_quorum,
        server_stabilization_time: rules.server_stabilization_time().to_string(),
        create_index: configured.created.0,
        modify_index: configured.modified.0,
        ..AutopilotConfiguration::default()
    }
}
