//! The HTTP API of an agent without a server.
//!
//! It answers for itself what is asked about itself, and passes everything else on to a server, over the connection that
//! its node has anyway. What concerns its node goes that way too: servers reach nodes, wherever they are.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod own;
mod relay;
mod rights;
mod snapshot;
mod task;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use metrics::NodeFigures;
use monitor::AgentConfig;
use node::{LocalNode, WireServers};

pub use snapshot::router as node_routes;

/// What the routes use.
#[derive(Clone)]
pub struct NodeAgent {
    pub node: LocalNode,
    pub servers: Arc<WireServers>,
    pub config: Arc<dyn AgentConfig>,
    /// The metrics of the node.
    pub figures: NodeFigures,
    /// Metrics are also given in the text form of Prometheus.
    pub prometheus: bool,
    /// The web page of the servers is shown here too.
    pub ui: bool,
    /// Who asks about this agent needs a right to it, which the servers know of.
    pub access_control: bool,
    /// What the label `host` of metrics says; none without one.
    pub metrics_host: Option<String>,
    /// Put on every answer.
    pub response_headers: BTreeMap<String, String>,
}

/// The whole API.
pub fn router(agent: Arc<NodeAgent>) -> Router {
    let headers = agent.response_headers.iter();
    let headers: HeaderMap =
        headers.filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?))).collect();
    let own_node = node_routes(agent.node.clone());
    let routes = own::router(&agent).fallback(relay::pass_on).with_state(agent).merge(own_node);
    routes.layer(from_fn_with_state(Arc::new(headers), add_headers))
}

/// The same for a task of the node: every request has to prove whose it is, whatever holds for others.
pub fn task_router(agent: Arc<NodeAgent>) -> Router {
    let check = from_fn_with_state(Arc::clone(&agent), task::check);
    router(agent).layer(check)
}

async fn add_headers(State(headers): State<Arc<HeaderMap>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    // The server that answered may have put its own there.
    for (name, value) in headers.iter() {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    response
}
