//! Metadata of a node that is changed while it runs.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State as With;
use axum::middleware::map_response;
use axum::routing::get;
use model::document::Map;
use serde::{Deserialize, Serialize};
use wire::messages::{NodeMetaApplyRequest, NodeMetaResponse, NodeSpecificRequest, method};

use super::client_alloc::{named_node, open_to_all_origins, query};
use crate::access::{ReadNodes, WriteNodes};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, Json};

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/client/metadata", get(read).post(apply)).layer(map_response(open_to_all_origins))
}

/// `NodeMetaResponse` of Nomad's API. Empty parts are empty, not null.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeMetadata {
    meta: BTreeMap<String, String>,
    dynamic: BTreeMap<String, Option<String>>,
    #[serde(rename = "Static")]
    configured: BTreeMap<String, String>,
}

impl From<NodeMetaResponse> for NodeMetadata {
    fn from(reply: NodeMetaResponse) -> NodeMetadata {
        NodeMetadata { meta: reply.meta.0, dynamic: reply.dynamic.0, configured: reply.configured.0 }
    }
}

/// `NodeMetaApplyRequest` of Nomad's API.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct MetadataChanges {
    #[serde(rename = "NodeID")]
    node_id: String,
    /// Null takes a key away.
    meta: Map<String, Option<String>>,
}

async fn read(With(server): With<AppState>, call: Call<ReadNodes>) -> Answer {
    let node = named_node(&server, call.params.get("node_id").unwrap_or_default())?;
    let request = NodeSpecificRequest {
        node_id: node.to_string(),
        query: query(&server, &call.access),
        ..Default::default()
    };
    let reply: NodeMetaResponse = server.ask(node, method::NODE_META_READ, &request).await?;
    Ok(answer::json(&NodeMetadata::from(reply)))
}

async fn apply(
    With(server): With<AppState>,
    call: Call<WriteNodes>,
    Json(changes): Json<MetadataChanges>,
) -> Answer {
    let named = Some(changes.node_id.as_str()).filter(|id| !id.is_empty());
    let node = named_node(&server, named.or_else(|| call.params.get("node_id")).unwrap_or_default())?;
    if changes.meta.is_empty() {
        return Err(Failure::invalid("missing required Meta object"));
    }
    let request = NodeMetaApplyRequest {
        node_id: node.to_string(),
        meta: changes.meta,
        query: query(&server, &call.access),
    };
    let reply: NodeMetaResponse = server.ask(node, method::NODE_META_APPLY, &request).await?;
    Ok(answer::json(&NodeMetadata::from(reply)))
}
