//! What we add to Nomad's API, described for programs.

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app_state::AppState;

const DOCUMENT: &str = include_str!("../../../api/nomad/openapi.json");

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/openapi.json", get(document))
}

async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}
