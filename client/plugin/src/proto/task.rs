//! The messages of `hashicorp.nomad.plugins.drivers.proto` that say what a task is, has and uses.

use std::collections::BTreeMap;

use super::structs::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum NetworkMode {
    Host = 0,
    Group = 1,
    Task = 2,
    None = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum TaskState {
    Unknown = 0,
    Running = 1,
    Exited = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum CpuField {
    SystemMode = 0,
    UserMode = 1,
    TotalTicks = 2,
    ThrottledPeriods = 3,
    ThrottledTime = 4,
    Percent = 5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum MemoryField {
    Rss = 0,
    Cache = 1,
    MaxUsage = 2,
    KernelUsage = 3,
    KernelMaxUsage = 4,
    Usage = 5,
    Swap = 6,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkIsolationSpec {
    #[prost(enumeration = "NetworkMode", tag = "1")]
    pub mode: i32,
    #[prost(string, tag = "2")]
    pub path: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub labels: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub hosts_config: Option<HostsConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HostsConfig {
    #[prost(string, tag = "1")]
    pub hostname: String,
    #[prost(string, tag = "2")]
    pub address: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DnsConfig {
    #[prost(string, repeated, tag = "1")]
    pub servers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub searches: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub options: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskConfig {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(bytes = "vec", tag = "3")]
    pub msgpack_driver_config: Vec<u8>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub env: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub device_env: BTreeMap<String, String>,
    #[prost(message, optional, tag = "6")]
    pub resources: Option<Resources>,
    #[prost(message, repeated, tag = "7")]
    pub mounts: Vec<Mount>,
    #[prost(message, repeated, tag = "8")]
    pub devices: Vec<Device>,
    #[prost(string, tag = "9")]
    pub user: String,
    #[prost(string, tag = "10")]
    pub alloc_dir: String,
    #[prost(string, tag = "11")]
    pub stdout_path: String,
    #[prost(string, tag = "12")]
    pub stderr_path: String,
    #[prost(string, tag = "13")]
    pub task_group_name: String,
    #[prost(string, tag = "14")]
    pub job_name: String,
    #[prost(string, tag = "15")]
    pub alloc_id: String,
    #[prost(message, optional, tag = "16")]
    pub network_isolation_spec: Option<NetworkIsolationSpec>,
    #[prost(message, optional, tag = "17")]
    pub dns: Option<DnsConfig>,
    #[prost(string, tag = "18")]
    pub job_id: String,
    #[prost(string, tag = "19")]
    pub namespace: String,
    #[prost(string, tag = "20")]
    pub node_name: String,
    #[prost(string, tag = "21")]
    pub node_id: String,
    #[prost(string, tag = "22")]
    pub parent_job_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Resources {
    #[prost(message, optional, tag = "1")]
    pub allocated_resources: Option<AllocatedTaskResources>,
    #[prost(message, optional, tag = "2")]
    pub linux_resources: Option<LinuxResources>,
    #[prost(message, repeated, tag = "3")]
    pub ports: Vec<PortMapping>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AllocatedTaskResources {
    #[prost(message, optional, tag = "1")]
    pub cpu: Option<AllocatedCpu>,
    #[prost(message, optional, tag = "2")]
    pub memory: Option<AllocatedMemory>,
    #[prost(message, repeated, tag = "5")]
    pub networks: Vec<NetworkResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AllocatedCpu {
    #[prost(int64, tag = "1")]
    pub cpu_shares: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AllocatedMemory {
    #[prost(int64, tag = "2")]
    pub memory_mb: i64,
    #[prost(int64, tag = "3")]
    pub memory_max_mb: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkResource {
    #[prost(string, tag = "1")]
    pub device: String,
    #[prost(string, tag = "2")]
    pub cidr: String,
    #[prost(string, tag = "3")]
    pub ip: String,
    #[prost(int32, tag = "4")]
    pub mbits: i32,
    #[prost(message, repeated, tag = "5")]
    pub reserved_ports: Vec<NetworkPort>,
    #[prost(message, repeated, tag = "6")]
    pub dynamic_ports: Vec<NetworkPort>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkPort {
    #[prost(string, tag = "1")]
    pub label: String,
    #[prost(int32, tag = "2")]
    pub value: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PortMapping {
    #[prost(string, tag = "1")]
    pub label: String,
    #[prost(int32, tag = "2")]
    pub value: i32,
    #[prost(int32, tag = "3")]
    pub to: i32,
    #[prost(string, tag = "4")]
    pub host_ip: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LinuxResources {
    #[prost(int64, tag = "1")]
    pub cpu_period: i64,
    #[prost(int64, tag = "2")]
    pub cpu_quota: i64,
    #[prost(int64, tag = "3")]
    pub cpu_shares: i64,
    #[prost(int64, tag = "4")]
    pub memory_limit_bytes: i64,
    #[prost(int64, tag = "5")]
    pub oom_score_adj: i64,
    #[prost(string, tag = "6")]
    pub cpuset_cpus: String,
    #[prost(double, tag = "8")]
    pub percent_ticks: f64,
    #[prost(string, tag = "9")]
    pub cpuset_cgroup: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Mount {
    #[prost(string, tag = "1")]
    pub task_path: String,
    #[prost(string, tag = "2")]
    pub host_path: String,
    #[prost(bool, tag = "3")]
    pub readonly: bool,
    #[prost(string, tag = "4")]
    pub propagation_mode: String,
    #[prost(string, tag = "5")]
    pub selinux_label: String,
    #[prost(string, tag = "6")]
    pub request_name: String,
}

/// `cgroup_permissions` are some of `rwm`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Device {
    #[prost(string, tag = "1")]
    pub task_path: String,
    #[prost(string, tag = "2")]
    pub host_path: String,
    #[prost(string, tag = "3")]
    pub cgroup_permissions: String,
}

/// What the driver finds a task by; `driver_state` is its own.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskHandle {
    #[prost(int32, tag = "1")]
    pub version: i32,
    #[prost(message, optional, tag = "2")]
    pub config: Option<TaskConfig>,
    #[prost(enumeration = "TaskState", tag = "3")]
    pub state: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub driver_state: Vec<u8>,
}

/// The network that a driver has given a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkOverride {
    #[prost(btree_map = "string, int32", tag = "1")]
    pub port_map: BTreeMap<String, i32>,
    #[prost(string, tag = "2")]
    pub addr: String,
    #[prost(bool, tag = "3")]
    pub auto_advertise: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExitResult {
    #[prost(int32, tag = "1")]
    pub exit_code: i32,
    #[prost(int32, tag = "2")]
    pub signal: i32,
    #[prost(bool, tag = "3")]
    pub oom_killed: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskStatus {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(enumeration = "TaskState", tag = "3")]
    pub state: i32,
    #[prost(message, optional, tag = "4")]
    pub started_at: Option<Timestamp>,
    #[prost(message, optional, tag = "5")]
    pub completed_at: Option<Timestamp>,
    #[prost(message, optional, tag = "6")]
    pub result: Option<ExitResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskDriverStatus {
    #[prost(btree_map = "string, string", tag = "1")]
    pub attributes: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskStats {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, optional, tag = "2")]
    pub timestamp: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    pub agg_resource_usage: Option<TaskResourceUsage>,
    #[prost(btree_map = "string, message", tag = "4")]
    pub resource_usage_by_pid: BTreeMap<String, TaskResourceUsage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskResourceUsage {
    #[prost(message, optional, tag = "1")]
    pub cpu: Option<CpuUsage>,
    #[prost(message, optional, tag = "2")]
    pub memory: Option<MemoryUsage>,
}

/// Percent of one core; `throttled_time` in nanoseconds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CpuUsage {
    #[prost(double, tag = "1")]
    pub system_mode: f64,
    #[prost(double, tag = "2")]
    pub user_mode: f64,
    #[prost(double, tag = "3")]
    pub total_ticks: f64,
    #[prost(uint64, tag = "4")]
    pub throttled_periods: u64,
    #[prost(uint64, tag = "5")]
    pub throttled_time: u64,
    #[prost(double, tag = "6")]
    pub percent: f64,
    #[prost(enumeration = "CpuField", repeated, tag = "7")]
    pub measured_fields: Vec<i32>,
}

/// Bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemoryUsage {
    #[prost(uint64, tag = "1")]
    pub rss: u64,
    #[prost(uint64, tag = "2")]
    pub cache: u64,
    #[prost(uint64, tag = "3")]
    pub max_usage: u64,
    #[prost(uint64, tag = "4")]
    pub kernel_usage: u64,
    #[prost(uint64, tag = "5")]
    pub kernel_max_usage: u64,
    #[prost(enumeration = "MemoryField", repeated, tag = "6")]
    pub measured_fields: Vec<i32>,
    #[prost(uint64, tag = "7")]
    pub usage: u64,
    #[prost(uint64, tag = "8")]
    pub swap: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TaskEvent {
    #[prost(string, tag = "1")]
    pub task_id: String,
    #[prost(string, tag = "2")]
    pub alloc_id: String,
    #[prost(string, tag = "3")]
    pub task_name: String,
    #[prost(message, optional, tag = "4")]
    pub timestamp: Option<Timestamp>,
    #[prost(string, tag = "5")]
    pub message: String,
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
}
