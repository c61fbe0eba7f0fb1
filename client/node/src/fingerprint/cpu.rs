//! The processors: how many, how fast, and which of them the scheduler may use.

use std::path::Path;

use model::document::{List, NumaCore, NumaTopology};

use super::Attributes;
use crate::settings::NodeSettings;
use crate::task::environment::ranges;

/// The speed of a core that does not report one.
const GUESSED_MHZ: u64 = 1000;

const CPUS: &str = "/sys/devices/system/cpu";

pub struct Totals {
    pub mhz: u64,
}

/// Each core with its socket, memory node and speed.
pub fn topology(settings: &NodeSettings) -> NumaTopology {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let ids = parse_ranges(&read(&format!("{CPUS}/online")));
    let ids =
        if ids.is_empty() { (0..info.matches("processor\t").count().max(1) as u16).collect() } else { ids };
    let nodes = numa_nodes();
    let measured =
        field(&info, "cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok()).map_or(0, |mhz| mhz as u64);
    let cores: Vec<NumaCore> = ids.into_iter().map(|id| core(id, measured, &nodes, settings)).collect();
    NumaTopology {
        nodes: nodes.iter().map(|(node, _)| i64::from(*node)).collect(),
        distances: nodes.iter().map(|(node, _)| distances(*node)).collect(),
        cores: cores.into(),
        override_total_compute: settings.capacity.cpu_mhz,
        override_withold_compute: settings.reserved.cpu_mhz,
    }
}

fn core(id: u16, measured: u64, nodes: &[(u8, Vec<u16>)], settings: &NodeSettings) -> NumaCore {
    let frequency =
        |file: &str| read(&format!("{CPUS}/cpu{id}/cpufreq/{file}")).parse::<u64>().unwrap_or(0) / 1000;
    let (base_speed, max_speed) = (frequency("base_frequency"), frequency("cpuinfo_max_freq"));
    let siblings = parse_ranges(&read(&format!("{CPUS}/cpu{id}/topology/thread_siblings_list")));
    NumaCore {
        socket_id: read(&format!("{CPUS}/cpu{id}/topology/physical_package_id")).parse().unwrap_or(0),
        node_id: nodes.iter().find(|(_, cores)| cores.contains(&id)).map_or(0, |(node, _)| *node),
        id,
        // True is the performance grade: a second thread, or unknown sharing.
        grade: siblings.len() != 1,
        disable: is_disabled(id, settings),
        base_speed,
        max_speed,
        guess_speed: if base_speed + max_speed > 0 { 0 } else { measured.max(GUESSED_MHZ) },
    }
}

/// No task gets it for itself.
fn is_disabled(id: u16, settings: &NodeSettings) -> bool {
    let reservable = &settings.reservable_cores;
    settings.reserved.cores.contains(&id) || !(reservable.is_empty() || reservable.contains(&id))
}

/// The speed that the scheduler counts with.
fn mhz(core: &NumaCore) -> u64 {
    [core.base_speed, core.max_speed, core.guess_speed].into_iter().find(|mhz| *mhz > 0).unwrap_or(0)
}

/// The memory nodes and their cores; one node of all cores where the host has none.
fn numa_nodes() -> Vec<(u8, Vec<u16>)> {
    let online = parse_ranges(&read("/sys/devices/system/node/online"));
    let nodes: Vec<(u8, Vec<u16>)> = online
        .into_iter()
        .filter_map(|node| Some((u8::try_from(node).ok()?, node)))
        .map(|(id, node)| (id, parse_ranges(&read(&format!("/sys/devices/system/node/node{node}/cpulist")))))
        .collect();
    if nodes.is_empty() { vec![(0, parse_ranges(&read(&format!("{CPUS}/online"))))] } else { nodes }
}

fn distances(node: u8) -> List<u8> {
    let text = read(&format!("/sys/devices/system/node/node{node}/distance"));
    let list: Vec<u8> = text.split_ascii_whitespace().filter_map(|distance| distance.parse().ok()).collect();
    if list.is_empty() { vec![10].into() } else { list.into() }
}

pub fn describe(topology: &NumaTopology, settings: &NodeSettings, attributes: &mut Attributes) -> Totals {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut set = |name: &str, value: String| attributes.insert(name.to_string(), value);
    if let Some(name) = field(&info, "model name") {
        set("cpu.modelname", name.to_string());
    }
    let fastest = |grade| topology.cores.iter().filter(|core| core.grade == grade).map(mhz).max();
    let count = |grade| topology.cores.iter().filter(|core| core.grade == grade).count();
    match (fastest(true), fastest(false)) {
        (Some(mhz), None) => drop(set("cpu.frequency", mhz.to_string())),
        (performance, efficiency) => {
            for (name, grade, mhz) in [("performance", true, performance), ("efficiency", false, efficiency)]
            {
                if let Some(mhz) = mhz {
                    set(&format!("cpu.frequency.{name}"), mhz.to_string());
                    set(&format!("cpu.numcores.{name}"), count(grade).to_string());
                }
            }
        }
    }
    let measured: u64 = topology.cores.iter().map(mhz).sum();
    let enabled: u64 = topology.cores.iter().filter(|core| !core.disable).map(mhz).sum();
    let fixed = settings.capacity.cpu_mhz;
    let total = if fixed > 0 { fixed } else { measured };
    let usable = if fixed > 0 { fixed } else { enabled.saturating_sub(settings.reserved.cpu_mhz) };
    set("cpu.numcores", topology.cores.len().to_string());
    set("cpu.reservablecores", topology.cores.iter().filter(|core| !core.disable).count().to_string());
    set("cpu.totalcompute", total.to_string());
    set("cpu.usablecompute", usable.to_string());
    set("numa.node.count", topology.nodes.len().to_string());
    for node in &topology.nodes {
        let own = topology.cores.iter().filter(|core| i64::from(core.node_id) == *node);
        let ids: Vec<u16> = own.map(|core| core.id).collect();
        set(&format!("numa.node{node}.cores"), ranges(&ids));
    }
    Totals { mhz: total }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default().trim().to_string()
}

/// The first value of a line like `cpu MHz : 2400.0`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

/// The numbers of a text like `0-3,8`.
fn parse_ranges(text: &str) -> Vec<u16> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u16>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        assert_eq!(parse_ranges("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(ranges(&parse_ranges("0-3,8")), "0-3,8");
        assert!(parse_ranges("").is_empty());
    }

    #[test]
    fn a_core_is_reservable_if_it_is_listed_and_not_reserved() {
        let base = tempfile::tempdir().unwrap();
        let mut settings = crate::testing::settings(base.path());
        settings.reserved.cores = vec![1];
        let disabled =
            |settings: &NodeSettings| (0..4).map(|id| is_disabled(id, settings)).collect::<Vec<_>>();
        assert_eq!(disabled(&settings), [false, true, false, false], "without a list all are");
        settings.reservable_cores = vec![0, 1];
        assert_eq!(disabled(&settings), [false, true, true, true]);
    }

    #[test]
    fn the_value_of_a_line_is_found() {
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\ncpu MHz\t\t: 2000.5\n";
        assert_eq!(field(info, "model name"), Some("Some CPU @ 2GHz"));
        assert_eq!(field(info, "cpu MHz"), Some("2000.5"));
    }
}
