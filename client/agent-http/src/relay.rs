//! Passes requests on to a server: one stream of the node's connection for each.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::uri::{PathAndQuery, Uri};
use axum::response::{IntoResponse, Response};
use node::server::ServerError;
use wire::messages::method;

use crate::NodeAgent;

/// Routes that without a node's id mean the node of the agent that is asked.
const OWN_NODE: [&str; 8] = [
    "/v1/agent/host",
    "/v1/agent/monitor",
    "/v1/agent/monitor/export",
    "/v1/client/gc",
    "/v1/client/identity",
    "/v1/client/identity/renew",
    "/v1/client/metadata",
    "/v1/client/stats",
];

pub(crate) async fn pass_on(State(agent): State<Arc<NodeAgent>>, mut request: Request) -> Response {
    if !agent.ui && is_page(request.uri().path()) {
        let why = "the web page is switched off here: ui { enabled = true } switches it on";
        return (StatusCode::NOT_FOUND, why).into_response();
    }
    *request.uri_mut() = destination(request.uri(), &agent.node.context.node().id);
    match exchange(&agent, request).await {
        Ok(response) => response,
        Err(why) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("No path to a server: {why}")).into_response()
        }
    }
}

/// The web page of the server, and what leads there.
fn is_page(path: &str) -> bool {
    path == "/" || path == "/ui" || path.starts_with("/ui/")
}

/// The path and query alone, with the id of this node where the route is about one and names none.
fn destination(uri: &Uri, node: &str) -> Uri {
    let own = format!("node_id={node}");
    let given = uri.query().unwrap_or_default().split('&');
    let mut pairs: Vec<&str> = given.filter(|pair| !matches!(*pair, "" | "node_id=")).collect();
    let is_named = |pair: &&str| pair.starts_with("node_id=") || pair.starts_with("server_id=");
    if OWN_NODE.contains(&uri.path()) && !pairs.iter().any(is_named) {
        pairs.push(&own);
    }
    let text = match pairs.is_empty() {
        true => uri.path().to_string(),
        false => format!("{}?{}", uri.path(), pairs.join("&")),
    };
    // It came as a path and query, and an id changes nothing about that.
    text.parse::<PathAndQuery>().map_or_else(|_| uri.clone(), Uri::from)
}

async fn exchange(agent: &NodeAgent, request: Request) -> Result<Response, RelayError> {
    let stream = agent.servers.open_stream(method::HTTP).await?.into_io();
    Ok(listener::pass_on(stream, request, ()).await?)
}

#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Pass(#[from] listener::PassError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_told_from_the_api() {
        assert!(["/", "/ui", "/ui/", "/ui/jobs/v1"].into_iter().all(is_page));
        assert!(!["/v1/jobs", "/v1/ui/", "/uix", "/.well-known/jwks.json"].into_iter().any(is_page));
    }

    #[test]
    fn a_route_about_a_node_means_this_one_unless_it_names_another() {
        let at = |uri: &'static str| destination(&Uri::from_static(uri), "n1").to_string();
        assert_eq!(at("/v1/jobs?prefix=a%2Fb&pretty"), "/v1/jobs?prefix=a%2Fb&pretty");
        assert_eq!(at("http://host:4646/v1/jobs"), "/v1/jobs");
        assert_eq!(at("/v1/client/stats"), "/v1/client/stats?node_id=n1");
        assert_eq!(at("/v1/client/stats?node_id="), "/v1/client/stats?node_id=n1");
        assert_eq!(at("/v1/agent/monitor?plain=true"), "/v1/agent/monitor?plain=true&node_id=n1");
        for named in ["/v1/client/stats?node_id=n2", "/v1/agent/monitor?plain=true&server_id=s1"] {
            assert_eq!(at(named), named);
        }
    }
}
