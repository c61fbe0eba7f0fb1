//! What the host of an agent looks like: this one's, a node's or another server's.

use axum::Router;
use axum::extract::State as With;
use axum::routing::get;

use api::HostDataResponse;
use wire::messages::{HostDataRequest, method};

use super::client_alloc::{encode, query};
use super::monitor::{AgentPlace, OtherAgent, agent_place};
use crate::access::{ReadAgent, denied};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::Call;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/agent/host", get(host))
}

async fn host(With(server): With<AppState>, call: Call<ReadAgent>) -> Answer {
    let text = |name| call.params.get(name).unwrap_or_default().to_string();
    let request = HostDataRequest {
        node_id: text("node_id"),
        server_id: text("server_id"),
        query: query(&server, &call.access),
    };
    let host: HostDataResponse = match agent_place(&server, &request.node_id, &request.server_id)? {
        AgentPlace::Here => own(&server).await?,
        AgentPlace::Away(OtherAgent::Node(node)) => server.ask(node, method::AGENT_HOST, &request).await?,
        AgentPlace::Away(OtherAgent::Server(address)) => {
            let link = &server.node_rpc;
            let reply = link.call_server(&address, method::AGENT_HOST, encode(&request)?).await?;
            let unreadable = |error| Failure::internal(format!("the answer of {address}: {error}"));
            msgpack::from_slice(&reply).map_err(unreadable)?
        }
    };
    Ok(answer::json(&host))
}

/// As in Nomad, without access control only an agent that may be debugged shows its host.
async fn own(server: &AppState) -> Result<HostDataResponse, Failure> {
    if !server.agent.debug && !server.agent.access.enabled {
        return Err(denied());
    }
    let own_node = server.agent.node.map(|node| node.to_string());
    let host_data = tokio::task::spawn_blocking(monitor::host_data).await?;
    Ok(HostDataResponse {
        agent_id: own_node.unwrap_or_else(|| server.agent.server.to_string()),
        host_data: Some(host_data),
    })
}
