//! What happened to services that the cluster itself keeps.

use rkyv::{Archive, Deserialize, Serialize};

use crate::object::{AllocId, JobKey, NodeId};
use crate::service::{Service, ServiceEnd};

/// Instances of an allocation are known from here on, or are others than they were.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ServicesRegistered {
    pub alloc: AllocId,
    pub node: NodeId,
    pub key: JobKey,
    pub datacenter: String,
    pub services: Vec<Service>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ServicesDeregistered {
    pub alloc: AllocId,
    /// Their ids.
    pub services: Vec<String>,
    pub cause: ServiceEnd,
}
