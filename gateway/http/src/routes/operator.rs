use axum::Router;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::routing::get;
use base::Index;

use api::{PreemptionConfig, SchedulerConfiguration, SchedulerConfigurationResponse};

use super::write;
use crate::answer::Answer;
use crate::error::Failure;
use crate::request::Read;
use crate::server::Server;

pub fn router() -> Router<Server> {
    let change = async || Failure::unsupported("changing the scheduler configuration is");
    Router::new()
        .route("/v1/operator/scheduler/configuration", get(scheduler).merge(write(change)))
        // No licence is needed, and nobody has to ask for one.
        .route("/v1/operator/license", get(async || StatusCode::NO_CONTENT))
}

/// What the scheduler does; nothing of it can be changed.
async fn scheduler(With(server): With<Server>, read: Read) -> Answer {
    let known_leader = server.known_leader();
    let view = SchedulerConfigurationResponse {
        scheduler_config: Some(SchedulerConfiguration {
            scheduler_algorithm: "binpack".to_string(),
            preemption_config: PreemptionConfig::default(),
            create_index: 1,
            modify_index: 1,
            ..SchedulerConfiguration::default()
        }),
        index: 1,
        known_leader,
        ..SchedulerConfigurationResponse::default()
    };
    server.read(&read, |_| Index(1), |_| Ok(view)).await
}
