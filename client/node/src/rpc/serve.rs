//! Calls of the servers to this node, over the connection that the node has made.
//!
//! The server has authorised the caller before: only servers reach these methods, and the node trusts its servers
//! with more than this.

use std::sync::atomic::Ordering;
use std::time::Duration;

use api::HostDataResponse;
use bytes::Bytes;
use model::document::{Map, shape::is_zero};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, mpsc};
use wire::messages::{
    AllocChecksResponse, AllocGetPauseResponse, AllocPauseRequest, AllocRestartRequest, AllocSignalRequest,
    AllocSpecificRequest, AllocStatsRequest, AllocStatsResponse, ClientStatsResponse, Empty, FsListResponse,
    FsLogsRequest, FsPathRequest, FsStatResponse, FsStreamRequest, GenericResponse, NodeIdentityResponse,
    NodeMetaApplyRequest, NodeMetaResponse, QueryMeta, StreamFrameWrapper, method,
};
use wire::{Connection, Frames, Handler, Opening, RemoteError, RemoteErrorKind, RpcError};

use super::exec::EXECS_MAX;
use crate::alloc::handle::{AllocCommand, AllocHandle};
use crate::files::{self, FRAMES_MAX, FsError, Origin, Root, logs, stream};
use crate::{LocalNode, driver, identity, stats};

/// A reader gets a frame at least this often, so that it knows that the node is alive.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long a node waits for its first identity when it is asked for it.
const IDENTITY_WITHIN: Duration = Duration::from_secs(5);

/// Answers the servers.
#[derive(Debug)]
pub struct Endpoints {
    pub(super) local: LocalNode,
    /// Limits the commands that run inside tasks.
    pub(super) execs: Semaphore,
}

impl Endpoints {
    pub fn new(local: LocalNode) -> Endpoints {
        Endpoints { local, execs: Semaphore::new(EXECS_MAX) }
    }

    pub(super) fn alloc(&self, id: &str) -> Result<AllocHandle, RemoteError> {
        let missing = || match self.local.allocs.is_inactive(id) {
            true => format!("state for allocation {id} not found on client").into(),
            false => RemoteError::unknown_alloc(id),
        };
        self.local.allocs.get(id).ok_or_else(missing)
    }

    async fn restart(&self, request: AllocRestartRequest) -> Result<GenericResponse, RemoteError> {
        if request.all_tasks && !request.task_name.is_empty() {
            return Err("cannot restart all tasks and a single task".into());
        }
        let (task, revive) = (some(request.task_name), request.all_tasks);
        self.alloc(&request.alloc_id)?.ask(|reply| AllocCommand::Restart { task, revive, reply }).await?;
        Ok(GenericResponse::default())
    }

    async fn signal(&self, request: AllocSignalRequest) -> Result<GenericResponse, RemoteError> {
        let alloc = self.alloc(&request.alloc_id)?;
        let name = if request.signal.is_empty() { "SIGKILL".to_string() } else { request.signal };
        let signal = driver::signal_named(&name).ok_or_else(|| format!("invalid signal: \"{name}\""))?;
        let task = some(request.task);
        alloc.ask(|reply| AllocCommand::Signal { task, signal, name, reply }).await?;
        Ok(GenericResponse::default())
    }

    /// What the token says that this node proves itself with.
    ///
    /// The first one comes with a heartbeat: a cluster that was just founded has no key to sign with before.
    async fn identity(&self) -> Result<NodeIdentityResponse, RemoteError> {
        let held = || identity::claims(&self.local.context.registration().identity);
        if held().is_none() {
            self.local.contact.beat_now(IDENTITY_WITHIN).await;
        }
        let claims = held().ok_or("this node has no identity: its servers have signed none yet")?;
        Ok(NodeIdentityResponse { claims: Map(claims) })
    }

