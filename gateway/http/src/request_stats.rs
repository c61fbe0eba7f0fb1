//! How many requests there were and how long they took.

use std::time::Instant;

use axum::extract::{Request, State as With};
use axum::middleware::Next;
use axum::response::Response;

use crate::app_state::AppState;

/// Measures every request that comes to a route.
pub(crate) async fn measure(With(server): With<AppState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let response = next.run(request).await;
    let now = Instant::now();
    server.request_stats.happened("sojourn.http.requests_total", now);
    server.request_stats.took("sojourn.http.request_time", now, began.elapsed());
    response
}
