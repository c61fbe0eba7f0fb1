use serde::{Deserialize, Serialize};

use model::document::List;

use super::WriteRequest;

/// `ServiceRegistration.Upsert`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceUpsertRequest {
    pub services: List<ServiceRegistration>,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `ServiceRegistration.DeleteByID`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceDeleteRequest {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `ServiceRegistration.DeleteByNodeID`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeServicesDeleteRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// One instance of a service, at one address.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
