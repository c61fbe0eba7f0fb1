//! What servers ask of nodes, over the connection the node has made.

use serde::{Deserialize, Serialize};

use model::document::{Bytes, List, Map};

use super::{QueryMeta, QueryOptions};

/// `Allocations.Restart`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocRestartRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    /// Empty for every running task.
    pub task_name: String,
    /// Also those that have finished.
    pub all_tasks: bool,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// `Allocations.Signal`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocSignalRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    /// Empty for every task.
    pub task: String,
    pub signal: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// `Allocations.Stats`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocStatsRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    /// Empty for all tasks.
    pub task: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `Allocations.Stats`. `S` is Nomad's `AllocResourceUsage`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AllocStatsResponse<S> {
    pub stats: Option<S>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Answer of `ClientStats.Stats`, which is asked with a [`super::NodeSpecificRequest`]. `S` is Nomad's
/// `HostStats`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClientStatsResponse<S> {
    pub host_stats: Option<S>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// `FileSystem.List` and `FileSystem.Stat`: a path below the allocation's directory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FsPathRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub path: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `FileSystem.List`. `F` is Nomad's `AllocFileInfo`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FsListResponse<F> {
    #[serde(default)]
    pub files: List<F>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Answer of `FileSystem.Stat`. `F` is Nomad's `AllocFileInfo`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FsStatResponse<F> {
    pub info: Option<F>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// First message of `FileSystem.Stream`; [`StreamFrameWrapper`]s come back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FsStreamRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub path: String,
    pub offset: i64,
    /// `start` or `end`: what the offset counts from.
    pub origin: String,
    /// Payloads are content as it is, not JSON frames.
    pub plain_text: bool,
    /// In bytes; 0 for all.
    pub limit: i64,
    pub follow: bool,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// First message of `FileSystem.Logs`; [`StreamFrameWrapper`]s come back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FsLogsRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub task: String,
    /// `stdout` or `stderr`.
    pub log_type: String,
    pub offset: i64,
    /// `start` or `end`: what the offset counts from.
    pub origin: String,
    /// Payloads are content as it is, not JSON frames.
    pub plain_text: bool,
    pub follow: bool,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// First message of `Agent.Monitor`; [`StreamFrameWrapper`]s come back, an empty one first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentMonitorRequest {
    /// `trace`, `debug`, `info`, `warn`, `error` or `off`; empty for `info`.
    pub log_level: String,
    #[serde(rename = "LogJSON")]
    pub log_json: bool,
    pub log_include_location: bool,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "ServerID")]
    pub server_id: String,
    /// Payloads are lines as they are, not JSON frames.
    pub plain_text: bool,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Of `Agent.MonitorExport`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentMonitorExportRequest {
    /// A duration, like `72h`; empty for the default.
    pub logs_since: String,
    /// The systemd unit whose journal is wanted; or, with `on_disk`, the log file.
    pub service_name: String,
    pub on_disk: bool,
    pub follow: bool,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "ServerID")]
    pub server_id: String,
    /// Payloads are lines as they are, not JSON frames.
    pub plain_text: bool,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Of `Agent.Host`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostDataRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "ServerID")]
    pub server_id: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// First message of `Allocations.Exec`. Then [`ExecInputFrame`]s follow, and [`StreamFrameWrapper`]s come back, their
/// payloads JSON objects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocExecRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub task: String,
    pub tty: bool,
    pub cmd: List<String>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// What the caller of `Allocations.Exec` sends after its request: a bare map, without the wrapper of the other direction.
///
/// Stock servers add `Setup`, which is empty on the way to a node, and keys that begin with `XXX_`; all are ignored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ExecInputFrame {
    pub stdin: Option<ExecStdin>,
    pub tty_size: Option<ExecTtySize>,
}

/// A piece of a command's input, or its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ExecStdin {
    pub data: Bytes,
    pub close: bool,
}

/// In characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ExecTtySize {
    pub height: i64,
    pub width: i64,
}

/// `NodeMeta.Apply`: changes of a node's metadata. Answered with [`NodeMetaResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeMetaApplyRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    /// `None` takes a key away.
    pub meta: Map<String, Option<String>>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `NodeMeta.Apply` and of `NodeMeta.Read`, which is asked with a [`super::NodeSpecificRequest`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeMetaResponse {
    /// What jobs see.
    pub meta: Map<String, String>,
    /// What was changed since the node was configured; `None` for what was taken away.
    pub dynamic: Map<String, Option<String>>,
    /// What the node was configured with.
    #[serde(rename = "Static")]
    pub configured: Map<String, String>,
}

/// Answer of `NodeIdentity.Get`, which is asked with a [`super::NodeSpecificRequest`]: what the node's token says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeIdentityResponse {
    pub claims: Map<String, serde_json::Value>,
}

/// Answer of `Allocations.Checks`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocChecksResponse {
    /// By the check's id.
    pub results: Map<String, AllocCheckStatus>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// How a check of a service went last: `AllocCheckStatus` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocCheckStatus {
    #[serde(rename = "ID")]
    pub id: String,
    pub check: String,
    pub group: String,
    pub mode: String,
    pub output: String,
    pub service: String,
    pub task: String,
    pub status: String,
    pub status_code: i64,
    /// Unix seconds.
    pub timestamp: i64,
}

/// `Allocations.SetPauseState` and, without a state, `Allocations.GetPauseState`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocPauseRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    /// Empty for every task with a schedule.
    pub task: String,
    pub schedule_state: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `Allocations.GetPauseState`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocGetPauseResponse {
    /// Empty for a task that no schedule holds back.
    pub schedule_state: String,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// `HostVolume.Create`, `HostVolume.Register` and `HostVolume.Delete`: what a node has to know of the volume. Each call has
/// those of the fields that concern it. Nodes store it too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ClientHostVolumeRequest {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    /// Empty for a volume that no plugin has made.
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub namespace: String,
    pub node_pool: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub host_path: String,
    pub requested_capacity_min_bytes: i64,
    pub requested_capacity_max_bytes: i64,
    pub capacity_bytes: i64,
    pub parameters: Map<String, String>,
    pub auth_token: String,
}

/// The answer to each of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ClientHostVolumeResponse {
    pub volume_name: String,
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub host_path: String,
    pub capacity_bytes: i64,
}

/// One message of a streaming call: content, or the error that ends it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct StreamFrameWrapper {
    pub error: Option<StreamError>,
    pub payload: Bytes,
}

impl StreamFrameWrapper {
    pub fn content(payload: Vec<u8>) -> StreamFrameWrapper {
        StreamFrameWrapper { error: None, payload: Bytes(payload) }
    }

    /// `code` is the HTTP status the caller shall see.
    pub fn failure(code: i64, message: impl Into<String>) -> StreamFrameWrapper {
        let error = StreamError { message: message.into(), code: Some(code) };
        StreamFrameWrapper { error: Some(error), payload: Bytes::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct StreamError {
    pub message: String,
    pub code: Option<i64>,
}
