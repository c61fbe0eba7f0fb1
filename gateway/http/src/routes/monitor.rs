//! The log of an agent, as it is written and as it was: this one's, a node's or another server's.

use axum::Router;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::stream;
use monitor::{Export, ExportError, Exported, Follow, FollowError, Lines};
use serde::Serialize;
use wire::messages::{AgentMonitorExportRequest, AgentMonitorRequest, method};

use super::client_alloc::{encode, named_node, query};
use super::client_fs::TEXT;
use crate::access::ReadAgent;
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::frames::Frames;
use crate::request::Call;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/agent/monitor", get(follow)).route("/v1/agent/monitor/export", get(export))
}

async fn follow(With(server): With<AppState>, call: Call<ReadAgent>) -> Answer {
    let request = request(&server, &call)?;
    let wanted = Follow::try_from(&request)?;
    let body = match agent_place(&server, &request.node_id, &request.server_id)? {
        AgentPlace::Here => local(server.log.follow(&wanted)?),
        AgentPlace::Away(agent) => remote(&server, agent, method::AGENT_MONITOR, &request).await?,
    };
    Ok(([(header::CONTENT_TYPE, TEXT)], body).into_response())
}

/// What was logged before.
async fn export(With(server): With<AppState>, call: Call<ReadAgent>) -> Answer {
    let request = export_request(&server, &call)?;
    let wanted = Export::try_from(&request)?;
    let body = match agent_place(&server, &request.node_id, &request.server_id)? {
        AgentPlace::Here => exported(server.log.export(&wanted).await?),
        AgentPlace::Away(agent) => remote(&server, agent, method::AGENT_MONITOR_EXPORT, &request).await?,
    };
    Ok(([(header::CONTENT_TYPE, TEXT)], body).into_response())
}

/// The stream of another agent.
async fn remote(
    server: &AppState,
    agent: OtherAgent,
    method: &'static str,
    request: &impl Serialize,
) -> Result<Body, Failure> {
    let (link, request) = (&server.node_rpc, encode(request)?);
    let frames = match agent {
        OtherAgent::Node(node) => link.stream(node, method, request).await?,
        OtherAgent::Server(address) => link.stream_of_server(&address, method, request).await?,
    };
    Ok(Frames::begin(frames, true).await?.into_body())
}

/// Which agent is asked.
pub(super) enum AgentPlace {
    Here,
    Away(OtherAgent),
}

pub(super) enum OtherAgent {
    Node(model::NodeId),
    /// By its RPC address.
    Server(String),
}

/// Without ids it is this agent.
pub(super) fn agent_place(server: &AppState, node_id: &str, server_id: &str) -> Result<AgentPlace, Failure> {
    match (node_id, server_id) {
        ("", "") => Ok(AgentPlace::Here),
        (node, "") => Ok(AgentPlace::Away(OtherAgent::Node(named_node(server, node)?))),
        ("", name) => {
            let unknown = || Failure::not_found(format!("unknown Nomad server {name}"));
            let address = server.cluster.find(name).ok_or_else(unknown)?;
            let is_own = address == server.agent.rpc_addr;
            Ok(if is_own { AgentPlace::Here } else { AgentPlace::Away(OtherAgent::Server(address)) })
        }
        _ => Err(Failure::invalid("Cannot target node and server simultaneously")),
    }
}

fn switch(call: &Call<ReadAgent>, name: &'static str) -> Result<bool, Failure> {
    let unknown = |error| Failure::invalid(format!("Unknown option for {name}: {error}"));
    call.params.boolean(name).map_err(unknown)
}

fn export_request(server: &AppState, call: &Call<ReadAgent>) -> Result<AgentMonitorExportRequest, Failure> {
    let text = |name| call.params.get(name).unwrap_or_default().to_string();
    Ok(AgentMonitorExportRequest {
        logs_since: text("logs_since"),
        service_name: text("service_name"),
        on_disk: switch(call, "on_disk")?,
        follow: switch(call, "follow")?,
        node_id: text("node_id"),
        server_id: text("server_id"),
        plain_text: switch(call, "plain")?,
        query: query(server, &call.access),
    })
}

fn request(server: &AppState, call: &Call<ReadAgent>) -> Result<AgentMonitorRequest, Failure> {
    let text = |name| call.params.get(name).unwrap_or_default().to_string();
    let switch = |name| switch(call, name);
    Ok(AgentMonitorRequest {
        log_level: text("log_level"),
        log_json: switch("log_json")?,
        log_include_location: switch("log_include_location")?,
        node_id: text("node_id"),
        server_id: text("server_id"),
        plain_text: switch("plain")?,
        query: query(server, &call.access),
    })
}

/// Ends with its reader.
fn local(lines: Lines) -> Body {
    Body::from_stream(stream::unfold(lines, |mut lines| async {
        let piece = lines.next().await;
        Some((Ok::<_, std::convert::Infallible>(piece), lines))
    }))
}

/// An error in it ends the connection: the status was sent before.
fn exported(exported: Exported) -> Body {
    Body::from_stream(stream::try_unfold(exported, |mut exported| async {
        Ok::<_, std::io::Error>(exported.next().await?.map(|piece| (piece, exported)))
    }))
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Failure {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Failure::new(status, error.to_string())
    }
}

impl From<FollowError> for Failure {
    fn from(error: FollowError) -> Failure {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Failure::new(status, error.to_string())
    }
}
