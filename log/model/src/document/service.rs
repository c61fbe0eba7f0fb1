use serde::{Deserialize, Serialize};

use super::consul::ConsulConnect;
use super::shape::{Duration, List, Map, is_zero};
use super::task::WorkloadIdentity;

/// `Service` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Service {
    pub name: String,
    pub tags: List<String>,
    pub canary_tags: List<String>,
    pub enable_tag_override: bool,
    pub port_label: String,
    pub address_mode: String,
    pub address: String,
    pub checks: List<ServiceCheck>,
    #[serde(skip_serializing_if = "is_zero")]
    pub check_restart: Option<CheckRestart>,
    pub connect: Option<ConsulConnect>,
    pub meta: Map<String, String>,
    pub canary_meta: Map<String, String>,
    pub tagged_addresses: Map<String, String>,
    pub task_name: String,
    pub on_update: String,
    pub identity: Option<WorkloadIdentity>,
    pub weights: Option<ServiceWeights>,
    pub provider: String,
    pub cluster: String,
    pub kind: String,
    pub namespace: String,
}

/// `ServiceCheck` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceCheck {
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub command: String,
    pub args: List<String>,
    pub path: String,
    pub protocol: String,
    pub port_label: String,
    pub expose: bool,
    pub address_mode: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub advertise: String,
    pub interval: Duration,
    pub timeout: Duration,
    pub initial_status: String,
    pub notes: String,
    #[serde(rename = "TLSServerName")]
    pub tls_server_name: String,
    #[serde(rename = "TLSSkipVerify")]
    pub tls_skip_verify: bool,
    pub header: Map<String, List<String>>,
    pub method: String,
    pub check_restart: Option<CheckRestart>,
    #[serde(rename = "GRPCService")]
    pub grpc_service: String,
    #[serde(rename = "GRPCUseTLS")]
    pub grpc_use_tls: bool,
    pub task_name: String,
    pub success_before_passing: i64,
    pub failures_before_critical: i64,
    pub failures_before_warning: i64,
    pub body: String,
    pub on_update: String,
}

/// `CheckRestart` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CheckRestart {
    pub limit: i64,
    pub grace: Option<Duration>,
    pub ignore_warnings: bool,
}

/// `ServiceWeights` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceWeights {
    pub passing: i64,
    pub warning: i64,
}
