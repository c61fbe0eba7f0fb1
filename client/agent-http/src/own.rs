//! What the agent answers itself: it also does while no server is reached.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{AgentHealth, AgentHealthResponse, AgentSelf, Params};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, put};
use axum::{Json, Router};
use base::Time;
use metrics::{EXPOSITION_TYPE, exposition, summary};
use tokio::runtime::Handle;

use crate::{NodeAgent, rights};

type Agent = State<Arc<NodeAgent>>;
type Pairs = Query<Vec<(String, String)>>;

pub(crate) fn router(agent: &Arc<NodeAgent>) -> Router<Arc<NodeAgent>> {
    let server_only = async || (StatusCode::BAD_REQUEST, "Server only endpoint");
    let invalid = async || (StatusCode::NOT_IMPLEMENTED, "Invalid method");
    Router::new()
        .route("/v1/agent/self", get(own))
        .route("/v1/agent/reload", put(reload).post(reload))
        .route("/v1/agent/servers", get(servers).merge(put(change_servers).post(change_servers)))
        .route_layer(from_fn_with_state(agent.clone(), rights::check))
        // As of every agent of Nomad, for whoever watches over it.
        .route("/v1/agent/health", get(health))
        .route("/v1/metrics", get(figures))
        .route("/v1/agent/join", any(invalid))
        .route("/v1/agent/force-leave", any(invalid))
        .route("/v1/agent/keyring/{op}", any(invalid))
        .route("/v1/agent/schedulers", any(server_only))
        .route("/v1/agent/schedulers/config", any(server_only))
}

async fn own(State(agent): Agent) -> Json<AgentSelf> {
    let node = &agent.node;
    let heartbeat = *node.contact.last_beat.borrow();
    let never = || "never".to_string();
    let stats = [
        ("node_id", node.context.node().id.clone()),
        ("known_servers", agent.servers.known().join(",")),
        ("num_allocations", node.allocs.all().len().to_string()),
        ("last_heartbeat", heartbeat.map_or_else(never, |beat| seconds(beat.at.elapsed()))),
        ("heartbeat_ttl", heartbeat.map_or_else(never, |beat| seconds(beat.ttl))),
    ];
    let stats = stats.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    Json(AgentSelf {
        config: agent.config.shown().into_iter().collect(),
        stats: [("client".to_string(), stats)].into_iter().collect(),
        ..AgentSelf::default()
    })
}

/// Reads the configuration again, as SIGHUP does.
async fn reload(State(agent): Agent) -> Result<Json<serde_json::Value>, (StatusCode, String)> {
    let failed = |why| (StatusCode::INTERNAL_SERVER_ERROR, why);
    let reloading = tokio::task::spawn_blocking(move || agent.config.reload()).await;
    let reloaded = reloading.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    Ok(Json(serde_json::json!({"Applied": reloaded.applied, "NeedsRestart": reloaded.needs_restart})))
}

fn seconds(span: Duration) -> String {
    format!("{:.1}s", span.as_secs_f64())
}

/// A server that is asked for is not there, and so not healthy.
async fn health(State(agent): Agent, Query(pairs): Pairs) -> Response {
    let params = Params::new(pairs);
    let asked: Vec<&str> = params.all("type").collect();
    let client = (asked.is_empty() || asked.contains(&"client")).then(|| node_health(&agent));
    let server = asked
        .contains(&"server")
        .then(|| AgentHealth { ok: false, message: "server not enabled".to_string() });
    let health = AgentHealthResponse { client, server };
    if health.client.iter().chain(&health.server).all(|part| part.ok) {
        return Json(health).into_response();
    }
    let text = serde_json::to_string(&health).expect("types of the HTTP API have a JSON form");
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

/// The servers have had a heartbeat of the node within the time that they gave it.
fn node_health(agent: &NodeAgent) -> AgentHealth {
    let heartbeat = *agent.node.contact.last_beat.borrow();
    let message = match heartbeat {
        None => "not registered",
        Some(beat) if beat.at.elapsed() > beat.ttl => "no recent heartbeat",
        Some(_) => "ok",
    };
    AgentHealth { ok: message == "ok", message: message.to_string() }
}

/// Those of the node: servers speak for themselves.
async fn figures(State(agent): Agent, Query(pairs): Pairs) -> Response {
    let is_prometheus = Params::new(pairs).get("format") == Some("prometheus");
    if is_prometheus && !agent.prometheus {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Prometheus is not enabled").into_response();
    }
    let mut figures = agent.figures.read(Instant::now()).await;
    figures.gauges.extend(metrics::process(Handle::current().metrics().num_alive_tasks()));
    figures.host = agent.metrics_host.clone();
    if is_prometheus {
        return ([(header::CONTENT_TYPE, EXPOSITION_TYPE)], exposition(&figures)).into_response();
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Json(summary(&figures, Time::ZERO.plus(since.into()))).into_response()
}

async fn servers(State(agent): Agent) -> Json<Vec<String>> {
    let mut known = agent.servers.known();
    known.sort();
    Json(known)
}

async fn change_servers(State(agent): Agent, Query(pairs): Pairs) -> Response {
    let invalid = |why: String| (StatusCode::BAD_REQUEST, why).into_response();
    let servers = match Params::new(pairs).server_addresses() {
        Ok(servers) => servers,
        Err(why) => return invalid(why.to_string()),
    };
    match agent.servers.replace(servers).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(why) => invalid(why.to_string()),
    }
}
