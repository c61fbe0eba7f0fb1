use axum::Router;
use axum::extract::State as With;
use axum::routing::get;

use crate::access::Anyone;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::ReadNow;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/status/leader", get(leader))
        .route("/v1/status/peers", get(peers))
        .route("/v1/regions", get(regions))
}

async fn leader(With(server): With<AppState>, _: ReadNow<Anyone>) -> Answer {
    // Also when any server may answer: the question is who leads.
    server.fresh(api::Consistency::Leased, base::Index::ZERO).await?;
    let leader = server.cluster.leader().ok_or_else(|| Failure::internal("No cluster leader"))?;
    Ok(answer::json(&leader))
}

async fn peers(With(server): With<AppState>, _: ReadNow<Anyone>) -> Answer {
    Ok(answer::json(&server.cluster.peers()))
}

async fn regions(With(server): With<AppState>) -> Answer {
    Ok(answer::json(&server.cluster.regions()))
}
