//! A command inside a task, over a WebSocket. What the caller says is JSON here and msgpack on its way to the node; what
//! the node says is JSON already.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, Path, Query, State as With};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval_at, timeout};
use wire::messages::{AllocExecRequest, ExecInputFrame, ExecStdin, ExecTtySize, StreamFrameWrapper, method};
use wire::{CallerAddress, FrameReceiver, FrameSender, RemoteError};

use api::{ExecHandshake, ExecInput, Params};
use model::AllocId;

use super::client_alloc::{open_to_all_origins, query};
use crate::access::{Access, AllocExec, AllocNodeExec, presented};
use crate::app_state::AppState;
use crate::error::Failure;

/// Sessions of one server at once; more are rejected. Each holds at most one message in each direction besides what
/// the sockets hold.
pub(super) const SESSIONS_MAX: usize = 512;

/// Longest message of a caller. Clients send pieces of some ten kilobytes.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// How long a caller who announced a first message may take to send it.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A caller that is written to is found to be gone, also while nothing it sends is read because the command does not
/// read.
const PING_EVERY: Duration = Duration::from_secs(5);

/// How long the close frame may take to be sent and answered.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// Longest reason that a close frame holds.
const REASON_BYTES_MAX: usize = 123;

/// Drivers whose tasks have files of their own.
const ISOLATED: [&str; 5] = ["docker", "exec", "java", "podman", "qemu"];

const HANDSHAKE_VERSION: i64 = 1;

type ToCaller = SplitSink<WebSocket, Message>;
type FromCaller = SplitStream<WebSocket>;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/client/allocation/{id}/exec", get(exec))
        .layer(map_response(open_to_all_origins))
        .route("/v1/job/{id}/action", get(action))
        .layer(Extension(SessionSlots(Arc::new(Semaphore::new(SESSIONS_MAX)))))
}

#[derive(Clone)]
struct SessionSlots(Arc<Semaphore>);

/// What was asked for, as it was written.
struct ExecQuery {
    named: Named,
    uri: Uri,
    token: Result<String, Failure>,
    address: Option<IpAddr>,
}

/// What the path names.
enum Named {
    /// An allocation; the command is a parameter.
    Alloc(String),
    /// A job; the allocation is a parameter, and so is the name of the action whose command is run.
    Job(String),
}

/// Why a session is over.
enum SessionEnd {
    /// The command has ended, and its exit code was sent.
    Done,
    /// The caller has disconnected: nothing more is sent.
    Left,
    /// This server stops.
    Stopping,
    Failed(Failure),
}

impl From<Failure> for SessionEnd {
    fn from(failure: Failure) -> SessionEnd {
        SessionEnd::Failed(failure)
    }
}

impl From<wire::RpcError> for SessionEnd {
    fn from(error: wire::RpcError) -> SessionEnd {
        SessionEnd::Failed(error.into())
    }
}

/// What came with the request besides its path: where it came from last.
type Asked = (Uri, HeaderMap, Option<Extension<CallerAddress>>);

type MaybeUpgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

async fn exec(
    With(server): With<AppState>,
    Path(alloc): Path<String>,
    Extension(slots): Extension<SessionSlots>,
    asked: Asked,
    socket: MaybeUpgrade,
) -> Response {
    upgrade(server, slots, Named::Alloc(alloc), asked, socket)
}

async fn action(
    With(server): With<AppState>,
    Path(job): Path<String>,
    Extension(slots): Extension<SessionSlots>,
    asked: Asked,
    socket: MaybeUpgrade,
) -> Response {
    upgrade(server, slots, Named::Job(job), asked, socket)
}

/// Everything is checked after the upgrade: a browser shows no other answer.
fn upgrade(
    server: AppState,
    slots: SessionSlots,
    named: Named,
    (uri, headers, caller): Asked,
    socket: MaybeUpgrade,
) -> Response {
    let upgrade = match socket {
        Ok(upgrade) => upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX),
        Err(rejection) => return Failure::invalid(rejection.body_text()).into_response(),
    };
    let ask = ExecQuery {
        named,
        uri,
        token: presented(&headers),
        address: caller.and_then(|Extension(caller)| caller.0),
    };
    upgrade.on_upgrade(async move |socket| attend(server, slots, ask, socket).await)
}

async fn attend(server: AppState, SessionSlots(slots): SessionSlots, ask: ExecQuery, socket: WebSocket) {
    let (mut to, mut from) = socket.split();
    let mut stopping = server.events.closed();
    let end = match slots.try_acquire() {
        Err(_) => Failure::too_many("too many commands are run through this server").into(),
        Ok(_slot) => tokio::select! {
            end = session(&server, &ask, &mut to, &mut from) => end,
            _ = stopping.wait_for(|stop| *stop) => SessionEnd::Stopping,
        },
    };
    // The connection to the node ends with the server: the caller gets that reason, not the error that follows from it.
    let fails = matches!(end, SessionEnd::Failed(_)) && *stopping.borrow();
    let Some(last) = close_frame(if fails { SessionEnd::Stopping } else { end }) else { return };
    let farewell = async {
        // Read on until the caller has closed too: what is still unread would take the last word back.
        if to.send(Message::Close(Some(last))).await.is_ok() {
            while let Some(Ok(_)) = from.next().await {}
        }
    };
    // A caller that does not answer has left.
    let _answered = timeout(CLOSE_MAX, farewell).await;
}

