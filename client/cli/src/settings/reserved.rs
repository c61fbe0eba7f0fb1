//! What of a node is not for jobs.

use jobspec::config::Section;

use super::unsupported::Refused;

/// Resources that are not available to the scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReservedSettings {
    pub cpu_mhz: u64,
    pub memory_mib: u64,
    pub disk_mib: u64,
    pub cores: Vec<u16>,
    /// Ports and ranges, like `22,80,8500-8600`.
    pub ports: String,
}

pub(super) fn reserved(reserved: &mut ReservedSettings, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "cpu", &mut reserved.cpu_mhz);
    refused.set(&mut section, "memory", &mut reserved.memory_mib);
    refused.set(&mut section, "disk", &mut reserved.disk_mib);
    refused.set(&mut section, "cores", &mut reserved.cores);
    refused.set(&mut section, "reserved_ports", &mut reserved.ports);
    refused.done(section);
}
