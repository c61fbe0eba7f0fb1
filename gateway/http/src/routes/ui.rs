//! The web page, where Nomad has its own.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ui::{Asset, Form};

use crate::answer::accepts_gzip;
use crate::app_state::AppState;
use crate::error::Failure;

const NO_FILE: &str = "the web page has no such file";

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(home))
        .route("/ui", get(home))
        .route("/ui/", get(page))
        .route("/ui/{*path}", get(file))
}

/// With the query as it came.
async fn home(With(server): With<AppState>, uri: Uri) -> Result<Response, Failure> {
    check(&server)?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("/ui/{query}"))]).into_response())
}

async fn page(server: With<AppState>, headers: HeaderMap) -> Result<Response, Failure> {
    file(server, Path(String::new()), headers).await
}

async fn file(
    With(server): With<AppState>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    check(&server)?;
    if let Some(folder) = server.agent.ui_folder.clone() {
        return of_folder(folder, path, &headers).await;
    }
    let file = ui::at(&path).ok_or_else(|| Failure::not_found(NO_FILE))?;
    let gzip = accepts_gzip(&headers);
    let form = if gzip { &file.gzipped } else { &file.plain };
    let is_known = is_known(&headers, &form.etag);
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { whole(file, form) };
    mark(&mut response, ui::HEADERS, &form.etag);
    if gzip && !is_known {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// What the operator serves in place of our page.
async fn of_folder(folder: ui::Folder, path: String, headers: &HeaderMap) -> Result<Response, Failure> {
    let read = tokio::task::spawn_blocking(move || folder.at(&path)).await;
    let read = read.map_err(|panic| Failure::internal(panic.to_string()))?;
    let file = read.map_err(|error| Failure::internal(format!("ui.dir cannot be read: {error}")))?;
    let file = file.ok_or_else(|| Failure::not_found(NO_FILE))?;
    let etag = file.form.etag.clone();
    let mut response = match is_known(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, file.content_type)], file.form.bytes).into_response(),
    };
    mark(&mut response, ui::FOLDER_HEADERS, &etag);
    Ok(response)
}

fn mark(response: &mut Response, fixed: [(&'static str, &'static str); 4], etag: &str) {
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let etag = HeaderValue::from_str(etag).expect("a digest is text");
    response.headers_mut().insert(header::ETAG, etag);
}

/// # Errors
/// 404 where the operator has switched the page off.
fn check(server: &AppState) -> Result<(), Failure> {
    if server.agent.ui {
        return Ok(());
    }
    Err(Failure::not_found("the web page is switched off here: ui { enabled = true } switches it on"))
}

fn whole(file: &'static Asset, form: &'static Form) -> Response {
    ([(header::CONTENT_TYPE, file.content_type)], form.bytes.as_slice()).into_response()
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|known| names(known, etag))
}

/// A list of tags, each weak or strong, or a star for whatever there is.
fn names(known: &HeaderValue, etag: &str) -> bool {
    let tags = known.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.into_iter().any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
