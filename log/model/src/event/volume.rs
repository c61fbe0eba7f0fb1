//! What happened to volumes of storage plugins while allocations had them.

use rkyv::{Archive, Deserialize, Serialize};

use crate::claim::CsiClaim;
use crate::object::{AllocId, VolumeKey};

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
