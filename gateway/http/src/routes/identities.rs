//! What nodes prove themselves with.

use api::{IntroductionToken, IntroductionTokenRequest, NodeIdentity, NodeIdentityRenewRequest};
use axum::Router;
use axum::extract::State as With;
use axum::middleware::map_response;
use axum::routing::get;
use keyring::{Claims, IntroductionClaims};
use wire::messages::{Empty, NodeIdentityResponse, NodeSpecificRequest, method};

use super::client_alloc::{named_node, open_to_all_origins, query};
use super::write;
use crate::access::{ReadNodes, WriteNodes};
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::error::Failure;
use crate::request::{Call, Json};

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/client/identity", get(read))
        .layer(map_response(open_to_all_origins))
        .route("/v1/client/identity/renew", write(renew))
        .route("/v1/acl/identity/client-introduction-token", write(introduce))
}

/// The claims of the token that a node holds now.
async fn read(With(server): With<AppState>, call: Call<ReadNodes>) -> Answer {
    let node = named_node(&server, call.params.get("node_id").unwrap_or_default())?;
    let request = NodeSpecificRequest {
        node_id: node.to_string(),
        query: query(&server, &call.access),
        ..Default::default()
    };
    let reply: NodeIdentityResponse = server.ask(node, method::NODE_IDENTITY_GET, &request).await?;
    Ok(answer::json(&NodeIdentity { claims: reply.claims }))
}

/// The node asks for a new token with its next heartbeat.
async fn renew(
    With(server): With<AppState>,
    call: Call<WriteNodes>,
    Json(request): Json<NodeIdentityRenewRequest>,
) -> Answer {
    let named = Some(request.node_id.as_str()).filter(|id| !id.is_empty());
    let node = named_node(&server, named.or_else(|| call.params.get("node_id")).unwrap_or_default())?;
    let request = NodeSpecificRequest {
        node_id: node.to_string(),
        query: query(&server, &call.access),
        ..Default::default()
    };
    let _: Empty = server.ask(node, method::NODE_IDENTITY_RENEW, &request).await?;
    Ok(answer::json(&Empty {}))
}

/// A token that a node registers with for the first time.
async fn introduce(
    With(server): With<AppState>,
    _: Call<WriteNodes>,
    Json(request): Json<IntroductionTokenRequest>,
) -> Answer {
    let limits = &server.introduction;
    let ttl = match request.ttl.0 {
        base::Duration::ZERO => limits.default_ttl,
        ttl if ttl < base::Duration::ZERO => {
            return Err(Failure::invalid("TTL: expected a positive duration"));
        }
        ttl => ttl.min(limits.max_ttl),
    };
    let pool = Some(request.node_pool).filter(|pool| !pool.is_empty());
    let node =
        IntroductionClaims { pool: pool.unwrap_or_else(|| "default".to_string()), name: request.node_name };
    let state = server.control.state();
    let Some((key, _)) = state.keyring.active() else {
        return Err(Failure::internal("the cluster has no key to sign with yet: try again in a moment"));
    };
    let (signer, region) = (server.signer.clone(), server.agent.region.clone());
    let sign = move || {
        let claims = Claims::of_introduction(&region, node, now(), ttl);
        signer.sign(&state.keyring, key, &claims)
    };
    let signed = tokio::task::spawn_blocking(sign).await?;
    let jwt = signed.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(answer::json(&IntroductionToken { jwt }))
}
