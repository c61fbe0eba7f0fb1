use std::collections::BTreeSet;

use base::Index;
use model::{ClientStatus, Given, NodeStatus, VolumeKind};
use state::State;
use state::alloc::{Alloc, first_address};
use state::node::{Amount, NodeRow};
use state::volume::mounts;

use super::demand::{Demand, Port};

/// One node that a plan uses, in the newest state.
pub(super) struct Site<'s> {
    pub state: &'s State,
    pub row: NodeRow,
    /// What the plan takes away from it and still takes room there.
    pub leaving: Vec<&'s Alloc>,
}

impl Site<'_> {
    /// Whether the node takes what is asked.
    ///
    /// Since `snapshot` only a node whose load changed is looked at closely: the plan saw the others as they are.
    ///
    /// # Errors
    /// The reason, as the scheduler gets it.
    pub fn accepts(&self, demand: &Demand, snapshot: Index) -> Result<(), String> {
        let hot = self.state.nodes.hot(self.row);
        if demand.allocs == 0 {
            self.keeps(demand)?;
        } else if hot.status != NodeStatus::Ready {
            return Err("node is not ready for placements".to_string());
        } else if !hot.takes_work() {
            return Err("node is not eligible".to_string());
        }
        if hot.load_changed <= snapshot { Ok(()) } else { self.fits(demand) }
    }

    /// In-place updates need no node that takes work, but one that is in contact with the servers.
    fn keeps(&self, demand: &Demand) -> Result<(), String> {
        let status = self.state.nodes.hot(self.row).status;
        let mut updated = demand.updated.iter().filter_map(|id| self.state.allocs.lookup(*id));
        let is_cut_off =
            status == NodeStatus::Disconnected && updated.all(|alloc| alloc.client == ClientStatus::Unknown);
        if status.is_silent() && !is_cut_off {
            return Err(format!("node is {status} and does not take updates"));
        }
        Ok(())
    }

    fn fits(&self, demand: &Demand) -> Result<(), String> {
        let hot = self.state.nodes.hot(self.row);
        let left = (self.leaving.len() as u32).min(hot.allocs);
        if hot.allocs_max > 0 && demand.allocs > 0 && hot.allocs - left + demand.allocs > hot.allocs_max {
            return Err("max allocation exceeded".to_string());
        }
        self.equipped(&demand.given)?;
        let freed = self.leaving.iter().fold(Amount::default(), |sum, alloc| sum.plus(alloc.amount()));
        let used = hot.used.minus(freed).plus(demand.amount);
        if demand.amount != Amount::default()
            && let Some(dimension) = hot.capacity.exceeded_by(used)
        {
            return Err(format!("{dimension} exhausted"));
        }
        self.written(&demand.sole_writers)?;
        match demand.ports.iter().find(|port| !port.may_collide && self.has_taken(port)) {
            Some(port) => Err(format!("port {} is taken", port.number)),
            None => Ok(()),
        }
    }

    /// Each core and each device belongs to one allocation at a time.
    fn equipped(&self, asked: &[Given]) -> Result<(), String> {
        if asked.is_empty() {
            return Ok(());
        }
        let load = self.state.nodes.load(self.row);
        let here = load.equipped.iter().map(|row| self.state.allocs.get(*row));
        let staying = here.filter(|alloc| !self.leaves(alloc));
        let (mut cores, mut devices) = (BTreeSet::new(), BTreeSet::new());
        for given in staying.map(|alloc| &*alloc.given) {
            cores.extend(given.cores());
            devices.extend(instances(given));
        }
        if !asked.iter().flat_map(Given::cores).all(|core| cores.insert(core)) {
            return Err("cores exhausted".to_string());
        }
        if !asked.iter().flat_map(instances).all(|device| devices.insert(device)) {
            return Err("device oversubscribed".to_string());
        }
        Ok(())
    }

    /// A volume that a new allocation wants to write alone has no other writer there.
    fn written(&self, asked: &[(String, String)]) -> Result<(), String> {
        let conflict = || Err("conflicting claims for host volume with single-writer".to_string());
        let demands: BTreeSet<&(String, String)> = asked.iter().collect();
        if demands.is_empty() {
            return Ok(());
        }
        let load = self.state.nodes.load(self.row);
        let here = load.allocs.iter().map(|row| self.state.allocs.get(*row));
        let writes = |alloc: &Alloc| {
            let namespace = &self.state.jobs.get(alloc.job).key.namespace;
            mounts(alloc, VolumeKind::Host)
                .any(|(request, name)| !request.read_only && demands.contains(&(namespace.clone(), name)))
        };
        let mut staying = here.filter(|alloc| alloc.takes_room() && !self.leaves(alloc));
        if demands.len() < asked.len() || staying.any(writes) { conflict() } else { Ok(()) }
    }

    /// An allocation that stays uses the port on the same address.
    fn has_taken(&self, asked: &Port) -> bool {
        let load = self.state.nodes.load(self.row);
        if !load.ports.contains(asked.number) {
            return false;
        }
        let first = first_address(&self.state.nodes.cold(self.row).document);
        let address = asked.address.as_deref().unwrap_or(first);
        let here = load.allocs.iter().map(|row| self.state.allocs.get(*row));
        here.filter(|alloc| alloc.takes_room() && !self.leaves(alloc)).any(|alloc| {
            let ports = alloc.ports.iter().enumerate().filter(|(_, port)| **port == asked.number);
            let addresses = &alloc.given.addresses;
            ports.map(|(slot, _)| addresses.get(slot).map_or(first, String::as_str)).any(|own| own == address)
        })
    }

    fn leaves(&self, alloc: &Alloc) -> bool {
        self.leaving.iter().any(|leaving| leaving.id == alloc.id)
    }
}

/// Device instances by their whole names.
fn instances(given: &Given) -> impl Iterator<Item = [&str; 4]> {
    given.devices().flat_map(|device| {
        let name = [device.vendor.as_str(), device.kind.as_str(), device.name.as_str()];
        device.device_ids.iter().map(move |id| [name[0], name[1], name[2], id.as_str()])
    })
}
