//! Nodes: the list, the block, what they have and what is used of it.

use api::{HostStats, NodeListStub};
use model::document::{Allocation, DriverInfo, Map, Node};

use super::{cell, devices};
use crate::output::{OutputStyle, Table, bytes, fields};

const MIB: u64 = 1 << 20;

/// Columns of the list that are shown only when asked for.
#[derive(Default)]
pub(crate) struct Columns {
    pub os: bool,
    /// Running allocations of each node, in the order of the list.
    pub running: Option<Vec<usize>>,
}

/// The list of nodes.
pub(crate) fn table(style: &OutputStyle, nodes: &[NodeListStub], columns: &Columns) -> String {
    let mut head = vec!["ID", "Node Pool", "DC", "Name", "Class"];
    head.extend(columns.os.then_some("OS"));
    if style.verbose || style.wide {
        head.extend(["Address", "Version"]);
    }
    head.extend(["Drain", "Eligibility", "Status"]);
    head.extend(columns.running.is_some().then_some("Running Allocs"));
    if style.wide {
        head.extend(["Drivers", "CPU", "Memory", "Disk"]);
    }
    let mut table = Table::new(head);
    for (at, node) in nodes.iter().enumerate() {
        let mut row = vec![
            style.id(&node.id),
            node.node_pool.clone(),
            node.datacenter.clone(),
            node.name.clone(),
            node.node_class.clone(),
        ];
        row.extend(columns.os.then(|| node.attributes.get("os.name").cloned().unwrap_or_default()));
        if style.verbose || style.wide {
            row.extend([node.address.clone(), node.version.clone()]);
        }
        row.extend([cell(node.drain), node.scheduling_eligibility.clone(), node.status.clone()]);
        row.extend(columns.running.as_ref().map(|counts| cell(counts[at])));
        if style.wide {
            row.push(working(&node.drivers));
            row.extend(sizes(node));
        }
        table.row(row);
    }
    table.render()
}

/// What the node has: processors, memory and disk.
fn sizes(node: &NodeListStub) -> [String; 3] {
    let Some(total) = &node.node_resources else { return [const { String::new() }; 3] };
    let mib = |count: i64| bytes(u64::try_from(count).unwrap_or(0) * MIB);
    [format!("{} MHz", total.cpu.cpu_shares), mib(total.memory.memory_mb), mib(total.disk.disk_mb)]
}

/// The block of one node.
pub(crate) fn block(style: &OutputStyle, node: &Node, stats: Option<&HostStats>, short: bool) -> String {
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<Vec<_>>().join(",");
    let mut entries = vec![
        ("ID", style.id(&node.id)),
        ("Name", node.name.clone()),
        ("Node Pool", node.node_pool.clone()),
        ("Class", node.node_class.clone()),
        ("DC", node.datacenter.clone()),
        ("Drain", drain(style, node)),
        ("Eligibility", node.scheduling_eligibility.clone()),
        ("Status", node.status.clone()),
        ("CSI Controllers", names(node.csi_controller_plugins.keys().collect())),
        ("CSI Drivers", names(node.csi_node_plugins.keys().collect())),
    ];
    if let Some(stats) = stats {
        let uptime =
            base::Duration::from_secs(i64::try_from(stats.uptime).unwrap_or(i64::MAX / 1_000_000_000));
        entries.push(("Uptime", uptime.to_string()));
    }
    entries.push(("Host Volumes", names(node.host_volumes.keys().collect())));
    entries.push(("Host Networks", names(node.host_networks.keys().collect())));
    entries.push(("CSI Volumes", String::new()));
    entries.push((if short { "Drivers" } else { "Driver Status" }, drivers(node)));
    fields(&entries)
}

fn drain(style: &OutputStyle, node: &Node) -> String {
    let Some(strategy) = &node.drain_strategy else { return cell(node.drain) };
    let mut text = match strategy.deadline.0.0 {
        deadline if deadline < 0 => "true; force drain".to_string(),
        0 => "true; no deadline".to_string(),
        _ => format!("true; {} deadline", style.ago(strategy.force_deadline.time().0)),
    };
    if strategy.ignore_system_jobs {
        text.push_str("; ignoring system jobs");
    }
    text
}

/// Drivers that were found: `exec,raw_exec,docker (unhealthy)`.
fn drivers(node: &Node) -> String {
    working(&node.drivers)
}

