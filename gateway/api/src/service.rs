//! Services that the cluster itself keeps.

use model::document::List;
use serde::{Deserialize, Serialize};

/// `ServiceRegistration` of Nomad's API: one instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceRegistration {
    #[serde(rename = "ID")]
    pub id: String,
    pub service_name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub datacenter: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub tags: List<String>,
    pub address: String,
    pub port: i64,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `ServiceRegistrationListStub` of Nomad's API: the services of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceRegistrationListStub {
    pub namespace: String,
    pub services: List<ServiceRegistrationStub>,
}

/// `ServiceRegistrationStub` of Nomad's API: a name, and the tags of all its instances.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceRegistrationStub {
    pub service_name: String,
    pub tags: List<String>,
}