    /// As in Nomad, only an agent that may be debugged shows its host.
    async fn host(&self) -> Result<HostDataResponse, RemoteError> {
        if !self.local.context.settings.debug {
            return Err(RemoteError::permission_denied());
        }
        let host_data = tokio::task::spawn_blocking(monitor::host_data).await.map_err(RemoteError::other)?;
        Ok(HostDataResponse { agent_id: self.local.context.node().id.clone(), host_data: Some(host_data) })
    }

    fn meta(&self) -> NodeMetaResponse {
        let context = &self.local.context;
        NodeMetaResponse {
            meta: context.node().meta.clone(),
            dynamic: Map(context.dynamic_meta().clone()),
            configured: Map(context.settings.meta.clone()),
        }
    }

    fn checks(&self, request: &AllocSpecificRequest) -> Result<AllocChecksResponse, RemoteError> {
        self.alloc(&request.alloc_id)?;
        let results = self.local.context.checks.of(&request.alloc_id);
        Ok(AllocChecksResponse { results: Map(results), meta: QueryMeta::default() })
    }

    /// Tasks with a schedule are rejected here, so no schedule holds one back.
    fn pause_state(&self, request: &AllocPauseRequest) -> Result<AllocGetPauseResponse, RemoteError> {
        self.check_task(request)?;
        Ok(AllocGetPauseResponse::default())
    }

    fn set_pause_state(&self, request: &AllocPauseRequest) -> Result<GenericResponse, RemoteError> {
        self.check_task(request)?;
        match request.task.as_str() {
            // Every task with a schedule, of which there are none.
            "" => Ok(GenericResponse::default()),
            task => Err(format!("task \"{task}\" has no schedule").into()),
        }
    }

    fn check_task(&self, request: &AllocPauseRequest) -> Result<(), RemoteError> {
        let (alloc, task) = (self.alloc(&request.alloc_id)?, &request.task);
        if task.is_empty() || alloc.tasks.state(task).is_some() {
            return Ok(());
        }
        Err(invalid(format!("unknown task name \"{task}\"")))
    }

    async fn alloc_stats(
        &self,
        request: AllocStatsRequest,
    ) -> Result<AllocStatsResponse<api::AllocResourceUsage>, RemoteError> {
        let alloc = self.alloc(&request.alloc_id)?;
        let usage = stats::of_alloc(&self.local.context, &request.alloc_id, &alloc, &request.task).await;
        Ok(AllocStatsResponse { stats: Some(usage), meta: QueryMeta::default() })
    }

    fn list(&self, request: &FsPathRequest) -> Result<FsListResponse<api::AllocFileInfo>, RemoteError> {
        let alloc = self.alloc(&request.alloc_id).map_err(not_found)?;
        let files = Root::open(alloc.dir.root()).and_then(|root| root.list(&request.path)).map_err(coded)?;
        Ok(FsListResponse { files: files.into(), meta: QueryMeta::default() })
    }

    fn stat(&self, request: &FsPathRequest) -> Result<FsStatResponse<api::AllocFileInfo>, RemoteError> {
        let alloc = self.alloc(&request.alloc_id).map_err(not_found)?;
        let info = Root::open(alloc.dir.root()).and_then(|root| root.stat(&request.path)).map_err(coded)?;
        Ok(FsStatResponse { info: Some(info), meta: QueryMeta::default() })
    }

    async fn stream_file(&self, opening: Opening) -> Result<(), RpcError> {
        let mut frames = opening.accept().await?;
        let Some(request) = frames.receive::<FsStreamRequest>().await? else { return Ok(()) };
        match self.open_file(&request) {
            Ok(opened) => {
                let (to, content) = mpsc::channel(FRAMES_MAX);
                let reading = async move { opened.send(&to).await };
                send(frames, reading, content, request.plain_text).await
            }
            Err(wrapper) => refuse(frames, wrapper).await,
        }
    }

    fn open_file(&self, request: &FsStreamRequest) -> Result<stream::OpenedFile, StreamFrameWrapper> {
        let alloc =
            self.alloc(&request.alloc_id).map_err(|error| StreamFrameWrapper::failure(404, error.message))?;
        let open = || -> Result<stream::OpenedFile, FsError> {
            let wanted = stream::StreamRequest {
                path: request.path.clone(),
                offset: request.offset,
                origin: request.origin.parse()?,
                limit: request.limit,
                follow: request.follow,
            };
            stream::open(Root::open(alloc.dir.root())?, wanted)
        };
        open().map_err(failure)
    }