fn working(drivers: &Map<String, DriverInfo>) -> String {
    let found = drivers.iter().filter(|(_, driver)| driver.detected);
    let named =
        found.map(|(name, driver)| if driver.healthy { name.clone() } else { format!("{name} (unhealthy)") });
    named.collect::<Vec<_>>().join(",")
}

/// Details that are only summarized in the block.
pub(crate) fn verbose_tables(style: &OutputStyle, node: &Node) -> String {
    let mut volumes = Table::new(["Name", "ReadOnly", "Source"]);
    for (name, volume) in &node.host_volumes {
        volumes.row([name.clone(), cell(volume.read_only), volume.path.clone()]);
    }
    let mut networks = Table::new(["Name", "CIDR", "Interface", "ReservedPorts"]);
    for (name, network) in &node.host_networks {
        let cells = [&network.cidr, &network.interface, &network.reserved_ports];
        networks.row([name.clone()].into_iter().chain(cells.map(String::clone)));
    }
    let mut text = String::new();
    if !node.host_volumes.is_empty() {
        text.push_str(&style.section("Host Volumes", &volumes.render()));
    }
    if !node.host_networks.is_empty() {
        text.push_str(&style.section("Host Networks", &networks.render()));
    }
    text + &driver_table(style, node)
}

/// Drivers with their descriptions.
fn driver_table(style: &OutputStyle, node: &Node) -> String {
    let mut table = Table::new(["Driver", "Detected", "Healthy", "Message", "Time"]);
    for (name, driver) in &node.drivers {
        table.row([
            name.clone(),
            cell(driver.detected),
            cell(driver.healthy),
            driver.health_description.clone(),
            style.time(driver.update_time.time().0),
        ]);
    }
    style.section("Drivers", &table.render())
}

/// What happened to the node, newest first.
pub(crate) fn events(style: &OutputStyle, node: &Node) -> String {
    let details = style.verbose.then_some("Details");
    let mut table = Table::new(["Time", "Subsystem", "Message"].into_iter().chain(details));
    for event in node.events.iter().rev() {
        let mut row =
            vec![style.time(event.timestamp.time().0), event.subsystem.clone(), event.message.clone()];
        if style.verbose {
            let details = event.details.iter().map(|(key, value)| format!("{key} = {value}"));
            row.push(details.collect::<Vec<_>>().join(", "));
        }
        table.row(row);
    }
    style.section("Node Events", &table.render())
}

/// Allocated resources, of the node's total.
pub(crate) fn allocated(style: &OutputStyle, node: &Node, allocs: &[Allocation]) -> String {
    let (mut cpu, mut memory, mut disk, mut count) = (0, 0, 0, 0);
    for resources in allocs.iter().filter(|alloc| is_live(alloc)).map(|alloc| &alloc.allocated_resources) {
        count += 1;
        let Some(resources) = resources else { continue };
        cpu += resources.tasks.values().map(|task| task.cpu.cpu_shares).sum::<i64>();
        memory += resources.tasks.values().map(|task| task.memory.memory_mb).sum::<i64>();
        disk += resources.shared.disk_mb;
    }
    let total = node.node_resources.clone().unwrap_or_default();
    let reserved = node.reserved_resources.clone().unwrap_or_default();
    let left = |total: i64, reserved: u64| total - i64::try_from(reserved).unwrap_or(i64::MAX);
    let mib = |count: i64| bytes(u64::try_from(count).unwrap_or(0) * MIB);
    let mut table = Table::new(["CPU", "Memory", "Disk", "Alloc Count"]);
    let most = if node.node_max_allocs > 0 { format!("/{}", node.node_max_allocs) } else { String::new() };
    table.row([
        format!("{cpu}/{} MHz", left(total.cpu.cpu_shares, reserved.cpu.cpu_shares)),
        format!("{}/{}", mib(memory), mib(left(total.memory.memory_mb, reserved.memory.memory_mb))),
        format!("{}/{}", mib(disk), mib(left(total.disk.disk_mb, reserved.disk.disk_mb))),
        format!("{count}{most}"),
    ]);
    style.section("Allocated Resources", &table.render())
}

/// True while the allocation holds its resources.
fn is_live(alloc: &Allocation) -> bool {
    !super::alloc::is_over(&alloc.client_status)
}

