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
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::error::Failure;
use crate::frames::Frames;
use crate::request::Call;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/agent/monitor", get(follow))
}

async fn follow(With(server): With<AppState>, call: Call) -> Answer {
    let request = request(&server, &call)?;
    let wanted = Follow::try_from(&request)?;
    let body = match log_source(&server, &request)? {
        LogSource::Here => local(server.log.follow(&wanted)?),
        LogSource::Node(node) => {
            let frames = server.node_rpc.stream(node, method::AGENT_MONITOR, encode(&request)?).await?;
            Frames::begin(frames, true).await?.into_body()
        }
        LogSource::Server(address) => {
            let link = &server.node_rpc;
            let frames = link.stream_of_server(&address, method::AGENT_MONITOR, encode(&request)?).await?;
            Frames::begin(frames, true).await?.into_body()
        }
    };
    Ok(([(header::CONTENT_TYPE, TEXT)], body).into_response())
}

/// Whose log.
enum LogSource {
    Here,
    Node(model::NodeId),
    /// By its RPC address.
    Server(String),
}

fn log_source(server: &AppState, request: &AgentMonitorRequest) -> Result<LogSource, Failure> {
    match (request.node_id.as_str(), request.server_id.as_str()) {
        ("", "") => Ok(LogSource::Here),
        (node, "") => Ok(LogSource::Node(named_node(server, node)?)),
        ("", name) => {
            let unknown = || Failure::not_found(format!("unknown Nomad server {name}"));
            let address = server.cluster.find(name).ok_or_else(unknown)?;
            Ok(if address == server.agent.rpc_addr { LogSource::Here } else { LogSource::Server(address) })
        }
        _ => Err(Failure::invalid("Cannot target node and server simultaneously")),
    }
}

fn request(server: &AppState, call: &Call) -> Result<AgentMonitorRequest, Failure> {
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
        query: query(server),
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