fn close_frame(end: SessionEnd) -> Option<CloseFrame> {
    let (code, reason) = match &end {
        SessionEnd::Done => (close_code::NORMAL, ""),
        SessionEnd::Left => return None,
        SessionEnd::Stopping => (close_code::AWAY, "the server is shutting down"),
        SessionEnd::Failed(Failure { status: StatusCode::INTERNAL_SERVER_ERROR, text, .. }) => {
            (close_code::ERROR, text.as_str())
        }
        SessionEnd::Failed(failure) => (close_code::POLICY, failure.text.as_str()),
    };
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    Some(CloseFrame { code, reason: reason.into() })
}

async fn session(server: &AppState, ask: &ExecQuery, to: &mut ToCaller, from: &mut FromCaller) -> SessionEnd {
    let (to_node, from_node) = match begin(server, ask, from).await {
        Ok(halves) => halves,
        Err(end) => return end,
    };
    tokio::select! {
        end = pass_output(from_node, to) => end,
        end = pass_input(from, to_node) => end,
    }
}

/// From the parameters to the running command.
async fn begin(
    server: &AppState,
    ask: &ExecQuery,
    from: &mut FromCaller,
) -> Result<(FrameSender, FrameReceiver), SessionEnd> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&ask.uri);
    let params = pairs.map(|Query(pairs)| Params::new(pairs)).map_err(|e| Failure::invalid(e.body_text()))?;
    server.check_region(params.get("region").unwrap_or_default())?;
    let mut token = ask.token.clone()?;
    if params.boolean("ws_handshake").map_err(Failure::from)? {
        token = handshake(&token, from).await?;
    }
    let access = server.access_from(ask.address, &token).await?;
    let (id, cmd) = match &ask.named {
        Named::Alloc(id) => (id.as_str(), command(params.get("command").unwrap_or_default())?),
        Named::Job(job) => {
            // An allocation that cannot be found is Nomad's own failure here.
            let id = params.get("allocID").unwrap_or_default();
            server.running::<AllocExec>(&access, id).map_err(Failure::as_internal)?;
            (id, action_command(server, job, id, &params)?)
        }
    };
    let task = params.get("task").unwrap_or_default().to_string();
    if task.is_empty() {
        return Err(Failure::invalid("task name is not present").into());
    }
    let tty = params.boolean("tty").map_err(Failure::from)?;
    let (alloc, node) = server.running::<AllocExec>(&access, id)?;
    check_isolation(server, &access, alloc, &task)?;
    let request = AllocExecRequest {
        alloc_id: alloc.to_string(),
        task,
        tty,
        cmd: cmd.into(),
        query: query(server, &access),
    };
    let frames = server.node_rpc.open(node, method::ALLOCATIONS_EXEC).await.map_err(Failure::from)?;
    let (mut to_node, from_node) = frames.split();
    to_node.send(&request).await?;
    Ok((to_node, from_node))
}

/// The command of a task's action, in the version of the job that the allocation runs.
fn action_command(
    server: &AppState,
    job: &str,
    alloc: &str,
    params: &Params,
) -> Result<Vec<String>, Failure> {
    let state = server.control.state();
    let alloc = alloc.parse().ok().and_then(|id: AllocId| state.allocs.lookup(id));
    let alloc = alloc.ok_or_else(|| Failure::internal("the allocation is gone"))?;
    let key = &state.jobs.get(alloc.job).key;
    if key.id != job || key.namespace != params.namespace() {
        let text = format!("allocation {} does not belong to job {job:?}", alloc.id);
        return Err(Failure::invalid(text));
    }
    let given = |name| params.get(name).unwrap_or_default();
    let (task, name) = (given("task"), given("action"));
    let group = alloc.version.group(&alloc.group);
    let task_of_group = group.and_then(|group| group.tasks.iter().find(|known| known.name == task));
    let known = task_of_group.ok_or_else(|| Failure::invalid(format!("unknown task name {task:?}")))?;
    let action = known.actions.iter().find(|action| action.name == name);
    let action =
        action.ok_or_else(|| Failure::invalid(format!("action {name:?} not found in task {task:?}")))?;
    Ok([std::slice::from_ref(&action.command), &action.args[..]].concat())
}

fn command(text: &str) -> Result<Vec<String>, Failure> {
    let command: Vec<String> = serde_json::from_str(text)
        .map_err(|error| Failure::invalid(format!("command is not a JSON array of texts: {error}")))?;
    if command.is_empty() { Err(Failure::invalid("command is not present")) } else { Ok(command) }
}

/// A command beside a task that sees the files of its node is a command on the node.
fn check_isolation(server: &AppState, access: &Access, alloc: AllocId, task: &str) -> Result<(), Failure> {
    let state = server.control.state();
    let Some(alloc) = state.allocs.lookup(alloc) else { return Ok(()) };
    let group = alloc.version.group(&alloc.group);
    let task = group.and_then(|group| group.tasks.iter().find(|known| known.name == task));
    match task {
        Some(task) if ISOLATED.contains(&task.driver.as_str()) => Ok(()),
        _ => access.require::<AllocNodeExec>(&state.jobs.get(alloc.job).key.namespace),
    }
}

