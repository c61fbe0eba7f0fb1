//! What happened to volumes of storage plugins while allocations had them.

use rkyv::{Archive, Deserialize, Serialize};

use crate::claim::CsiClaim;
use crate::object::{AllocId, NodeId, VolumeKey};

/// An allocation has the volume from here on, or has it in another way than before.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct CsiVolumeClaimed {
    pub volume: VolumeKey,
    pub alloc: AllocId,
    pub claim: CsiClaim,
}

/// The node has the volume no more, as far as this allocation is concerned.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct CsiClaimDetached {
    pub volume: VolumeKey,
    pub alloc: AllocId,
}

/// Nothing is left of the claim: the volume is detached, or another claim needs it where it is.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct CsiClaimReleased {
    pub volume: VolumeKey,
    pub alloc: AllocId,
}

/// The volume has grown, and what is on it follows only once a node that mounts it is asked to see to that.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct CsiExpansionAwaited {
    pub volume: VolumeKey,
    /// How large it has to be at least, in bytes.
    pub required_bytes: i64,
    /// How large it may be at most; 0 says nothing.
    pub limit_bytes: i64,
}

/// No node has to do that any more.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct CsiExpansionEnded {
    pub volume: VolumeKey,
    /// Who has done it; none if the volume is forgotten, or another one than it was.
    pub node: Option<NodeId>,
}
