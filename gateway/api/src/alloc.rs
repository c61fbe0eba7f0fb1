//! Allocations: stopping, restarting, signals, resource use, files and log frames.

use model::document::shape::is_zero;
use model::document::{Bytes, List, Map, Timestamp};
use serde::{Deserialize, Serialize};

use crate::node::DeviceGroupStats;

/// `AllocStopResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocStopResponse {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub index: u64,
}

/// `AllocationRestartRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocationRestartRequest {
    pub task_name: String,
    pub all_tasks: bool,
}

/// `AllocSignalRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocSignalRequest {
    pub task: String,
    pub signal: String,
}

/// `GenericResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GenericResponse {
    pub index: u64,
}

/// `AllocResourceUsage` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocResourceUsage {
    pub resource_usage: Option<ResourceUsage>,
    pub tasks: Map<String, TaskResourceUsage>,
    pub timestamp: i64,
}

/// `TaskResourceUsage` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskResourceUsage {
    pub resource_usage: Option<ResourceUsage>,
    pub timestamp: i64,
    pub pids: Map<String, ResourceUsage>,
}

/// `ResourceUsage` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResourceUsage {
    pub memory_stats: Option<MemoryStats>,
    pub cpu_stats: Option<CpuStats>,
    pub device_stats: List<DeviceGroupStats>,
}

/// `MemoryStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MemoryStats {
    #[serde(rename = "RSS")]
    pub rss: u64,
    pub cache: u64,
    pub swap: u64,
    pub usage: u64,
    pub max_usage: u64,
    pub kernel_usage: u64,
    pub kernel_max_usage: u64,
    pub measured: List<String>,
    pub mapped_file: u64,
}

/// `CpuStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CpuStats {
    pub system_mode: f64,
    pub user_mode: f64,
    pub total_ticks: f64,
    pub throttled_periods: u64,
    pub throttled_time: u64,
    pub percent: f64,
    pub measured: List<String>,
}

/// `AllocFileInfo` of Nomad's API.
///
/// Only `stat` fills in the content type.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocFileInfo {
    pub name: String,
    pub is_dir: bool,
    pub size: i64,
    pub file_mode: String,
    pub mod_time: Timestamp,
    #[serde(skip_serializing_if = "is_zero")]
    pub content_type: String,
}

/// `StreamFrame` of Nomad's API.
///
/// `{}` is a heartbeat. Frames follow each other without a separator.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct StreamFrame {
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub data: Bytes,
    #[serde(skip_serializing_if = "is_zero")]
    pub file: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub file_event: String,
}
