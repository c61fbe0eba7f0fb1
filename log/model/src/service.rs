//! Services: where the tasks of a job can be reached, by name.

use std::fmt;

use rkyv::{Archive, Deserialize, Serialize};

use crate::object::AllocId;

/// What an instance of a service is called by: its id, in the namespace of its job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ServiceKey {
    pub namespace: String,
    pub id: String,
}

impl ServiceKey {
    pub fn new(namespace: &str, id: &str) -> ServiceKey {
        ServiceKey { namespace: namespace.to_string(), id: id.to_string() }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service registration {} in namespace {}", self.id, self.namespace)
    }
}

/// One instance of a service: an address that an allocation can be reached at.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct Service {
    /// `_nomad-task-<allocation>-…`: an id says which allocation it is of.
    pub id: String,
    pub name: String,
    pub tags: Vec<String>,
    /// May be empty: then it is known by its port alone.
    pub address: String,
    /// Zero for one that has none.
    pub port: u16,
}

/// What the ids of all instances begin with.
const ID_PREFIX: &str = "_nomad-task-";

impl Service {
    /// The allocation that an id is of; `None` for what is no id of an instance.
    pub fn alloc_of(id: &str) -> Option<AllocId> {
        let (alloc, rest) = id.strip_prefix(ID_PREFIX)?.split_at_checked(36)?;
        alloc.parse().ok().filter(|_| rest.starts_with('-'))
    }
}

/// A node wants an instance known. Namespace and job follow from the allocation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RegisterService {
    pub alloc: AllocId,
    pub service: Service,
}

/// Why instances are known no more.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub enum ServiceEnd {
    /// The node of the allocation removed them, or somebody who may.
    Asked,
    /// The allocation has ended, is given up or forgotten.
    AllocEnded,
    /// The node is down or was purged.
    NodeGone,
}
