use std::collections::{BTreeMap, BTreeSet};

use model::command::Plan;
use model::document::TaskGroup;
use model::event::AllocsPlaced;
use model::{AllocId, Given, NodeId, Rejection, Template, VolumeKind};
use state::State;
use state::node::Amount;
use state::volume::sources;

const SOLE_WRITER: &str = "single-node-single-writer";

/// What a plan puts on one node.
#[derive(Default)]
pub(super) struct Demand {
    /// Of new allocations, and what running ones take more than before.
    pub amount: Amount,
    /// New ones.
    pub allocs: u32,
    pub ports: Vec<Port>,
    /// Cores and devices of new ones.
    pub given: Vec<Given>,
    /// Host volumes that a new one wants to be the only writer of, by namespace and name.
    pub sole_writers: Vec<(String, String)>,
    /// Running ones that stay as they are, but for their job's version.
    pub updated: Vec<AllocId>,
}

pub(super) struct Port {
    pub number: u16,
    /// `None`: the first of the node's host network.
    pub address: Option<String>,
    /// Others may have it as well.
    pub may_collide: bool,
}

/// What a plan needs on each node, without placements of a job that is not wanted any more.
///
/// # Errors
/// The plan is none: columns do not match, or an allocation is placed twice.
pub(super) fn demands<'p>(
    state: &'p State,
    plan: &Plan,
    placed: impl Iterator<Item = &'p AllocsPlaced>,
) -> Result<BTreeMap<NodeId, Demand>, Rejection> {
    let mut demands: BTreeMap<NodeId, Demand> = BTreeMap::new();
    let mut ids: BTreeSet<AllocId> = BTreeSet::new();
    for placed in placed {
        let columns = Columns::of(state, placed)?;
        for (at, (id, node)) in placed.ids.iter().zip(&placed.nodes).enumerate() {
            if !ids.insert(*id) || state.allocs.find(*id).is_some() {
                return Err(Rejection::PlanInvalid(format!("allocation {id} is placed twice")));
            }
            columns.add_to(at, demands.entry(*node).or_default());
        }
    }
    for updated in &plan.updated {
        let template: Template = updated.template.read();
        for alloc in updated.allocs.iter().filter_map(|id| state.allocs.lookup(*id)) {
            let demand = demands.entry(alloc.node_id).or_default();
            if alloc.takes_room() {
                let more = Amount::of(&template, &alloc.given).minus(alloc.amount());
                demand.amount = demand.amount.plus(more);
            }
            demand.updated.push(alloc.id);
        }
    }
    Ok(demands)
}

/// Placements of one group, read once.
struct Columns<'p> {
    placed: &'p AllocsPlaced,
    template: Template,
    may_collide: Vec<bool>,
    /// As the job describes it; `None` where its version is not kept.
    group: Option<&'p TaskGroup>,
}

impl<'p> Columns<'p> {
    fn of(state: &'p State, placed: &'p AllocsPlaced) -> Result<Columns<'p>, Rejection> {
        let template: Template = placed.template.read();
        let (count, width) = (placed.ids.len(), template.ports.len());
        let whole = placed.nodes.len() == count
            && placed.names.len() == count
            && placed.ports.len() == count * width
            && (placed.previous.is_empty() || placed.previous.len() == count)
            && (placed.given.is_empty() || placed.given.len() == count);
        if !whole {
            return Err(Rejection::PlanInvalid("columns of different lengths".to_string()));
        }
        let asked = template.resources.shared.networks.iter().flat_map(|network| &network.reserved_ports);
        let shared: Vec<&str> =
            asked.filter(|port| port.ignore_collision).map(|port| port.label.as_str()).collect();
        let may_collide = template.ports.iter().map(|port| shared.contains(&port.label.as_str())).collect();
        let version = state.jobs.lookup(&placed.key).and_then(|job| job.version(placed.version));
        let group = version.and_then(|version| version.group(&placed.group));
        Ok(Columns { placed, template, may_collide, group })
    }

    fn add_to(&self, at: usize, demand: &mut Demand) {
        let given = self.placed.given.get(at).filter(|given| !given.is_empty());
        let given: Given = given.map(|given| given.read()).unwrap_or_default();
        demand.amount = demand.amount.plus(Amount::of(&self.template, &given));
        demand.allocs += 1;
        let width = self.may_collide.len();
        let numbers = self.placed.ports[at * width..(at + 1) * width].iter().enumerate();
        demand.ports.extend(numbers.map(|(slot, number)| Port {
            number: *number,
            address: given.addresses.get(slot).cloned(),
            may_collide: self.may_collide[slot],
        }));
        if !given.tasks.is_empty() {
            demand.given.push(given);
        }
        let name_index = self.placed.names[at];
        let mounts = self.group.into_iter().flat_map(|g| sources(g, name_index, VolumeKind::Host));
        let alone = mounts.filter(|(request, _)| request.access_mode == SOLE_WRITER && !request.read_only);
        demand.sole_writers.extend(alone.map(|(_, name)| (self.placed.key.namespace.clone(), name)));
    }
}
