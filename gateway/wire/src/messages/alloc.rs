use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};
use serde::{Deserialize as DeserializeFields, Serialize as SerializeFields};

use model::document::{Allocation, List, Map, Timestamp, shape::is_zero};
use msgpack::Raw;

use super::{QueryMeta, QueryOptions};

/// `Alloc.GetAllocs`.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocsGetRequest {
    #[serde(rename = "AllocIDs")]
    pub alloc_ids: List<String>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `Alloc.GetAllocs`: those that exist.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocsGetResponse {
    pub allocs: List<PlacedAlloc>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// `Alloc.GetAlloc` to a server, `Allocations.GarbageCollect` to a node.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocSpecificRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `Alloc.GetAlloc`; without an allocation when there is none.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct SingleAllocResponse {
    pub alloc: Option<PlacedAlloc>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// An allocation as its node gets to see it: the document and the tokens of its tasks, in one map.
///
/// The tokens are secrets of the node: the document, which everybody may read, has no place for them.
#[derive(Clone, PartialEq, Default)]
pub struct PlacedAlloc {
    pub alloc: Allocation,
    /// Signed tokens of the default identities, by task name.
    pub signed_identities: Map<String, String>,
}

#[derive(Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
struct Identities {
    #[serde(skip_serializing_if = "is_zero")]
    signed_identities: Map<String, String>,
}

impl std::fmt::Debug for PlacedAlloc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tasks: Vec<_> = self.signed_identities.keys().collect();
        f.debug_struct("PlacedAlloc").field("alloc", &self.alloc).field("identities_of", &tasks).finish()
    }
}

impl Serialize for PlacedAlloc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let identities = Identities { signed_identities: self.signed_identities.clone() };
        let parts = [msgpack::to_vec(&self.alloc), msgpack::to_vec(&identities)];
        let [alloc, identities] = parts.map(|part| part.map_err(S::Error::custom));
        Raw::embed(&[alloc?, identities?]).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlacedAlloc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let alloc = msgpack::from_slice(&raw.0).map_err(D::Error::custom)?;
        let Identities { signed_identities } = msgpack::from_slice(&raw.0).map_err(D::Error::custom)?;
        Ok(PlacedAlloc { alloc, signed_identities })
    }
}

/// `Alloc.SignIdentities`.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocIdentitiesRequest {
    pub identities: List<WorkloadIdentityRequest>,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Which identity of which workload is asked for.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct WorkloadIdentityRequest {
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub identity_name: String,
    /// A task's or service's name.
    pub workload_identifier: String,
    /// 0 for a task, 1 for a service.
    pub workload_type: i64,
    pub interpolated_workload_identifier: String,
}

/// Answer of `Alloc.SignIdentities`: each request is either signed or rejected.
#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocIdentitiesResponse {
    pub signed_identities: List<SignedWorkloadIdentity>,
    pub rejections: List<WorkloadIdentityRejection>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct SignedWorkloadIdentity {
    #[serde(flatten)]
    pub request: WorkloadIdentityRequest,
    #[serde(rename = "JWT")]
    pub jwt: String,
    pub expiration: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Default, SerializeFields, DeserializeFields)]
#[serde(default, rename_all = "PascalCase")]
pub struct WorkloadIdentityRejection {
    #[serde(flatten)]
    pub request: WorkloadIdentityRequest,
    pub reason: String,
}
