use serde::{Deserialize, Serialize};

use crate::document::{AllocatedResources, List, PortMapping};

/// What all placements of a group in one plan have in common.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Template {
    pub resources: AllocatedResources,
    /// Host ports by label. Values stand in the placement's own column; here they are zero.
    pub ports: List<PortMapping>,
    /// What one placement takes from its node.
    pub cpu_mhz: u32,
    pub memory_mib: u32,
    pub disk_mib: u32,
}