    async fn stream_logs(&self, opening: Opening) -> Result<(), RpcError> {
        let mut frames = opening.accept().await?;
        let Some(request) = frames.receive::<FsLogsRequest>().await? else { return Ok(()) };
        match self.open_logs(&request) {
            Ok(opened) => {
                let (to, content) = mpsc::channel(FRAMES_MAX);
                let reading = async move { opened.send(&to).await };
                send(frames, reading, content, request.plain_text).await
            }
            Err(wrapper) => refuse(frames, wrapper).await,
        }
    }

    fn open_logs(&self, request: &FsLogsRequest) -> Result<logs::OpenedLogs, StreamFrameWrapper> {
        let alloc =
            self.alloc(&request.alloc_id).map_err(|error| StreamFrameWrapper::failure(404, error.message))?;
        let task = request.task.clone();
        if task.is_empty() {
            return Err(StreamFrameWrapper::failure(400, "must provide task name"));
        }
        match alloc.tasks.state(&task) {
            None => return Err(StreamFrameWrapper::failure(400, format!("unknown task name \"{task}\""))),
            Some(state) if state.started_at.is_zero() => {
                let text = format!("task \"{task}\" not started yet. No logs available");
                return Err(StreamFrameWrapper::failure(404, text));
            }
            Some(_) => {}
        }
        let origin: Origin = request.origin.parse().map_err(failure)?;
        let (stream, offset, follow) = (request.log_type.clone(), request.offset, request.follow);
        logs::open(&alloc.dir, &logs::LogsRequest { task, stream, offset, origin, follow }).map_err(failure)
    }
}

/// Passes frames on until the reading ends or the reader disconnects.
async fn send(
    frames: Frames,
    reading: impl Future<Output = Result<(), FsError>>,
    mut content: mpsc::Receiver<api::StreamFrame>,
    plain: bool,
) -> Result<(), RpcError> {
    let (mut to, mut from) = frames.split();
    // The file is open: the caller gets to know that before there is anything to read.
    to.send(&StreamFrameWrapper::default()).await?;
    let mut reading = std::pin::pin!(reading);
    let mut ended = None;
    loop {
        tokio::select! {
            result = &mut reading, if ended.is_none() => ended = Some(result),
            frame = content.recv() => match frame {
                Some(frame) => to.send(&wrap(frame, plain)).await?,
                None => break,
            },
            () = tokio::time::sleep(HEARTBEAT), if !plain => {
                to.send(&StreamFrameWrapper::content(b"{}".to_vec())).await?;
            }
            // A reader sends nothing more; what is received is the end of its connection.
            _ = from.receive_raw() => return Ok(()),
        }
    }
    if let Some(Err(error)) = ended {
        to.send(&failure(error)).await?;
    }
    to.finish().await
}

fn wrap(frame: api::StreamFrame, plain: bool) -> StreamFrameWrapper {
    if plain {
        return StreamFrameWrapper::content(frame.data.0);
    }
    StreamFrameWrapper::content(serde_json::to_vec(&frame).expect("a frame has no failing parts"))
}

pub(super) async fn refuse(mut frames: Frames, wrapper: StreamFrameWrapper) -> Result<(), RpcError> {
    frames.send(&wrapper).await?;
    frames.split().0.finish().await
}

fn failure(error: FsError) -> StreamFrameWrapper {
    StreamFrameWrapper::failure(error.status().into(), error.to_string())
}

/// For calls about the files of an allocation, which may have been garbage collected.
fn not_found(error: RemoteError) -> RemoteError {
    RemoteError { kind: RemoteErrorKind::Status(404), ..error }
}

fn invalid(message: impl ToString) -> RemoteError {
    RemoteError::new(RemoteErrorKind::Status(400), message)
}

