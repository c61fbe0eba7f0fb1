//! What a recorder saw of another cluster.

use base::Time;
use rkyv::{Archive, Deserialize, Serialize};

use crate::object::{AllocId, DeploymentId, JobKey};

/// Objects of another cluster were read, and are not what they were. What that changed here stands behind it, from the same
/// command. The columns are of one length.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// The address of that cluster.
    pub source: String,
    /// The newest index of that cluster that was seen so far.
    pub index: u64,
    /// When the answers came, by the recorder's clock.
    pub seen: Time,
    /// As histories name them: `job/default/web`, `node/ID`.
    pub objects: Vec<String>,
    /// That cluster's index of each one's last change; zero for what is gone.
    pub indexes: Vec<u64>,
    /// When each changed, by the clocks of that cluster; zero if it does not say.
    pub happened: Vec<Time>,
}

/// What happened in another cluster in between could not be read any more.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ObservationGap {
    pub source: String,
    /// Everything up to this index of that cluster was seen.
    pub from: u64,
    /// And everything from this one on. It is less than `from` when that cluster was restored.
    pub to: u64,
    pub reason: String,
}

/// The progress of a deployment as another cluster counts it.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct DeploymentProgressObserved {
    pub deployment: DeploymentId,
    pub groups: Vec<ObservedProgress>,
}

impl Observed {
    /// Its number in the log.
    pub const KIND: u16 = 180;
}

#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct ObservedProgress {
    pub group: String,
    pub promoted: bool,
    pub placed_canaries: Vec<AllocId>,
    pub placed: u32,
    pub healthy: u32,
    pub unhealthy: u32,
    /// Zero without a limit.
    pub require_progress_by: Time,
}

/// Another cluster says that the job is dead, though no evaluation of it is left to show that it ever began.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct JobEndObserved {
    pub key: JobKey,
}
