//! Preemption on the nodes of the state: collects what [`victims`] needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Rng;
use model::document::{Job, Node, TaskGroup};
use state::State;
use state::alloc::{Alloc, first_address};
use state::job::JobRow;
use state::node::{Amount, NodeRow};

use super::{NetworkInterface, NetworkUse, NodeAlloc, NodeRoom, PreemptionRequest, score, victims};
use crate::feasibility::dedicated::{DedicatedRequest, InUse};
use crate::feasibility::devices::DeviceId;
use crate::feasibility::ports::held;
use crate::feasibility::proposed::Proposed;
use crate::reconcile::PassContext;
use crate::settings::settings;

/// Preempts allocations of other jobs for one job.
#[derive(Clone, Debug)]
pub struct Preemptor {
    job: JobRow,
    priority: u32,
    /// Allocations that the plan preempts already, by job and group.
    preempted: BTreeMap<JobRow, BTreeMap<Arc<str>, u32>>,
    /// Their number.
    count: u32,
}

impl Preemptor {
    /// `None`: jobs of this type do not preempt.
    pub fn of(cx: &PassContext) -> Option<Preemptor> {
        let job = &cx.job.current().job;
        let may =
            settings(cx.state, job.node_pool.as_deref().unwrap_or_default()).preempts(cx.eval.facts.kind);
        may.then(|| Preemptor {
            job: cx.eval.job,
            priority: priority(job),
            preempted: BTreeMap::new(),
            count: 0,
        })
    }

    /// The plan preempts these.
    pub fn preempt(&mut self, victims: &[&Alloc], proposed: &mut Proposed) {
        for alloc in victims {
            proposed.stop(alloc);
            *self.preempted.entry(alloc.job).or_default().entry(alloc.group.clone()).or_default() += 1;
            self.count += 1;
        }
    }

    /// How many allocations the plan preempts so far. With each of them the choice of further ones may change.
    pub fn preempted_count(&self) -> u32 {
        self.count
    }

    /// The allocations to preempt, and the node as it is without them. The caller has to check the feasibility of that
    /// node. `None` if no preemption helps, or if none is needed.
    pub fn preempt_on<'s>(
        &self,
        state: &'s State,
        row: NodeRow,
        resource_request: (Amount, &DedicatedRequest),
        proposed: &Proposed<'s>,
    ) -> Option<(Vec<&'s Alloc>, Proposed<'s>)> {
        let (mut amount, dedicated) = resource_request;
        let node = &state.nodes.cold(row).document;
        if !proposed.staying(row).any(|alloc| self.may_be_preempted(alloc)) {
            return None;
        }
        let mut staying: Vec<&'s Alloc> = proposed.staying(row).collect();
        staying.sort_by_key(|alloc| alloc.id);
        let lacks_ports = dedicated.assign_ports(state, row, proposed, &mut Rng::new(0)).is_err();
        let mut node_allocs: Vec<NodeAlloc> = staying
            .iter()
            .map(|alloc| NodeAlloc {
                network: if lacks_ports { network(alloc, node) } else { None },
                ..self.node_alloc(alloc, dedicated.wants_cores_or_devices())
            })
            .collect();
        node_allocs.push(planned(&staying, proposed, row));
        let mut cores = 0;
        if !dedicated.cores.is_empty() {
            cores = crate::feasibility::cores::usable(node).len();
            // The MHz of its reserved cores, if all cores were free.
            amount.cpu_mhz = amount
                .cpu_mhz
                .saturating_add(dedicated.assign_cores_and_devices(node, &InUse::default()).ok()?.cpu_mhz);
        }
        let interfaces = if lacks_ports { interfaces(node) } else { Vec::new() };
        let network = NetworkUse { ports: dedicated.addresses.fixed().collect(), ..NetworkUse::default() };
        let wanted = PreemptionRequest {
            priority: self.priority,
            amount,
            cores: dedicated.cores.count(),
            network: lacks_ports.then_some(&network),
            devices: &dedicated.devices,
        };
        let node_room =
            NodeRoom { node, capacity: state.nodes.hot(row).capacity, cores, interfaces: &interfaces };
        let indexes = victims(&wanted, &node_room, &node_allocs).filter(|indexes| !indexes.is_empty())?;
        let victim_allocs: Vec<&'s Alloc> = indexes.iter().map(|index| staying[*index]).collect();
        let mut after = proposed.alone(row);
        victim_allocs.iter().for_each(|alloc| after.stop(alloc));
        Some((victim_allocs, after))
    }

    fn may_be_preempted(&self, alloc: &Alloc) -> bool {
        NodeAlloc {
            priority: priority(&alloc.version.job),
            is_own: alloc.job == self.job,
            ..NodeAlloc::default()
        }
        .makes_room_for(self.priority)
    }

    /// `equipped`: its cores and devices matter.
    fn node_alloc(&self, alloc: &Alloc, equipped: bool) -> NodeAlloc {
        let group = alloc.version.group(&alloc.group);
        let preempted = self.preempted.get(&alloc.job).and_then(|groups| groups.get(&alloc.group));
        let (mut cores, mut devices) = (0, BTreeSet::new());
        if equipped {
            (cores, devices) = (alloc.given.cores().count(), DeviceId::all(alloc.given.devices()));
        }
        NodeAlloc {
            priority: priority(&alloc.version.job),
            is_own: alloc.job == self.job,
            amount: alloc.amount(),
            cores,
            devices,
            network: None,
            max_parallel: group.map_or(0, max_parallel),
            preempted: preempted.copied().unwrap_or(0),
        }
    }
}