fn coded(error: files::FsError) -> RemoteError {
    RemoteError::new(RemoteErrorKind::Status(error.status()), error)
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !is_zero(text))
}

pub(super) fn decode<T: DeserializeOwned>(body: &Bytes) -> Result<T, RemoteError> {
    msgpack::from_slice(body).map_err(|error| format!("malformed request: {error}").into())
}

pub(super) fn encode<T: Serialize>(answer: Result<T, RemoteError>) -> Result<Vec<u8>, RemoteError> {
    msgpack::to_vec(&answer?).map_err(RemoteError::other)
}

impl Handler for Endpoints {
    async fn call(&self, _: &Connection, method: &str, body: Bytes) -> Result<Vec<u8>, RemoteError> {
        match method {
            method::ALLOCATIONS_RESTART => encode(self.restart(decode(&body)?).await),
            method::ALLOCATIONS_SIGNAL => encode(self.signal(decode(&body)?).await),
            method::ALLOCATIONS_STATS => encode(self.alloc_stats(decode(&body)?).await),
            method::ALLOCATIONS_GARBAGE_COLLECT => {
                let request: AllocSpecificRequest = decode(&body)?;
                encode(
                    self.local.allocs.collect(&request.alloc_id).await.map(|()| GenericResponse::default()),
                )
            }
            method::ALLOCATIONS_GARBAGE_COLLECT_ALL => {
                self.local.allocs.collect_all().await;
                encode(Ok(GenericResponse::default()))
            }
            method::ALLOCATIONS_CHECKS => encode(self.checks(&decode(&body)?)),
            method::ALLOCATIONS_GET_PAUSE_STATE => encode(self.pause_state(&decode(&body)?)),
            method::ALLOCATIONS_SET_PAUSE_STATE => encode(self.set_pause_state(&decode(&body)?)),
            method::NODE_META_READ => encode(Ok(self.meta())),
            method::NODE_META_APPLY => {
                let request: NodeMetaApplyRequest = decode(&body)?;
                let changed = self.local.context.change_meta(request.meta.0).map(|()| self.meta());
                encode(changed.map_err(invalid))
            }
            method::NODE_IDENTITY_GET => encode(self.identity().await),
            method::NODE_IDENTITY_RENEW => {
                self.local.context.renew_identity.store(true, Ordering::Relaxed);
                encode(Ok(Empty {}))
            }
            method::CLIENT_STATS => {
                let host_stats = Some(stats::of_host(&self.local.context).await);
                encode(Ok(ClientStatsResponse { host_stats, meta: QueryMeta::default() }))
            }
            method::AGENT_HOST => encode(self.host().await),
            method::HOST_VOLUME_CREATE | method::HOST_VOLUME_REGISTER => {
                encode(self.local.context.create_volume(decode(&body)?).await.map_err(RemoteError::other))
            }
            method::HOST_VOLUME_DELETE => {
                encode(self.local.context.delete_volume(decode(&body)?).await.map_err(RemoteError::other))
            }
            method if method.starts_with("CSI.") => self.storage(method, &body).await,
            method::FILE_SYSTEM_LIST => encode(self.list(&decode(&body)?)),
            method::FILE_SYSTEM_STAT => encode(self.stat(&decode(&body)?)),
            other => Err(format!("rpc: can't find method {other}").into()),
        }
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        match method {
            method::FILE_SYSTEM_STREAM => self.stream_file(opening).await,
            method::FILE_SYSTEM_LOGS => self.stream_logs(opening).await,
            method::ALLOCATIONS_EXEC => self.exec(opening).await,
            method::AGENT_MONITOR => {
                // Servers have looked at who asks.
                monitor::serve(&self.local.context.settings.log, opening, async |_| Ok(())).await
            }
            method::AGENT_MONITOR_EXPORT => {
                monitor::serve_export(&self.local.context.settings.log, opening, async |_| Ok(())).await
            }
            other => opening.refuse(format!("unknown rpc method: \"{other}\"")).await,
        }
    }
}
