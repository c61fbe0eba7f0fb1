//! Files and logs of an allocation, read on its node and passed on.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::IntoResponse;
use axum::routing::any;
use wire::messages::{FsListResponse, FsLogsRequest, FsPathRequest, FsStatResponse, FsStreamRequest, method};

use api::{AllocFileInfo, Params, QueryError};

use super::client_alloc::{encode, open_to_all_origins, query};
use crate::access::{Access, ReadFiles, ReadLogs, Right, Somewhere};
use crate::answer::{self, Answer};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::frames::Frames;
use crate::request::Call;

/// Content that tasks have written is not trusted: browsers must not run it.
const UNTRUSTED: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_XSS_PROTECTION, HeaderValue::from_static("1; mode=block")),
];

pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Frames are JSON objects, one after the other.
const FRAMES: HeaderValue = HeaderValue::from_static("application/json");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

pub(super) fn router() -> Router<AppState> {
    let no_alloc = async |_: Call<Somewhere<ReadFiles>>| Failure::invalid("must provide a valid alloc id");
    Router::new()
        .route("/v1/client/fs/ls/{alloc}", any(list))
        .route("/v1/client/fs/stat/{alloc}", any(stat))
        .route("/v1/client/fs/cat/{alloc}", any(cat))
        .route("/v1/client/fs/readat/{alloc}", any(read_at))
        .route("/v1/client/fs/stream/{alloc}", any(follow))
        .route("/v1/client/fs/logs/{alloc}", any(logs))
        .route("/v1/client/fs/{verb}", any(no_alloc))
        .route("/v1/client/fs/{verb}/", any(no_alloc))
        .route("/v1/client/fs/{verb}/{alloc}", any(async || Failure::not_found("Invalid method")))
        .layer(map_response(open_to_all_origins))
}

async fn list(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadFiles>>,
) -> Answer {
    let (alloc, node) = server.running::<ReadFiles>(&call.access, &alloc)?;
    let path = call.params.get("path").filter(|path| !path.is_empty()).unwrap_or("/").to_string();
    let request = FsPathRequest { alloc_id: alloc.to_string(), path, query: query(&server, &call.access) };
    let reply: FsListResponse<AllocFileInfo> = server.ask(node, method::FILE_SYSTEM_LIST, &request).await?;
    Ok(answer::json(&reply.files.0))
}

async fn stat(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadFiles>>,
) -> Answer {
    let (alloc, node) = server.running::<ReadFiles>(&call.access, &alloc)?;
    let path = file_name(&call.params)?;
    let request = FsPathRequest { alloc_id: alloc.to_string(), path, query: query(&server, &call.access) };
    let reply: FsStatResponse<AllocFileInfo> = server.ask(node, method::FILE_SYSTEM_STAT, &request).await?;
    Ok(answer::json(&reply.info))
}

async fn cat(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadFiles>>,
) -> Answer {
    content(&server, &call, &alloc, file_name(&call.params)?, 0, 0).await
}

async fn read_at(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadFiles>>,
) -> Answer {
    let path = file_name(&call.params)?;
    let missing = || Failure::invalid("must provide an offset");
    let offset = call.params.number("offset").map_err(unreadable)?.ok_or_else(missing)?;
    let limit = call.params.number("limit").map_err(unreadable)?.unwrap_or(0);
    content(&server, &call, &alloc, path, offset, limit).await
}

async fn follow(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadFiles>>,
) -> Answer {
    let params = &call.params;
    let request = FsStreamRequest {
        alloc_id: alloc.clone(),
        path: file_name(params)?,
        offset: params.number("offset").map_err(unreadable)?.unwrap_or(0),
        origin: origin(params)?,
        follow: params.get("follow").is_none_or(str::is_empty)
            || params.boolean("follow").map_err(unreadable)?,
        query: query(&server, &call.access),
        ..FsStreamRequest::default()
    };
    let frames = server
        .frames::<ReadFiles, _>(&call.access, &alloc, method::FILE_SYSTEM_STREAM, &request, request.follow)
        .await?;
    Ok(([(header::CONTENT_TYPE, FRAMES)], frames.into_body()).into_response())
}

async fn logs(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    call: Call<Somewhere<ReadLogs>>,
) -> Answer {
    let params = &call.params;
    let task = params.get("task").unwrap_or_default();
    if task.is_empty() {
        return Err(Failure::invalid("must provide task name"));
    }
    let Some(log_type @ ("stdout" | "stderr")) = params.get("type") else {
        return Err(Failure::invalid("must provide log type (stdout/stderr)"));
    };
    let request = FsLogsRequest {
        alloc_id: alloc.clone(),
        task: task.to_string(),
        log_type: log_type.to_string(),
        offset: params.number("offset")?.unwrap_or(0),
        origin: origin(params)?,
        plain_text: params.boolean("plain")?,
        follow: params.boolean("follow")?,
        query: query(&server, &call.access),
    };
    let frames = server
        .frames::<ReadLogs, _>(&call.access, &alloc, method::FILE_SYSTEM_LOGS, &request, request.follow)
        .await?;
    let kind = if request.plain_text { TEXT } else { FRAMES };
    Ok(([(header::CONTENT_TYPE, kind)], frames.into_body()).into_response())
}

/// A file's bytes, from `offset` on, at most `limit` of them; 0 for all.
async fn content(
    server: &AppState,
    call: &Call<Somewhere<ReadFiles>>,
    alloc: &str,
    path: String,
    offset: i64,
    limit: i64,
) -> Answer {
    let request = FsStreamRequest {
        alloc_id: alloc.to_string(),
        path,
        offset,
        origin: "start".to_string(),
        plain_text: true,
        limit,
        follow: false,
        query: query(server, &call.access),
    };
    let frames = server
        .frames::<ReadFiles, _>(&call.access, alloc, method::FILE_SYSTEM_STREAM, &request, false)
        .await?;
    // What is not text is not shown as text; nothing is ever called a page.
    let kind = if looks_like_text(frames.first()) { TEXT } else { BINARY };
    let headers: HeaderMap = UNTRUSTED.into_iter().chain([(header::CONTENT_TYPE, kind)]).collect();
    Ok((headers, frames.into_body()).into_response())
}

impl AppState {
    /// Opens a stream of an allocation's node and waits for its first word.
    ///
    /// # Errors
    /// The node's own, with its code.
    async fn frames<R: Right, Q: serde::Serialize>(
        &self,
        access: &Access,
        alloc: &str,
        method: &str,
        request: &Q,
        follow: bool,
    ) -> Result<Frames, Failure> {
        let (_, node) = self.running::<R>(access, alloc)?;
        Frames::begin(self.node_rpc.stream(node, method, encode(request)?).await?, follow).await
    }
}

fn looks_like_text(first: &[u8]) -> bool {
    // The last character may continue in the next piece.
    let wrong = std::str::from_utf8(first).is_err_and(|error| error.error_len().is_some());
    !wrong && !first.contains(&0)
}

fn file_name(params: &Params) -> Result<String, Failure> {
    let path = params.get("path").filter(|path| !path.is_empty());
    path.map(str::to_string).ok_or_else(|| Failure::invalid("must provide a file name"))
}

/// Nomad's answer to invalid numbers, everywhere here but in logs.
fn unreadable(error: QueryError) -> Failure {
    Failure::internal(error.to_string())
}

fn origin(params: &Params) -> Result<String, Failure> {
    match params.get("origin") {
        None | Some("") => Ok("start".to_string()),
        Some(origin @ ("start" | "end")) => Ok(origin.to_string()),
        Some(_) => Err(Failure::invalid("origin must be start or end")),
    }
}
