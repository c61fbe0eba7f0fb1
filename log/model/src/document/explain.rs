//! Why things are as they are. Ours alone; recomputed from the log, never stored.

use serde::{Deserialize, Serialize};

use super::alloc::AllocationMetric;
use super::eval::DesiredUpdates;
use super::shape::List;

/// What a decision found out about one group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GroupReasons {
    /// What was to become of its allocations, in numbers.
    pub desired: DesiredUpdates,
    /// What the first placement saw: best scores, nodes ruled out.
    pub placed: Option<AllocationMetric>,
    /// What the first allocation saw that found no place.
    pub failed: Option<AllocationMetric>,
    /// Allocations that found no place.
    pub missing: u64,
    /// Their names: the first of them, each once.
    pub missing_names: List<String>,
    /// The version of the job that they would have run, where it is not the current one.
    pub older_version: Option<u64>,
    /// Nodes that the cluster had.
    pub nodes: u64,
    /// Nodes that came closest to taking one more, the closest first.
    pub nearest: List<NearMiss>,
    /// Allocations whose nodes came back, each against a replacement.
    pub reconnects: List<Reconnect>,
    /// Single changes that would give every missing allocation a place. Each was tried out.
    pub would_fit_if: List<String>,
    /// How many changes were tried.
    pub tried: u64,
    /// More changes may help: looking for them was cut short.
    pub hints_cut_short: bool,
}

/// The choice between an allocation that came back and its replacement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Reconnect {
    /// Ids of the two allocations.
    pub original: String,
    pub replacement: String,
    /// As the job has it.
    pub strategy: String,
    /// The scores that they were placed with; null where none is known.
    pub original_score: Option<f64>,
    pub replacement_score: Option<f64>,
    /// The original stays and the replacement is stopped; else the other way around.
    pub keeps_original: bool,
    pub why: String,
}

/// A node that did not do, and all that stands in the way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NearMiss {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    pub lacks: List<Lack>,
}

/// One thing that a node lacks or that excludes it. The numbers are zero where there is nothing to count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Lack {
    /// `cpu`, `memory`, `disk`, or what stands in the way, as a statement about the node.
    pub what: String,
    /// `MHz` or `MiB`.
    pub unit: String,
    pub asked: u64,
    pub free: u64,
    /// How much is missing.
    pub short: u64,
    /// How much of what is not free belongs to allocations that are being stopped there.
    pub stopping: u64,
}