/// Browsers cannot set headers: their token comes in a first message.
async fn handshake(header: &str, from: &mut FromCaller) -> Result<String, SessionEnd> {
    let first = timeout(HANDSHAKE_MAX, next(from)).await;
    let late = |_| Failure::invalid("the handshake did not arrive in time");
    let Some(first) = first.map_err(late)?? else { return Err(SessionEnd::Left) };
    let handshake: ExecHandshake = serde_json::from_slice(&first)
        .map_err(|error| Failure::invalid(format!("malformed handshake: {error}")))?;
    if handshake.version != HANDSHAKE_VERSION {
        let text = format!("unsupported handshake version {}", handshake.version);
        return Err(Failure::invalid(text).into());
    }
    // Two tokens would let one be checked and the other be used.
    if !header.is_empty() && header != handshake.auth_token {
        return Err(Failure::invalid("the tokens of header and handshake differ").into());
    }
    Ok(handshake.auth_token)
}

/// The next words of the caller; `None` when it has left.
async fn next(from: &mut FromCaller) -> Result<Option<bytes::Bytes>, Failure> {
    loop {
        match from.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Some(text.into())),
            Some(Ok(Message::Binary(bytes))) => return Ok(Some(bytes)),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Ok(None),
            // Also a message that is too long: the caller gets the reason.
            Some(Err(error)) => return Err(Failure::invalid(error.to_string())),
        }
    }
}

/// One message after the other: while the node takes no more, the caller is not read.
async fn pass_input(from: &mut FromCaller, mut to_node: FrameSender) -> SessionEnd {
    loop {
        let words = match next(from).await {
            Ok(Some(words)) => words,
            Ok(None) => return SessionEnd::Left,
            Err(failure) => return failure.into(),
        };
        let input = match input(&words) {
            Ok(Some(input)) => input,
            Ok(None) => continue,
            Err(failure) => return failure.into(),
        };
        if to_node.send(&input).await.is_err() {
            // The reason is in what the node sends, or in how its side of the stream ends.
            return std::future::pending().await;
        }
    }
}

/// The words of the caller as the node reads them; `None` for a heartbeat.
fn input(words: &[u8]) -> Result<Option<ExecInputFrame>, Failure> {
    let ExecInput { stdin, tty_size } = model::document::input::from_slice(words)
        .map_err(|error| Failure::invalid(format!("malformed input for a command: {error}")))?;
    let input = ExecInputFrame {
        stdin: stdin.map(|piece| ExecStdin { data: piece.data, close: piece.close }),
        tty_size: tty_size.map(|size| ExecTtySize { height: size.height.into(), width: size.width.into() }),
    };
    Ok((input != ExecInputFrame::default()).then_some(input))
}

/// The part of an output that matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputStatus {
    exited: bool,
}

async fn pass_output(mut from_node: FrameReceiver, to: &mut ToCaller) -> SessionEnd {
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    let mut exited = false;
    loop {
        let message = tokio::select! {
            frame = from_node.receive::<StreamFrameWrapper>() => match output(frame) {
                // A frame without content is no message.
                Ok(Some(text)) if text.is_empty() => continue,
                Ok(Some(text)) => {
                    exited |= serde_json::from_str::<OutputStatus>(&text).is_ok_and(|last| last.exited);
                    Message::Text(text.into())
                }
                Ok(None) if exited => return SessionEnd::Done,
                Ok(None) => return Failure::internal("the node ended the session").into(),
                // How a node closes the stream after the exit matters no more.
                Err(_) if exited => return SessionEnd::Done,
                Err(failure) => return failure.into(),
            },
            _ = pings.tick() => Message::Ping(bytes::Bytes::new()),
        };
        if to.send(message).await.is_err() {
            return SessionEnd::Left;
        }
    }
}

fn output(frame: Result<Option<StreamFrameWrapper>, wire::RpcError>) -> Result<Option<String>, Failure> {
    let Some(frame) = frame? else { return Ok(None) };
    if let Some(error) = frame.error {
        return Err(RemoteError::from(error).into());
    }
    let text = String::from_utf8(frame.payload.0);
    text.map(Some).map_err(|_| Failure::internal("the node sent something else than text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_close_frame_has_the_matching_code_and_fits() {
        let word = |end| close_frame(end).map(|word| (word.code, word.reason.to_string()));
        assert_eq!(word(SessionEnd::Done), Some((1000, String::new())));
        assert_eq!(word(Failure::internal("boom").into()), Some((1011, "boom".to_string())));
        assert_eq!(word(Failure::not_found("gone").into()), Some((1008, "gone".to_string())));
        assert_eq!(word(SessionEnd::Left), None);
        let (_, long) = word(Failure::invalid("ä".repeat(100)).into()).unwrap();
        assert_eq!(long, "ä".repeat(61));
    }
}
