//! The log of an agent as it is written: this one's, a node's or another server's.

use axum::Router;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::stream;
use monitor::{Follow, FollowError, Lines};
use wire::messages::{AgentMonitorRequest, method};

use super::client_alloc::{encode, named_node, query};
use super::client_fs::TEXT;
use crate::access::ReadAgent;
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::frames::Frames;
use crate::request::Call;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/agent/monitor", get(follow))
}

async fn follow(With(server): With<AppState>, call: Call<ReadAgent>) -> Answer {
    let request = request(&server, &call)?;
    let wanted = Follow::try_from(&request)?;
    let body = match agent_place(&server, &request.node_id, &request.server_id)? {
        AgentPlace::Here => local(server.log.follow(&wanted)?),
        AgentPlace::Node(node) => {
            let frames = server.node_rpc.stream(node, method::AGENT_MONITOR, encode(&request)?).await?;
            Frames::begin(frames, true).await?.into_body()
        }
        AgentPlace::Server(address) => {
            let link = &server.node_rpc;
            let frames = link.stream_of_server(&address, method::AGENT_MONITOR, encode(&request)?).await?;
            Frames::begin(frames, true).await?.into_body()
        }
    };
    Ok(([(header::CONTENT_TYPE, TEXT)], body).into_response())
}

/// Which agent is asked.
pub(super) enum AgentPlace {
    Here,
    Node(model::NodeId),
    /// By its RPC address.
    Server(String),
}

/// Without ids it is this agent.
pub(super) fn agent_place(server: &AppState, node_id: &str, server_id: &str) -> Result<AgentPlace, Failure> {
    match (node_id, server_id) {
        ("", "") => Ok(AgentPlace::Here),
        (node, "") => Ok(AgentPlace::Node(named_node(server, node)?)),
        ("", name) => {
            let unknown = || Failure::not_found(format!("unknown Nomad server {name}"));
            let address = server.cluster.find(name).ok_or_else(unknown)?;
            let is_own = address == server.agent.rpc_addr;
            Ok(if is_own { AgentPlace::Here } else { AgentPlace::Server(address) })
        }
        _ => Err(Failure::invalid("Cannot target node and server simultaneously")),
    }
}

fn request(server: &AppState, call: &Call<ReadAgent>) -> Result<AgentMonitorRequest, Failure> {
    let text = |name| call.params.get(name).unwrap_or_default().to_string();
    let switch = |name| {
        let unknown = |error| Failure::invalid(format!("Unknown option for {name}: {error}"));
        call.params.boolean(name).map_err(unknown)
    };
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

impl From<FollowError> for Failure {
    fn from(error: FollowError) -> Failure {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Failure::new(status, error.to_string())
    }
}
