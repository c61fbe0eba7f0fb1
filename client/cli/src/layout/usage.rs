//! Resource usage of a node: its allocations, and the whole host.

use api::{AllocResourceUsage, HostStats};
use model::document::Node;

use crate::output::{OutputStyle, Table, bytes, fields};

const MIB: u64 = 1 << 20;

/// The usage of all allocations together, of the node's total.
pub(crate) fn allocations(style: &OutputStyle, node: &Node, used: &[AllocResourceUsage]) -> String {
    let (mut cpu, mut memory) = (0.0, 0);
    for usage in used.iter().filter_map(|usage| usage.resource_usage.as_ref()) {
        cpu += usage.cpu_stats.as_ref().map_or(0.0, |stats| stats.total_ticks);
        let stats = usage.memory_stats.as_ref();
        memory += stats.map_or(0, |stats| if stats.rss > 0 { stats.rss } else { stats.usage });
    }
    let total = node.node_resources.clone().unwrap_or_default();
    let most = u64::try_from(total.memory.memory_mb).unwrap_or(0) * MIB;
    let mut table = Table::new(["CPU", "Memory"]);
    table.row([
        format!("{cpu:.0}/{} MHz", total.cpu.cpu_shares),
        format!("{}/{}", bytes(memory), bytes(most)),
    ]);
    style.section("Allocation Resource Utilization", &table.render())
}

/// The usage of the whole host.
pub(crate) fn host(style: &OutputStyle, node: &Node, stats: &HostStats) -> String {
    let shares = node.node_resources.as_ref().map_or(0, |resources| resources.cpu.cpu_shares);
    let memory = stats.memory.clone().unwrap_or_default();
    let disk = stats.alloc_dir_stats.clone().unwrap_or_default();
    let mut table = Table::new(["CPU", "Memory", "Disk"]);
    table.row([
        format!("{:.0}/{shares} MHz", stats.cpu_ticks_consumed),
        format!("{}/{}", bytes(memory.used), bytes(memory.total)),
        format!("{}/{}", bytes(disk.used), bytes(disk.size)),
    ]);
    style.section("Host Resource Utilization", &table.render())
}

/// Every core, the memory and every disk.
pub(crate) fn details(style: &OutputStyle, stats: &HostStats) -> String {
    let cores = stats.cpu.iter().map(|core| {
        fields(&[
            ("CPU", core.cpu.clone()),
            ("User", format!("{:.2}%", core.user)),
            ("System", format!("{:.2}%", core.system)),
            ("Idle", format!("{:.2}%", core.idle)),
        ])
    });
    let disks = stats.disk_stats.iter().map(|disk| {
        fields(&[
            ("Device", disk.device.clone()),
            ("MountPoint", disk.mountpoint.clone()),
            ("Size", bytes(disk.size)),
            ("Used", bytes(disk.used)),
            ("Available", bytes(disk.available)),
            ("Used Percent", format!("{:.2}%", disk.used_percent)),
            ("Inodes Percent", format!("{:.2}%", disk.inodes_used_percent)),
        ])
    });
    let memory = stats.memory.clone().unwrap_or_default();
    let memory = fields(&[
        ("Total", bytes(memory.total)),
        ("Available", bytes(memory.available)),
        ("Used", bytes(memory.used)),
        ("Free", bytes(memory.free)),
    ]);
    let joined = |blocks: Vec<String>| blocks.join("\n");
    style.section("CPU Stats", &joined(cores.collect()))
        + &style.section("Memory Stats", &memory)
        + &style.section("Disk Stats", &joined(disks.collect()))
        + &super::devices::usage("Device Stats", &stats.device_stats)
}

#[cfg(test)]
mod tests {
    use api::{HostCPUStats, HostDiskStats, HostMemoryStats};

    use super::*;

    #[test]
    fn everything_measured_has_its_section() {
        let stats = HostStats {
            cpu: vec![HostCPUStats { cpu: "cpu0".into(), idle: 98.5, ..Default::default() }].into(),
            memory: Some(HostMemoryStats { total: 8 << 30, used: 1 << 30, ..Default::default() }),
            disk_stats: vec![HostDiskStats { device: "/dev/sda".into(), ..Default::default() }].into(),
            ..HostStats::default()
        };
        let text = details(&OutputStyle::for_tests(), &stats);
        let head =
            "\nCPU Stats\nCPU    = cpu0\nUser   = 0.00%\nSystem = 0.00%\nIdle   = 98.50%\n\nMemory Stats\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("Total     = 8.0 GiB\n"), "{text}");
        assert!(text.contains("\nDisk Stats\nDevice         = /dev/sda\n"), "{text}");
        let host = host(&OutputStyle::for_tests(), &Node::default(), &stats);
        assert!(host.contains("0/0 MHz  1.0 GiB/8.0 GiB  0 B/0 B\n"), "{host}");
    }
}
