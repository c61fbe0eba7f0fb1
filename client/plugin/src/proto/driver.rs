//! `hashicorp.nomad.plugins.drivers.proto`: what a driver is asked, and what it answers.

use std::collections::BTreeMap;

use super::hclspec::Spec;
use super::structs::{Attribute, Span};
pub use super::task::*;

pub const SERVICE: &str = "hashicorp.nomad.plugins.drivers.proto.Driver";

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum HealthState {
    Undetected = 0,
    Unhealthy = 1,
    Healthy = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum FsIsolation {
    None = 0,
    Chroot = 1,
    Image = 2,
    Unveil = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum StartResult {
    Success = 0,
    Retry = 1,
    Fatal = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FingerprintResponse {
    #[prost(btree_map = "string, message", tag = "1")]
    pub attributes: BTreeMap<String, Attribute>,
    #[prost(enumeration = "HealthState", tag = "2")]
    pub health: i32,
    #[prost(string, tag = "3")]
    pub health_description: String,
    #[prost(string, tag = "4")]
    pub err: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskConfigSchema {
    #[prost(message, optional, tag = "1")]
    pub spec: Option<Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CapabilitiesResponse {
    #[prost(message, optional, tag = "1")]
    pub capabilities: Option<DriverCapabilities>,
}

/// `mount_configs` is 0 for all mounts and 1 for none.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DriverCapabilities {
    #[prost(bool, tag = "1")]
    pub send_signals: bool,
    #[prost(bool, tag = "2")]
    pub exec: bool,
    #[prost(enumeration = "FsIsolation", tag = "3")]
    pub fs_isolation: i32,
    #[prost(enumeration = "NetworkMode", repeated, tag = "4")]
    pub network_isolation_modes: Vec<i32>,
    #[prost(bool, tag = "5")]
    pub must_create_network: bool,
    #[prost(int32, tag = "6")]
    pub mount_configs: i32,
    #[prost(bool, tag = "8")]
    pub disable_log_collection: bool,
    #[prost(bool, tag = "9")]
    pub dynamic_workload_users: bool,
}

/// The request of all calls that only name a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskId {
    #[prost(string, tag = "1")]
    pub task_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct RecoverTaskRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(message, optional, tag = "2")]
    pub handle: Option<TaskHandle>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StartTaskRequest {
    #[prost(message, optional, tag = "1")]
    pub task: Option<TaskConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StartTaskResponse {
    #[prost(enumeration = "StartResult", tag = "1")]
    pub result: i32,
    #[prost(string, tag = "2")]
    pub driver_error_msg: String,
    #[prost(message, optional, tag = "3")]
    pub handle: Option<TaskHandle>,
    #[prost(message, optional, tag = "4")]
    pub network_override: Option<NetworkOverride>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitTaskResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<ExitResult>,
    #[prost(string, tag = "2")]
    pub err: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StopTaskRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(message, optional, tag = "2")]
    pub timeout: Option<Span>,
    #[prost(string, tag = "3")]
    pub signal: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DestroyTaskRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(bool, tag = "2")]
    pub force: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InspectTaskResponse {
    #[prost(message, optional, tag = "1")]
    pub task: Option<TaskStatus>,
    #[prost(message, optional, tag = "2")]
    pub driver: Option<TaskDriverStatus>,
    #[prost(message, optional, tag = "3")]
    pub network_override: Option<NetworkOverride>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskStatsRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(message, optional, tag = "2")]
    pub collection_interval: Option<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskStatsResponse {
    #[prost(message, optional, tag = "1")]
    pub stats: Option<TaskStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SignalTaskRequest {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub signal: String,
}

/// The first one has the setup; those after it input, or a new size of the terminal.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecRequest {
    #[prost(message, optional, tag = "1")]
    pub setup: Option<ExecSetup>,
    #[prost(message, optional, tag = "2")]
    pub tty_size: Option<TerminalSize>,
    #[prost(message, optional, tag = "3")]
    pub stdin: Option<ExecIo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecSetup {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, repeated, tag = "2")]
    pub command: Vec<String>,
    #[prost(bool, tag = "3")]
    pub tty: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TerminalSize {
    #[prost(int32, tag = "1")]
    pub height: i32,
    #[prost(int32, tag = "2")]
    pub width: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecIo {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    #[prost(bool, tag = "2")]
    pub close: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecResponse {
    #[prost(message, optional, tag = "1")]
    pub stdout: Option<ExecIo>,
    #[prost(message, optional, tag = "2")]
    pub stderr: Option<ExecIo>,
    #[prost(bool, tag = "3")]
    pub exited: bool,
    #[prost(message, optional, tag = "4")]
    pub result: Option<ExitResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateNetworkRequest {
    #[prost(string, tag = "1")]
    pub alloc_id: String,
    #[prost(string, tag = "2")]
    pub hostname: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateNetworkResponse {
    #[prost(message, optional, tag = "1")]
    pub isolation_spec: Option<NetworkIsolationSpec>,
    #[prost(bool, tag = "2")]
    pub created: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DestroyNetworkRequest {
    #[prost(string, tag = "1")]
    pub alloc_id: String,
    #[prost(message, optional, tag = "2")]
    pub isolation_spec: Option<NetworkIsolationSpec>,
}
