//! Services: a node says where its allocations can be reached, and what has ended is known no more.

use std::collections::{BTreeMap, BTreeSet};

use model::event::{Event, ServicesDeregistered, ServicesRegistered};
use model::{AllocId, NodeId, NodeStatus, RegisterService, Rejection, Service, ServiceEnd, ServiceKey};
use state::State;
use state::node::NodeRow;
use state::service::Registered;

use crate::decision::Decision;
use crate::node;

/// Instances of one allocation at the same time. How many there are of all follows from it: they end with their allocations.
const PER_ALLOC_MAX: usize = 256;
/// The text of one instance: its id, name, tags and address together, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A node registers instances of its own allocations. What is known in the same way already is not written again, and what
/// has ended is not registered: that is known, and its node will remove it.
///
/// # Errors
/// [`Rejection::ServiceInvalid`]; [`Rejection::AllocUnknown`]; [`Rejection::NodeForeignAlloc`] for one of another node;
/// [`Rejection::NodeSilent`] from a node that is down.
pub(crate) fn register(
    state: &State,
    node: NodeId,
    wanted: &[RegisterService],
) -> Result<Decision, Rejection> {
    let row = node::decide::known(state, node)?;
    let status = state.nodes.hot(row).status;
    if status == NodeStatus::Down {
        return Err(Rejection::NodeSilent(node, status));
    }
    let mut by_alloc: BTreeMap<AllocId, Vec<&Service>> = BTreeMap::new();
    for RegisterService { alloc, service } in wanted {
        check(*alloc, service)?;
        let services = by_alloc.entry(*alloc).or_default();
        if services.iter().any(|other| other.id == service.id) {
            return invalid(format!("{}: expected each ID once", service.id));
        }
        services.push(service);
    }
    let mut events = Vec::new();
    for (alloc, services) in by_alloc {
        events.extend(registered(state, node, row, alloc, &services)?);
    }
    Ok(Decision::of(events))
}

fn registered(
    state: &State,
    node: NodeId,
    row: NodeRow,
    id: AllocId,
    services: &[&Service],
) -> Result<Option<Event>, Rejection> {
    let alloc = state.allocs.lookup(id).ok_or(Rejection::AllocUnknown(id))?;
    if alloc.node_id != node {
        return Err(Rejection::NodeForeignAlloc { node, alloc: id.to_string() });
    }
    if alloc.client.is_terminal() {
        return Ok(None);
    }
    let known = state.services.of_alloc(id);
    let datacenter = &state.nodes.cold(row).document.datacenter;
    let is_same =
        |service: &Service| known.iter().any(|row| row.service == *service && row.datacenter == **datacenter);
    let new: Vec<Service> =
        services.iter().filter(|service| !is_same(service)).map(|service| Service::clone(service)).collect();
    let ids: BTreeSet<&str> =
        known.iter().map(|row| &row.service).chain(&new).map(|service| service.id.as_str()).collect();
    if ids.len() > PER_ALLOC_MAX {
        return invalid(format!("an allocation has at most {PER_ALLOC_MAX} services"));
    }
    let key = state.jobs.get(alloc.job).key.clone();
    let event = ServicesRegistered { alloc: id, node, key, datacenter: datacenter.clone(), services: new };
    Ok((!event.services.is_empty()).then(|| event.into()))
}

fn check(alloc: AllocId, service: &Service) -> Result<(), Rejection> {
    let Service { id, name, tags, address, port: _ } = service;
    if Service::alloc_of(id) != Some(alloc) {
        return invalid(format!("ID {id:?}: expected _nomad-task-{alloc}-…, with the allocation's ID"));
    }
    if name.is_empty() {
        return invalid(format!("{id}: ServiceName: expected a name"));
    }
    let text = id.len() + name.len() + address.len() + tags.iter().map(String::len).sum::<usize>();
    if text > TEXT_BYTES_MAX {
        return invalid(format!("{id}: expected at most {TEXT_BYTES_MAX} bytes of text"));
    }
    Ok(())
}

/// # Errors
/// [`Rejection::ServiceUnknown`], also for one that is of another node than the one that asks.
pub(crate) fn deregister(
    state: &State,
    key: &ServiceKey,
    name: Option<&str>,
    node: Option<NodeId>,
) -> Result<Decision, Rejection> {
    let is_meant = |row: &&Registered| {
        name.is_none_or(|name| row.service.name == name) && node.is_none_or(|node| row.node == node)
    };
    let known = state.services.get(key).filter(is_meant);
    let known = known.ok_or_else(|| Rejection::ServiceUnknown(key.clone()))?;
    let services = vec![key.id.clone()];
    Ok(ServicesDeregistered { alloc: known.alloc, services, cause: ServiceEnd::Asked }.into())
}

pub(crate) fn deregister_node(state: &State, node: NodeId) -> Decision {
    Decision::of(of_allocs(state, allocs_on(state, node), ServiceEnd::Asked))
}

/// What follows from events for the services of the allocations that they end, whoever wants them.
pub(crate) fn ended(state: &State, events: &[Event]) -> Vec<Event> {
    if state.services.is_empty() {
        return Vec::new();
    }
    let (mut ended, mut lost) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match event {
            Event::AllocReported(e) if e.to.is_terminal() => {
                ended.insert(e.alloc);
            }
            Event::AllocsStopped(e) if e.client.is_some_and(|client| client.is_terminal()) => {
                ended.extend(&e.allocs);
            }
            Event::AllocsCollected(e) => ended.extend(&e.allocs),
            Event::JobPurged(e) => {
                let allocs = state.jobs.find(&e.key).map(|row| state.jobs.get(row).allocs.clone());
                let allocs = allocs.iter().flat_map(|allocs| allocs.iter()).map(|row| state.allocs.get(*row));
                ended.extend(allocs.filter(|alloc| !alloc.takes_room()).map(|alloc| alloc.id));
            }
            Event::NodeStatusChanged(e) if e.to == NodeStatus::Down => lost.extend(allocs_on(state, e.node)),
            Event::NodeDeregistered(e) => lost.extend(allocs_on(state, e.node)),
            // No other event ends an allocation.
            _ => {}
        }
    }
    let lost = lost.difference(&ended).copied().collect();
    let mut events = of_allocs(state, ended, ServiceEnd::AllocEnded);
    events.extend(of_allocs(state, lost, ServiceEnd::NodeGone));
    events
}

fn of_allocs(state: &State, allocs: BTreeSet<AllocId>, cause: ServiceEnd) -> Vec<Event> {
    let gone = allocs.into_iter().filter_map(|alloc| {
        let known = state.services.of_alloc(alloc);
        let services: Vec<String> = known.iter().map(|row| row.service.id.clone()).collect();
        (!services.is_empty()).then(|| ServicesDeregistered { alloc, services, cause }.into())
    });
    gone.collect()
}

fn allocs_on(state: &State, node: NodeId) -> BTreeSet<AllocId> {
    let rows = state.nodes.find(node).map(|row| state.nodes.load(row));
    let rows = rows.iter().flat_map(|load| load.allocs.iter());
    rows.map(|row| state.allocs.get(*row).id).collect()
}

fn invalid<T>(why: String) -> Result<T, Rejection> {
    Err(Rejection::ServiceInvalid(why))
}
