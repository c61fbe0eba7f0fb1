//! Resources that only one allocation can have: ports on addresses, reserved cores, devices.

use std::collections::BTreeSet;

use base::Rng;
use model::Given;
use model::GivenToTask;
use model::document::{List, Map, NetworkResource, Node, RequestedDevice, TaskGroup};
use state::State;
use state::node::NodeRow;

use crate::feasibility::cores::{CoreRequest, wanted};
use crate::feasibility::devices::{DeviceId, DeviceRequests};
use crate::feasibility::networks::NetworkRequest;
use crate::feasibility::ports::{Addresses, PortAssignment, PortRequest};
use crate::feasibility::proposed::Proposed;

/// What a group requests of them. Two requests are equal if they were written equally.
#[derive(Clone, Debug, Default)]
pub struct DedicatedRequest {
    written: WrittenRequest,
    pub network: NetworkRequest,
    pub addresses: PortRequest,
    pub devices: DeviceRequests,
    pub cores: CoreRequest,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct WrittenRequest {
    network: Option<NetworkResource>,
    /// By task.
    devices: Vec<(String, List<RequestedDevice>)>,
    cores: Vec<(String, usize)>,
}

impl PartialEq for DedicatedRequest {
    fn eq(&self, other: &DedicatedRequest) -> bool {
        self.written == other.written
    }
}

/// Cores and devices of a node that are in use.
#[derive(Clone, Debug, Default)]
pub struct InUse {
    pub cores: BTreeSet<u16>,
    pub devices: BTreeSet<DeviceId>,
}

impl InUse {
    pub fn add(&mut self, given: &Given) {
        self.cores.extend(given.cores());
        self.devices.extend(DeviceId::all(given.devices()));
    }
}

/// Cores and devices for one placement.
#[derive(Clone, Debug, Default)]
pub struct CoresAndDevices {
    pub tasks: Map<String, GivenToTask>,
    /// The sum of the cores.
    pub cpu_mhz: u32,
    /// The score of the device affinities, if there are any.
    pub score: Option<f64>,
}

/// Ports, cores and devices for one placement.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// Ports, in the order of the template.
    pub numbers: Vec<u16>,
    pub given: Given,
}

impl DedicatedRequest {
    pub fn of(group: &TaskGroup) -> DedicatedRequest {
        let tasks = group.tasks.iter();
        let devices = tasks.clone().filter_map(|task| {
            let devices = &task.resources.as_ref()?.devices;
            (!devices.is_empty()).then(|| (task.name.clone(), devices.clone()))
        });
        let cores = tasks.map(|task| (task.name.clone(), wanted(task))).filter(|(_, cores)| *cores > 0);
        DedicatedRequest {
            written: WrittenRequest {
                network: group.networks.first().cloned(),
                devices: devices.collect(),
                cores: cores.collect(),
            },
            network: NetworkRequest::of(group),
            addresses: PortRequest::of(group),
            devices: DeviceRequests::of(group),
            cores: CoreRequest::of(group),
        }
    }

    /// Some task requests cores or devices.
    pub fn wants_cores_or_devices(&self) -> bool {
        !self.devices.is_empty() || !self.cores.is_empty()
    }

    /// Device affinities give every node a score.
    pub fn scores(&self) -> bool {
        self.devices.requests().iter().any(|request| request.weights() > 0.0)
    }

    /// Assigns free cores and devices.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn assign_cores_and_devices(&self, node: &Node, taken: &InUse) -> Result<CoresAndDevices, String> {
        let mut equipment = CoresAndDevices::default();
        let assigned = self.devices.assign(node, &taken.devices).map_err(|why| format!("devices: {why}"))?;
        for (task, devices) in assigned.tasks {
            equipment.tasks.entry(task).or_default().devices = devices.into();
        }
        let cores = self.cores.assign(node, &taken.cores).ok_or_else(|| "cores".to_string())?;
        for cores in cores {
            let task = equipment.tasks.entry(cores.task).or_default();
            (task.cores, task.cpu_mhz) = (cores.ids.into(), cores.cpu_mhz);
            equipment.cpu_mhz = equipment.cpu_mhz.saturating_add(cores.cpu_mhz);
        }
        equipment.score = assigned.score;
        Ok(equipment)
    }

    /// Assigns numbers and addresses of the ports, with the plan in progress applied.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn assign_ports(
        &self,
        state: &State,
        row: NodeRow,
        proposed: &Proposed,
        rng: &mut Rng,
    ) -> Result<PortAssignment, String> {
        if self.addresses.is_empty() {
            return Ok(PortAssignment::default());
        }
        let node = state.nodes.cold(row);
        let held = proposed.held(row);
        let on =
            Addresses::of(&node.document, proposed.ports(row), || held.iter().map(|held| held.as_ref()))?;
        self.addresses.assign_ports(node, &on, rng)
    }

    /// Assigns everything, on a node that was found feasible.
    ///
    /// # Errors
    /// The exhausted dimension: the node is not feasible.
    pub fn grant(
        &self,
        state: &State,
        row: NodeRow,
        proposed: &Proposed,
        rng: &mut Rng,
    ) -> Result<Assignment, String> {
        let PortAssignment { numbers, addresses } = self.assign_ports(state, row, proposed, rng)?;
        let tasks = if self.wants_cores_or_devices() {
            self.assign_cores_and_devices(&state.nodes.cold(row).document, &proposed.taken(row))?.tasks
        } else {
            Map::default()
        };
        Ok(Assignment { numbers, given: Given { tasks, addresses: addresses.into() } })
    }
}
