use serde::{Deserialize, Serialize};

use model::document::{
    ACLToken, ACLTokenRoleLink, Allocation, DrainStrategy, Duration, Evaluation, List, Map, Node, NodeEvent,
    Timestamp, shape::is_zero,
};

use super::{QueryMeta, QueryOptions, WriteMeta, WriteRequest};

/// `Node.Register`: this node exists, and looks like this. Answered with [`NodeUpdateResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeRegisterRequest {
    pub node: Node,
    pub node_event: Option<NodeEvent>,
    pub create_node_pool: bool,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `Node.UpdateStatus`: the heartbeat. Answered with [`NodeUpdateResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateStatusRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub status: String,
    #[serde(rename = "IdentitySigningKeyID")]
    pub identity_signing_key_id: String,
    pub force_identity_renewal: bool,
    pub node_event: Option<NodeEvent>,
    /// Unix seconds.
    pub updated_at: i64,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// The answer to a registration and to every heartbeat.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateResponse {
    #[serde(rename = "HeartbeatTTL")]
    pub heartbeat_ttl: Duration,
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub eval_create_index: u64,
    pub node_modify_index: u64,
    /// Empty sends the node looking for other servers.
    #[serde(rename = "LeaderRPCAddr")]
    pub leader_rpc_addr: String,
    pub num_nodes: i32,
    pub servers: List<NodeServerInfo>,
    pub scheduling_eligibility: String,
    pub signed_identity: Option<String>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Answer of `ACL.WhoAmI`: whose token came with the request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WhoAmIResponse {
    pub identity: AuthenticatedIdentity,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AuthenticatedIdentity {
    #[serde(rename = "ACLToken")]
    pub acl_token: Option<AclTokenIdentity>,
    /// Of the task or service that a token was signed for.
    pub claims: Option<WorkloadClaims>,
    /// The node that a secret or a token belongs to.
    #[serde(rename = "ClientID")]
    pub client_id: String,
}

/// The token of every caller while access control is off.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AclTokenIdentity {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    /// What its rights follow from: agents ask for these next.
    pub policies: List<String>,
    pub roles: List<ACLTokenRoleLink>,
    pub global: bool,
    pub create_time: Timestamp,
    pub expiration_time: Option<Timestamp>,
    pub create_index: u64,
    pub modify_index: u64,
}

impl From<ACLToken> for AclTokenIdentity {
    fn from(token: ACLToken) -> AclTokenIdentity {
        AclTokenIdentity {
            accessor_id: token.accessor_id,
            name: token.name,
            kind: token.kind,
            policies: token.policies,
            roles: token.roles,
            global: token.global,
            create_time: token.create_time,
            expiration_time: token.expiration_time,
            create_index: token.create_index,
            modify_index: token.modify_index,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WorkloadClaims {
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "AllocationID")]
    pub allocation_id: String,
    pub task_name: String,
    pub service_name: String,
}

/// A server of the node's region.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeServerInfo {
    #[serde(rename = "RPCAdvertiseAddr")]
    pub rpc_advertise_addr: String,
    pub datacenter: String,
}

/// `Node.GetClientAllocs` and `Node.GetNode`: about one node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeSpecificRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "SecretID")]
    pub secret_id: String,
    #[serde(flatten)]
    pub query: QueryOptions,
}

/// Answer of `Node.GetClientAllocs`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeClientAllocsResponse {
    /// Every allocation of the node, with the index of the last change that concerns it.
    pub allocs: Map<String, u64>,
    pub migrate_tokens: Map<String, String>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Answer of `Node.GetNode`; without a node when there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SingleNodeResponse {
    pub node: Option<Node>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// `Node.UpdateAlloc`: how the allocations of one node are doing. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocUpdateRequest {
    /// Stripped to what a node knows: ids, statuses, task states, health, network.
    pub alloc: List<Allocation>,
    /// Rejected: evaluations are the servers' to make.
    #[serde(skip_serializing)]
    pub evals: List<Evaluation>,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `Node.EmitEvents`. Answered with [`super::GenericResponse`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EmitNodeEventsRequest {
    /// By node id.
    pub node_events: Map<String, List<NodeEvent>>,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `Node.UpdateDrain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateDrainRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    /// `None` ends the drain.
    pub drain_strategy: Option<DrainStrategy>,
    pub mark_eligible: bool,
    pub node_event: Option<NodeEvent>,
    pub meta: Map<String, String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub updated_by: String,
    /// Unix seconds.
    pub updated_at: i64,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// `Node.UpdateEligibility`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateEligibilityRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub eligibility: String,
    pub node_event: Option<NodeEvent>,
    /// Unix seconds.
    pub updated_at: i64,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// Answer of `Node.UpdateDrain` and `Node.UpdateEligibility`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeChangeResponse {
    pub node_modify_index: u64,
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub eval_create_index: u64,
    #[serde(flatten)]
    pub meta: WriteMeta,
}