/// The preemption score of a node on which these are preempted.
pub fn preemption_score(victims: &[&Alloc]) -> f64 {
    score(victims.iter().map(|alloc| priority(&alloc.version.job)))
}

fn priority(job: &Job) -> u32 {
    u32::try_from(job.priority.unwrap_or_default()).unwrap_or(0)
}

fn max_parallel(group: &TaskGroup) -> u32 {
    let migrate = group.migrate.as_ref().and_then(|migrate| migrate.max_parallel);
    u32::try_from(migrate.unwrap_or(0)).unwrap_or(0)
}

/// What the plan places on the node, as one allocation that cannot be preempted.
fn planned(staying: &[&Alloc], proposed: &Proposed, row: NodeRow) -> NodeAlloc {
    let of_state = staying.iter().fold(Amount::default(), |sum, alloc| sum.plus(alloc.amount()));
    let InUse { cores, devices } = proposed.planned(row);
    let (cores, amount) = (cores.len(), proposed.used(row).minus(of_state));
    NodeAlloc { is_own: true, amount, cores, devices, ..NodeAlloc::default() }
}

/// A node's addresses, as one interface each.
fn interfaces(node: &Node) -> Vec<NetworkInterface> {
    let networks = node.node_resources.iter().flat_map(|resources| &resources.node_networks);
    let told = networks.flat_map(|network| &network.addresses).map(|address| address.address.as_str());
    let mut interfaces: Vec<&str> = vec![first_address(node)];
    told.for_each(|address| {
        if !interfaces.contains(&address) {
            interfaces.push(address);
        }
    });
    interfaces.into_iter().map(|device| NetworkInterface { device: device.to_string(), mbits: 0 }).collect()
}

/// The ports of an allocation on the address of its first one.
fn network(alloc: &Alloc, node: &Node) -> Option<NetworkUse> {
    let all = || held(&alloc.template, &alloc.ports, &alloc.given);
    let address = all().next()?.address;
    let ports = all().filter(|held| held.address == address && !held.may_collide).map(|held| held.number);
    let device = address.unwrap_or(first_address(node)).to_string();
    Some(NetworkUse { device, mbits: 0, ports: ports.collect() })
}
