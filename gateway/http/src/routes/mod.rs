//! The routes, a file a noun: extract, submit or read, answer. Each file exports its `router()`.

mod absent;
mod acl;
mod agent;
mod agent_host;
mod allocations;
pub(crate) mod autopilot;
mod children;
mod client_alloc;
mod client_exec;
mod client_fs;
mod client_meta;
mod deployments;
mod doctor;
mod evaluations;
mod explain;
mod fork;
mod fuzzy;
mod gossip_keys;
mod history_files;
mod identities;
mod jobs;
pub(crate) mod keyring;
mod metrics;
mod monitor;
mod namespaces;
mod nodes;
mod openapi;
mod operator;
mod plan;
mod pools;
mod register;
mod scaling;
pub(crate) mod scheduler;
mod search;
mod services;
mod status;
mod statuses;
mod storage;
mod system;
mod ui;
mod upgrade;
mod variables;
mod volume_secrets;
mod volumes;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, put};
use tower::Layer;
use tower::util::MapRequestLayer;

pub use history_files::history_file;
pub(crate) use history_files::kept_part;
pub(crate) use register::{Checked, checked as checked_job, error_text};

use crate::answer;
use crate::app_state::{Api, AppState};
use crate::audit_layer;
use crate::cors;
use crate::elsewhere;
use crate::error::Failure;
use crate::gate::Gate;
use crate::path::whole_ids;
use crate::regions;
use crate::request::{BODY_MAX, read_named};
use crate::request_stats;

/// The whole API, and who may do what besides.
pub fn router(api: Api) -> (Router, Gate) {
    let headers = cors::configured(&api.agent.response_headers);
    let state = AppState::new(api);
    let gate = Gate(state.clone());
    let routes = Router::new()
        .merge(ui::router())
        .merge(jobs::router())
        .merge(register::router())
        .merge(statuses::router())
        .merge(system::router())
        .merge(children::router())
        .merge(scaling::router())
        .merge(services::router())
        .merge(plan::router())
        .merge(doctor::router())
        .merge(nodes::router())
        .merge(allocations::router())
        .merge(evaluations::router())
        .merge(explain::router())
        .merge(fork::router())
        .merge(search::router())
        .merge(fuzzy::router())
        .merge(gossip_keys::router())
        .merge(history_files::router())
        .merge(deployments::router())
        .merge(namespaces::router())
        .merge(client_alloc::router())
        .merge(client_exec::router())
        .merge(client_fs::router())
        .merge(client_meta::router())
        .merge(agent::router())
        .merge(agent_host::router())
        .merge(monitor::router())
        .merge(keyring::router())
        .merge(identities::router())
        .merge(status::router())
        .merge(metrics::router())
        .merge(openapi::router())
        .merge(operator::router())
        .merge(autopilot::router())
        .merge(upgrade::router())
        .merge(scheduler::router())
        .merge(pools::router())
        .merge(variables::router())
        .merge(volumes::router())
        .merge(crate::events::router())
        .merge(acl::router(&state))
        .merge(absent::router())
        .method_not_allowed_fallback(async || Failure::new(StatusCode::METHOD_NOT_ALLOWED, "Invalid method"))
        .layer(from_fn_with_state(state.clone(), read_named))
        .layer(from_fn(answer::finish))
        // Outside: what another server answers is finished.
        .layer(from_fn_with_state(state.clone(), elsewhere::point))
        .layer(from_fn_with_state(state.clone(), regions::forward))
        // Around all that reads a body, or its own much lower bound holds there.
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(state.clone(), request_stats::measure))
        .layer(from_fn(answer::contain_panics))
        .layer(from_fn_with_state(state.clone(), audit_layer::record))
        .layer(from_fn_with_state(Arc::new(headers), cors::preflight))
        .with_state(state);
    // Paths are put in shape before anything is routed, so the routes are behind a router without any.
    (Router::new().fallback_service(MapRequestLayer::new(whole_ids).layer(routes)), gate)
}

/// Writes take PUT and POST alike.
fn write<H, T>(handler: H) -> MethodRouter<AppState>
where
    H: Handler<T, AppState>,
    T: 'static,
{
    put(handler.clone()).post(handler)
}
