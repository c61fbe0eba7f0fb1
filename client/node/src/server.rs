//! The calls of a node to the servers, as the rest of this crate sees them; [`crate::rpc`] makes them over the wire.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use model::document::{Allocation, Node};
use serde_json::Value;
use template::Dependency;
use wire::messages::{
    AllocIdentitiesResponse, CsiVolumeClaimRequest, CsiVolumeClaimResponse, CsiVolumeExpandedRequest,
    CsiVolumeUnpublishRequest, PlacedAlloc, ServiceRegistration, WorkloadIdentityRequest,
};

use crate::drain::ShutdownDrain;

/// The servers' answer to a registration or a heartbeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lease {
    /// How long the node may go without a heartbeat.
    pub ttl: Duration,
    /// Empty when the server did not send it.
    pub eligibility: String,
}

/// Which allocations this node has, each with the index of its last change that concerns the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assigned {
    pub allocs: BTreeMap<String, u64>,
    /// For those that fetch the data of a previous allocation, what its node wants to be shown.
    pub migrate_tokens: BTreeMap<String, String>,
    pub index: u64,
}

/// Something that a template of a task reads, or the node itself.
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateRead {
    pub dependency: Dependency,
    /// Where the dependency itself names none.
    pub namespace: String,
    /// That of the task: what it may not read, its template does not get to see. `None` for that of the node.
    pub token: Option<String>,
    pub min_index: u64,
    /// How long to wait for an answer above that index.
    pub wait: Duration,
}

impl std::fmt::Debug for TemplateRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TemplateRead({} after {})", self.dependency, self.min_index)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The servers do not know this node, or not with this secret: it must register.
    #[error("the servers do not know this node: {0}")]
    NodeUnknown(String),
    #[error("the cluster has no leader")]
    NoLeader,
    /// No server was reached, or the answer did not arrive.
    #[error("no server was reached: {0}")]
    Unreachable(String),
    /// The servers know who calls, and do not allow it; or they do not know who calls.
    #[error("{0}")]
    Denied(String),
    #[error("{0}")]
    Refused(String),
}

/// The servers. Calls may be made from many places at once and may take as long as they need; a call that is
/// dropped is cancelled.
pub trait ServerClient: Send + Sync + 'static {
    fn register(&self, node: &Node) -> impl Future<Output = Result<Lease, ServerError>> + Send;

    /// The heartbeat: this node is ready.
    fn update_status(&self, node_id: &str) -> impl Future<Output = Result<Lease, ServerError>> + Send;

    /// Waits until the index is above `min_index`, for as long as the implementation sees fit. `stale` allows
    /// any server to answer.
    fn client_allocs(
        &self,
        node: &Node,
        min_index: u64,
        stale: bool,
    ) -> impl Future<Output = Result<Assigned, ServerError>> + Send;

    /// The allocations of these ids that exist, read after `min_index`, with the tokens of their tasks, and the index of
    /// the answer.
    fn allocs(
        &self,
        ids: Vec<String>,
        min_index: u64,
    ) -> impl Future<Output = Result<(Vec<PlacedAlloc>, u64), ServerError>> + Send;

    /// Tokens for identities of allocations on this node, read after `min_index`.
    fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        min_index: u64,
    ) -> impl Future<Output = Result<AllocIdentitiesResponse, ServerError>> + Send;

    /// An allocation of any node, and the index of the answer, once that is above `min_index`. `None` when there is none.
    fn alloc(
        &self,
        id: &str,
        min_index: u64,
    ) -> impl Future<Output = Result<(Option<Allocation>, u64), ServerError>> + Send;

    /// Any node, if there is one of this id.
    fn node(&self, id: &str) -> impl Future<Output = Result<Option<Node>, ServerError>> + Send;

    /// Has this node drained.
    fn drain(
        &self,
        node_id: &str,
        wish: ShutdownDrain,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    fn update_allocs(&self, updates: Vec<Allocation>)
    -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Instances of services of allocations on this node; what the servers know already changes nothing.
    fn register_services(
        &self,
        services: Vec<ServiceRegistration>,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Refused with a text that says `not found` when there is none.
    fn remove_service(
        &self,
        namespace: &str,
        id: &str,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// An allocation on this node wants a volume of a storage plugin. The namespace stands in the request.
    fn claim_volume(
        &self,
        request: CsiVolumeClaimRequest,
    ) -> impl Future<Output = Result<CsiVolumeClaimResponse, ServerError>> + Send;

    /// It has been expanded, as the claim's answer asked for.
    fn volume_expanded(
        &self,
        request: CsiVolumeExpandedRequest,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// It has been unmounted again.
    fn unpublish_volume(
        &self,
        request: CsiVolumeUnpublishRequest,
    ) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// What a template reads, in the shape of the HTTP API, and the index of the answer. `None` when there is none.
    fn read(
        &self,
        read: &TemplateRead,
    ) -> impl Future<Output = Result<(Option<Value>, u64), ServerError>> + Send;
}
