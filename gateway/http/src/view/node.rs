use api::NodeListStub;
use model::document::Map;
use state::node::{NodeRow, Nodes, last_drain};

/// What of a node's attributes a list may show.
const OS_NAME: &str = "os.name";
const VERSION: &str = "nomad.version";

/// What a list of nodes shows besides the usual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extras {
    pub resources: bool,
    pub os: bool,
}

/// The line of a list.
pub(crate) fn stub(nodes: &Nodes, row: NodeRow, extras: Extras) -> NodeListStub {
    let (hot, cold) = (nodes.hot(row), nodes.cold(row));
    let node = &cold.document;
    let attribute = |name: &str| node.attributes.get(name).cloned();
    let host = node.http_addr.rsplit_once(':').map_or("", |(host, _)| host);
    let os = attribute(OS_NAME).filter(|_| extras.os).map(|value| (OS_NAME.to_string(), value));
    NodeListStub {
        address: host.trim_matches(['[', ']']).to_string(),
        id: cold.id.to_string(),
        attributes: os.into_iter().collect::<Map<_, _>>(),
        datacenter: node.datacenter.clone(),
        name: node.name.clone(),
        node_class: node.node_class.clone(),
        node_pool: node.node_pool.clone(),
        version: attribute(VERSION).unwrap_or_default(),
        drain: cold.draining().is_some(),
        scheduling_eligibility: hot.eligibility.to_string(),
        status: hot.status.to_string(),
        status_description: node.status_description.clone(),
        drivers: node.drivers.clone(),
        node_resources: node.node_resources.clone().filter(|_| extras.resources),
        reserved_resources: node.reserved_resources.clone().filter(|_| extras.resources),
        last_drain: cold.drain.as_ref().map(last_drain),
        create_index: cold.created.0,
        modify_index: hot.modified.0,
        host_volumes: node.host_volumes.clone(),
    }
}
