//! What one placement is given of its node beyond amounts: ports on addresses, cores, devices.

use std::collections::BTreeSet;

use base::Rng;
use model::Given;
use model::GivenToTask;
use model::document::{List, Map, NetworkResource, Node, RequestedDevice, TaskGroup};
use state::State;
use state::node::NodeRow;

use crate::addresses::{AddressAsk, Addresses, Offer};
use crate::cores::{CoreAsk, wanted};
use crate::devices::{DeviceAsk, DeviceId};
use crate::networks::NetworkAsk;
use crate::proposed::Proposed;

/// What a group asks for. Groups that wrote the same ask for the same.
#[derive(Clone, Debug, Default)]
pub struct Fixtures {
    written: Written,
    pub network: NetworkAsk,
    pub addresses: AddressAsk,
    pub devices: DeviceAsk,
    pub cores: CoreAsk,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Written {
    network: Option<NetworkResource>,
    /// By task.
    devices: Vec<(String, List<RequestedDevice>)>,
    cores: Vec<(String, usize)>,
}

impl PartialEq for Fixtures {
    fn eq(&self, other: &Fixtures) -> bool {
        self.written == other.written
    }
}

/// What of a node belongs to somebody.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub cores: BTreeSet<u16>,
    pub devices: BTreeSet<DeviceId>,
}

impl Taken {
    pub fn add(&mut self, given: &Given) {
        self.cores.extend(given.cores());
        self.devices.extend(DeviceId::all(given.devices()));
    }
}

/// Cores and devices for one placement.
#[derive(Clone, Debug, Default)]
pub struct Equipment {
    pub tasks: Map<String, GivenToTask>,
    /// What the cores do together.
    pub cpu_mhz: u32,
    /// How far the affinities to devices are met, if there are any.
    pub score: Option<f64>,
}

/// Everything for one placement.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Ports, in the order of the template.
    pub numbers: Vec<u16>,
    pub given: Given,
}

impl Fixtures {
    pub fn of(group: &TaskGroup) -> Fixtures {
        let tasks = group.tasks.iter();
        let devices = tasks.clone().filter_map(|task| {
            let devices = &task.resources.as_ref()?.devices;
            (!devices.is_empty()).then(|| (task.name.clone(), devices.clone()))
        });
        let cores = tasks.map(|task| (task.name.clone(), wanted(task))).filter(|(_, cores)| *cores > 0);
        Fixtures {
            written: Written {
                network: group.networks.first().cloned(),
                devices: devices.collect(),
                cores: cores.collect(),
            },
            network: NetworkAsk::of(group),
            addresses: AddressAsk::of(group),
            devices: DeviceAsk::of(group),
            cores: CoreAsk::of(group),
        }
    }

    /// Some task has to have cores or devices for itself.
    pub fn equips(&self) -> bool {
        !self.devices.is_empty() || !self.cores.is_empty()
    }

    /// Devices speak for or against every node.
    pub fn scores(&self) -> bool {
        self.devices.requests().iter().any(|request| request.weights() > 0.0)
    }

    /// Cores and devices that nobody has.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn equip(&self, node: &Node, taken: &Taken) -> Result<Equipment, String> {
        let mut equipment = Equipment::default();
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

    /// Numbers and addresses for the ports, as the node will be once the plan is carried out.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn offer(
        &self,
        state: &State,
        row: NodeRow,
        proposed: &Proposed,
        rng: &mut Rng,
    ) -> Result<Offer, String> {
        if self.addresses.is_empty() {
            return Ok(Offer::default());
        }
        let node = state.nodes.cold(row);
        let held = proposed.held(row);
        let on =
            Addresses::of(&node.document, proposed.ports(row), || held.iter().map(|held| held.as_ref()))?;
        self.addresses.offer(node, &on, rng)
    }

    /// Everything at once, on a node that was found to have it.
    ///
    /// # Errors
    /// The exhausted dimension: it has not.
    pub fn grant(
        &self,
        state: &State,
        row: NodeRow,
        proposed: &Proposed,
        rng: &mut Rng,
    ) -> Result<Grant, String> {
        let Offer { numbers, addresses } = self.offer(state, row, proposed, rng)?;
        let tasks = if self.equips() {
            self.equip(&state.nodes.cold(row).document, &proposed.taken(row))?.tasks
        } else {
            Map::default()
        };
        Ok(Grant { numbers, given: Given { tasks, addresses: addresses.into() } })
    }
}
