//! What the calls carry, under the names the protocol gives them.
//!
//! Fields that Go embeds stand flattened in their parent: [`QueryOptions`] in reads, [`WriteRequest`] in
//! writes, [`QueryMeta`] and [`WriteMeta`] in answers. A missing field is a zero field. Documents inside keep
//! the names of [`model::document`]. Where a payload is a document of Nomad's HTTP API, which lives in a
//! neighbouring crate, the message leaves its type open.

mod acl;
mod alloc;
mod client;
mod common;
mod csi;
mod node;
mod read;
mod service;

pub use acl::*;
pub use alloc::*;
pub use client::*;
pub use common::*;
pub use csi::*;
pub use node::*;
pub use read::*;
pub use service::*;

/// The methods, by their names on the wire.
pub mod method {
    // Node to server.
    pub const STATUS_PING: &str = "Status.Ping";
    pub const STATUS_LEADER: &str = "Status.Leader";
    pub const STATUS_PEERS: &str = "Status.Peers";
    pub const NODE_REGISTER: &str = "Node.Register";
    pub const NODE_UPDATE_STATUS: &str = "Node.UpdateStatus";
    pub const NODE_GET_CLIENT_ALLOCS: &str = "Node.GetClientAllocs";
    pub const NODE_UPDATE_ALLOC: &str = "Node.UpdateAlloc";
    pub const NODE_EMIT_EVENTS: &str = "Node.EmitEvents";
    pub const NODE_GET_NODE: &str = "Node.GetNode";
    pub const NODE_UPDATE_DRAIN: &str = "Node.UpdateDrain";
    pub const NODE_UPDATE_ELIGIBILITY: &str = "Node.UpdateEligibility";
    pub const ALLOC_GET_ALLOCS: &str = "Alloc.GetAllocs";
    pub const ALLOC_GET_ALLOC: &str = "Alloc.GetAlloc";
    pub const ALLOC_SIGN_IDENTITIES: &str = "Alloc.SignIdentities";
    pub const ACL_WHO_AM_I: &str = "ACL.WhoAmI";
    pub const ACL_RESOLVE_TOKEN: &str = "ACL.ResolveToken";
    pub const ACL_GET_POLICIES: &str = "ACL.GetPolicies";
    pub const ACL_GET_CLAIM_POLICIES: &str = "ACL.GetClaimPolicies";
    pub const ACL_GET_ROLES_BY_ID: &str = "ACL.GetRolesByID";
    pub const SERVICE_UPSERT: &str = "ServiceRegistration.Upsert";
    pub const SERVICE_DELETE_BY_ID: &str = "ServiceRegistration.DeleteByID";
    pub const SERVICE_GET: &str = "ServiceRegistration.GetService";
    pub const SERVICE_LIST: &str = "ServiceRegistration.List";
    pub const VARIABLES_READ: &str = "Variables.Read";
    pub const VARIABLES_LIST: &str = "Variables.List";
    pub const CSI_VOLUME_CLAIM: &str = "CSIVolume.Claim";
    pub const CSI_VOLUME_UNPUBLISH: &str = "CSIVolume.Unpublish";
    /// Our own: see [`super::CsiVolumeExpandedRequest`].
    pub const CSI_VOLUME_EXPANDED: &str = "CSIVolume.Expanded";
    pub const SERVICE_DELETE_BY_NODE_ID: &str = "ServiceRegistration.DeleteByNodeID";

    // Server to node.
    pub const ALLOCATIONS_RESTART: &str = "Allocations.Restart";
    pub const ALLOCATIONS_SIGNAL: &str = "Allocations.Signal";
    pub const ALLOCATIONS_STATS: &str = "Allocations.Stats";
    pub const ALLOCATIONS_GARBAGE_COLLECT: &str = "Allocations.GarbageCollect";
    pub const ALLOCATIONS_GARBAGE_COLLECT_ALL: &str = "Allocations.GarbageCollectAll";
    pub const ALLOCATIONS_CHECKS: &str = "Allocations.Checks";
    pub const ALLOCATIONS_SET_PAUSE_STATE: &str = "Allocations.SetPauseState";
    pub const ALLOCATIONS_GET_PAUSE_STATE: &str = "Allocations.GetPauseState";
    pub const NODE_META_APPLY: &str = "NodeMeta.Apply";
    pub const NODE_META_READ: &str = "NodeMeta.Read";
    pub const NODE_IDENTITY_GET: &str = "NodeIdentity.Get";
    pub const NODE_IDENTITY_RENEW: &str = "NodeIdentity.Renew";
    pub const CLIENT_STATS: &str = "ClientStats.Stats";
    pub const HOST_VOLUME_CREATE: &str = "HostVolume.Create";
    pub const HOST_VOLUME_REGISTER: &str = "HostVolume.Register";
    pub const HOST_VOLUME_DELETE: &str = "HostVolume.Delete";
    pub const CSI_CONTROLLER_ATTACH: &str = "CSI.ControllerAttachVolume";
    pub const CSI_CONTROLLER_DETACH: &str = "CSI.ControllerDetachVolume";
    pub const CSI_CONTROLLER_VALIDATE: &str = "CSI.ControllerValidateVolume";
    pub const CSI_CONTROLLER_CREATE: &str = "CSI.ControllerCreateVolume";
    pub const CSI_CONTROLLER_DELETE: &str = "CSI.ControllerDeleteVolume";
    pub const CSI_CONTROLLER_EXPAND: &str = "CSI.ControllerExpandVolume";
    pub const CSI_CONTROLLER_LIST: &str = "CSI.ControllerListVolumes";
    pub const CSI_CONTROLLER_CREATE_SNAPSHOT: &str = "CSI.ControllerCreateSnapshot";
    pub const CSI_CONTROLLER_DELETE_SNAPSHOT: &str = "CSI.ControllerDeleteSnapshot";
    pub const CSI_CONTROLLER_LIST_SNAPSHOTS: &str = "CSI.ControllerListSnapshots";
    pub const CSI_NODE_DETACH: &str = "CSI.NodeDetachVolume";
    pub const CSI_NODE_EXPAND: &str = "CSI.NodeExpandVolume";
    pub const FILE_SYSTEM_LIST: &str = "FileSystem.List";
    pub const FILE_SYSTEM_STAT: &str = "FileSystem.Stat";

    // Server to node, streaming.
    pub const FILE_SYSTEM_LOGS: &str = "FileSystem.Logs";
    pub const FILE_SYSTEM_STREAM: &str = "FileSystem.Stream";
    pub const ALLOCATIONS_EXEC: &str = "Allocations.Exec";

    // To servers and nodes alike, streaming.
    pub const AGENT_MONITOR: &str = "Agent.Monitor";
    pub const AGENT_MONITOR_EXPORT: &str = "Agent.MonitorExport";
    pub const AGENT_HOST: &str = "Agent.Host";

    // Our own: node to server, HTTP/1.1 from there on. Nomad's servers have a call for each route instead.
    pub const HTTP: &str = "Sojourn.Http";
}
