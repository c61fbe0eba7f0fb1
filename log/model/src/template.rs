use serde::{Deserialize, Serialize};

use crate::codec::compiled_once;

use crate::document::{AllocatedDeviceResource, AllocatedResources, List, Map, PortMapping};

compiled_once! { Template Given }

/// What all placements of a group in one plan have in common.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Template {
    pub resources: AllocatedResources,
    /// Host ports by label. Values stand in the placement's own column; here they are zero.
    pub ports: List<PortMapping>,
    /// What one placement takes from its node.
    pub cpu_mhz: u32,
    pub memory_mib: u32,
    pub disk_mib: u32,
}

/// What one placement was given beyond its group's template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Given {
    /// By name of the task; only those that were given something.
    pub tasks: Map<String, GivenToTask>,
    /// The address of each host port, in the order of the template's. Empty where all are on the first address of
    /// the node's host network.
    pub addresses: List<String>,
}

/// Parts of a node that one task has for itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GivenToTask {
    pub cores: List<u16>,
    /// What the cores do together; it comes on top of the template's.
    pub cpu_mhz: u32,
    pub devices: List<AllocatedDeviceResource>,
}

impl Given {
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.addresses.is_empty()
    }

    /// What its reserved cores do together.
    pub fn cpu_mhz(&self) -> u32 {
        self.tasks.values().fold(0, |sum, task| sum.saturating_add(task.cpu_mhz))
    }

    pub fn cores(&self) -> impl Iterator<Item = u16> {
        self.tasks.values().flat_map(|task| task.cores.iter().copied())
    }

    pub fn devices(&self) -> impl Iterator<Item = &AllocatedDeviceResource> {
        self.tasks.values().flat_map(|task| &task.devices)
    }
}
