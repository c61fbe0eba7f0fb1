//! Nodes as they will be once the plan in progress is applied.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use model::document::TaskGroup;
use model::{AllocId, Given, Template};
use state::State;
use state::alloc::Alloc;
use state::node::{Amount, NodeRow, PortSet};

use crate::feasibility::dedicated::{Assignment, InUse};
use crate::feasibility::ports::{OwnedPort, held};

/// The plan in progress applied to the state. Nodes that it does not change are read from the state itself.
#[derive(Debug)]
pub struct Proposed<'s> {
    state: &'s State,
    /// By node row: the index in `touched`. For lookup only.
    slots: HashMap<u32, u32, BuildHasherDefault<RowHasher>>,
    touched: Vec<ChangedNode<'s>>,
    stopped: BTreeSet<AllocId>,
}

#[derive(Clone, Debug)]
struct ChangedNode<'s> {
    row: NodeRow,
    used: Amount,
    allocs: u32,
    /// Set once a port changed.
    ports: Option<PortSet>,
    /// Ports of what the plan places there; the next field: its cores and devices.
    held: Vec<OwnedPort>,
    given: Vec<Given>,
    /// For each planned allocation with volumes: its group and the number in its name.
    mounted: Vec<(&'s TaskGroup, u32)>,
}

/// Row numbers are dense, so a multiplication is hash enough.
#[derive(Default)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl<'s> Proposed<'s> {
    pub fn new(state: &'s State) -> Proposed<'s> {
        Proposed { state, slots: HashMap::default(), touched: Vec::new(), stopped: BTreeSet::new() }
    }

    /// Nodes that the plan changes.
    pub fn rows(&self) -> impl Iterator<Item = NodeRow> {
        self.touched.iter().map(|touched| touched.row)
    }

    pub fn used(&self, row: NodeRow) -> Amount {
        self.find(row).map_or_else(|| self.state.nodes.hot(row).used, |touched| touched.used)
    }

    pub fn allocs(&self, row: NodeRow) -> u32 {
        self.find(row).map_or_else(|| self.state.nodes.hot(row).allocs, |touched| touched.allocs)
    }

    pub fn ports(&self, row: NodeRow) -> &PortSet {
        let changed = self.find(row).and_then(|touched| touched.ports.as_ref());
        changed.unwrap_or_else(|| &self.state.nodes.load(row).ports)
    }

    pub fn is_stopped(&self, alloc: AllocId) -> bool {
        self.stopped.contains(&alloc)
    }

    /// The plan stops an allocation: its resources are free. Repeated calls change nothing.
    pub fn stop(&mut self, alloc: &Alloc) {
        if self.stopped.insert(alloc.id) && alloc.takes_room() {
            let touched = self.touch(alloc.node, !alloc.ports.is_empty());
            touched.used = touched.used.minus(alloc.amount());
            touched.allocs -= 1;
            for port in alloc.ports.iter() {
                touched.ports.get_or_insert_default().give_back(*port);
            }
        }
    }

    /// The plan does not stop it after all.
    pub fn unstop(&mut self, alloc: &Alloc) {
        if self.stopped.remove(&alloc.id) && alloc.takes_room() {
            self.take(alloc.node, alloc.amount(), &alloc.ports);
        }
    }

    pub fn place(&mut self, row: NodeRow, template: &Template, grant: &Assignment) {
        let Assignment { numbers, given } = grant;
        let touched = self.take(row, Amount::of(template, given), numbers);
        if !numbers.is_empty() {
            touched.held.extend(held(template, numbers, given).map(OwnedPort::from));
        }
        if !given.tasks.is_empty() {
            touched.given.push(given.clone());
        }
    }

    /// Notes that the allocation just placed there mounts its group's volumes.
    pub fn mount(&mut self, row: NodeRow, group: &'s TaskGroup, name_index: u32) {
        if !group.volumes.is_empty() {
            self.touch(row, false).mounted.push((group, name_index));
        }
    }

    pub fn mounted(&self, row: NodeRow) -> impl Iterator<Item = (&'s TaskGroup, u32)> {
        self.find(row).into_iter().flat_map(|touched| touched.mounted.iter().copied())
    }

    fn take(&mut self, row: NodeRow, amount: Amount, ports: &[u16]) -> &mut ChangedNode<'s> {
        let touched = self.touch(row, !ports.is_empty());
        touched.used = touched.used.plus(amount);
        touched.allocs += 1;
        for port in ports {
            touched.ports.get_or_insert_default().take(*port);
        }
        touched
    }

    /// A copy for this node only.
    pub fn alone(&self, row: NodeRow) -> Proposed<'s> {
        let mut alone = Proposed::new(self.state);
        if let Some(touched) = self.find(row) {
            alone.slots.insert(row.0, 0);
            alone.touched.push(touched.clone());
            alone.stopped = self.here(row).map(|alloc| alloc.id).filter(|id| self.is_stopped(*id)).collect();
        }
        alone
    }

    /// Allocations that use resources there and are not stopped by the plan.
    pub fn staying(&self, row: NodeRow) -> impl Iterator<Item = &'s Alloc> {
        self.here(row).filter(|alloc| alloc.takes_room() && !self.is_stopped(alloc.id))
    }

    fn here(&self, row: NodeRow) -> impl Iterator<Item = &'s Alloc> {
        let state = self.state;
        state.nodes.load(row).allocs.iter().map(|row| state.allocs.get(*row))
    }

    /// Cores and devices that the plan assigns there.
    pub fn planned(&self, row: NodeRow) -> InUse {
        let mut taken = InUse::default();
        self.find(row).into_iter().flat_map(|touched| &touched.given).for_each(|given| taken.add(given));
        taken
    }

    /// Cores and devices that are in use there.
    pub fn taken(&self, row: NodeRow) -> InUse {
        let mut taken = self.planned(row);
        let equipped = self.state.nodes.load(row).equipped.iter().map(|row| self.state.allocs.get(*row));
        equipped.filter(|alloc| !self.is_stopped(alloc.id)).for_each(|alloc| taken.add(&alloc.given));
        taken
    }

    /// Ports in use with their addresses, for nodes with several addresses.
    pub fn held(&self, row: NodeRow) -> Vec<OwnedPort> {
        let of_state = self
            .staying(row)
            .flat_map(|alloc| held(&alloc.template, &alloc.ports, &alloc.given).map(OwnedPort::from));
        let planned = self.find(row).into_iter().flat_map(|touched| touched.held.iter().cloned());
        of_state.chain(planned).collect()
    }

    /// The plan changes the resources of a running allocation.
    pub fn resize(&mut self, alloc: &Alloc, to: Amount) {
        if alloc.takes_room() {
            let touched = self.touch(alloc.node, false);
            touched.used = touched.used.minus(alloc.amount()).plus(to);
        }
    }

    fn find(&self, row: NodeRow) -> Option<&ChangedNode<'s>> {
        self.slots.get(&row.0).map(|slot| &self.touched[*slot as usize])
    }

    fn touch(&mut self, row: NodeRow, with_ports: bool) -> &mut ChangedNode<'s> {
        let slot = *self.slots.entry(row.0).or_insert_with(|| {
            let hot = self.state.nodes.hot(row);
            let (used, allocs) = (hot.used, hot.allocs);
            let (held, given, mounted) = (Vec::new(), Vec::new(), Vec::new());
            self.touched.push(ChangedNode { row, used, allocs, ports: None, held, given, mounted });
            self.touched.len() as u32 - 1
        });
        let touched = &mut self.touched[slot as usize];
        if with_ports && touched.ports.is_none() {
            touched.ports = Some(self.state.nodes.load(row).ports.clone());
        }
        touched
    }
}
