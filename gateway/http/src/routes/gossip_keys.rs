//! The keys that encrypt what servers gossip.

use axum::Router;
use axum::extract::State as With;
use axum::routing::{any, get};

use api::KeyringRequest;

use super::write;
use crate::access::WriteAgent;
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::cluster_admin::GossipKeys;
use crate::error::Failure;
use crate::request::{Call, Json};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/agent/keyring/list", get(list).merge(write(list)))
        .route("/v1/agent/keyring/install", change(GossipKeys::Install))
        .route("/v1/agent/keyring/use", change(GossipKeys::Use))
        .route("/v1/agent/keyring/remove", change(GossipKeys::Remove))
        .route("/v1/agent/keyring/{op}", any(async || Failure::not_found("resource not found")))
}

async fn list(With(server): With<AppState>, _: Call<WriteAgent>) -> Answer {
    Ok(answer::json(&server.cluster.gossip_keys(GossipKeys::List).await?))
}

fn change(operation: fn(String) -> GossipKeys) -> axum::routing::MethodRouter<AppState> {
    write(
        async move |With(server): With<AppState>,
                    _: Call<WriteAgent>,
                    Json(request): Json<KeyringRequest>|
                    -> Answer {
            Ok(answer::json(&server.cluster.gossip_keys(operation(request.key)).await?))
        },
    )
}