/// Names and values of the node, as jobs' constraints see them.
pub(crate) fn attributes(style: &OutputStyle, node: &Node) -> String {
    let section = |title: &str, map: &model::document::Map<String, String>| {
        let entries: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        style.section(title, &fields(&entries))
    };
    let devices = node.node_resources.as_ref().map(|resources| devices::attributes(&resources.devices));
    let devices = devices.filter(|text| !text.is_empty());
    let devices = devices.map(|text| style.section("Device Group Attributes", &text)).unwrap_or_default();
    section("Attributes", &node.attributes) + &devices + &section("Meta", &node.meta)
}

#[cfg(test)]
mod tests {
    use model::document::{
        AllocatedCpuResources, AllocatedMemoryResources, AllocatedResources, AllocatedTaskResources,
        DriverInfo, NodeResources,
    };

    use super::*;

    fn node() -> Node {
        let driver = |detected, healthy| DriverInfo { detected, healthy, ..DriverInfo::default() };
        let mut resources = NodeResources::default();
        resources.cpu.cpu_shares = 8_000;
        resources.memory.memory_mb = 16_384;
        resources.disk.disk_mb = 102_400;
        Node {
            id: "0badcafe-1111".into(),
            name: "n1".into(),
            node_pool: "default".into(),
            datacenter: "dc1".into(),
            scheduling_eligibility: "eligible".into(),
            status: "ready".into(),
            node_resources: Some(resources),
            drivers: [
                ("docker".to_string(), driver(true, false)),
                ("exec".to_string(), driver(false, false)),
                ("raw_exec".to_string(), driver(true, true)),
            ]
            .into_iter()
            .collect(),
            ..Node::default()
        }
    }

    #[test]
    fn optional_columns_are_shown_on_request() {
        let stub = NodeListStub {
            id: "0badcafe-1111".into(),
            node_pool: "default".into(),
            datacenter: "dc1".into(),
            name: "n1".into(),
            scheduling_eligibility: "eligible".into(),
            status: "ready".into(),
            ..NodeListStub::default()
        };
        let nodes = [stub];
        assert_eq!(
            table(&OutputStyle::for_tests(), &nodes, &Columns::default()),
            "ID        Node Pool  DC   Name  Class   Drain  Eligibility  Status\n\
             0badcafe  default    dc1  n1    <none>  false  eligible     ready\n"
        );
        let columns = Columns { os: true, running: Some(vec![3]) };
        let text = table(&OutputStyle::for_tests(), &nodes, &columns);
        assert!(text.starts_with("ID        Node Pool  DC   Name  Class   OS      Drain"), "{text}");
        assert!(text.ends_with("ready   3\n"), "{text}");
    }

    #[test]
    fn the_block_has_nomads_fields() {
        assert_eq!(
            block(&OutputStyle::for_tests(), &node(), None, false),
            "ID              = 0badcafe\n\
             Name            = n1\n\
             Node Pool       = default\n\
             Class           = <none>\n\
             DC              = dc1\n\
             Drain           = false\n\
             Eligibility     = eligible\n\
             Status          = ready\n\
             CSI Controllers = <none>\n\
             CSI Drivers     = <none>\n\
             Host Volumes    = <none>\n\
             Host Networks   = <none>\n\
             CSI Volumes     = <none>\n\
             Driver Status   = docker (unhealthy),raw_exec\n"
        );
    }

    #[test]
    fn only_live_allocations_hold_resources() {
        let task = AllocatedTaskResources {
            cpu: AllocatedCpuResources { cpu_shares: 500, ..Default::default() },
            memory: AllocatedMemoryResources { memory_mb: 256, memory_max_mb: 0 },
            ..Default::default()
        };
        let mut resources = AllocatedResources::default();
        resources.tasks.insert("main".into(), task);
        resources.shared.disk_mb = 300;
        let alloc = |status: &str| Allocation {
            client_status: status.into(),
            allocated_resources: Some(resources.clone()),
            ..Allocation::default()
        };
        assert_eq!(
            allocated(
                &OutputStyle::for_tests(),
                &node(),
                &[alloc("running"), alloc("pending"), alloc("failed")]
            ),
            "\nAllocated Resources\n\
             CPU            Memory          Disk             Alloc Count\n\
             1000/8000 MHz  512 MiB/16 GiB  600 MiB/100 GiB  2\n"
        );
    }
}
