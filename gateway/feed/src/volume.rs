//! Volumes and plugins as Nomad's API shows them, with what follows from nodes and allocations.

use std::collections::{BTreeMap, BTreeSet};

use api::{CSIPlugin, CSIVolumeDetail, HostVolumeDetail};
use model::document::{CSIInfo, CSIVolume, HostVolume};
use model::{AllocId, NodeStatus};
use serde_json::Value;
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;
use state::volume::{Registered, host_document, host_users, is_csi_schedulable};

/// All plugins by id, as the nodes report them.
pub fn plugins(state: &State) -> BTreeMap<String, CSIPlugin> {
    gathered(state, |_| true)
}

/// One of them, with the allocations that run it.
pub fn plugin(state: &State, id: &str) -> Option<CSIPlugin> {
    let plugin = gathered(state, |known| known == id).remove(id)?;
    let instances = plugin.controllers.values().chain(plugin.nodes.values());
    let ids: BTreeSet<AllocId> = instances.filter_map(|info| info.alloc_id.parse().ok()).collect();
    let known = ids.into_iter().filter_map(|id| state.allocs.lookup(id));
    let allocations = known.map(|alloc| state::alloc::stub(state, alloc)).collect();
    Some(CSIPlugin { allocations, ..plugin })
}

fn gathered(state: &State, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, CSIPlugin> {
    let mut plugins = BTreeMap::new();
    state.nodes.rows().for_each(|row| add(&mut plugins, state, row, &is_wanted));
    plugins
}

fn add(
    plugins: &mut BTreeMap<String, CSIPlugin>,
    state: &State,
    row: NodeRow,
    is_wanted: impl Fn(&str) -> bool,
) {
    let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
    let is_up = hot.status != NodeStatus::Down;
    let document = &cold.document;
    let of_node = document.csi_node_plugins.iter().map(|known| (known, false));
    let both = of_node.chain(document.csi_controller_plugins.iter().map(|known| (known, true)));
    for ((id, info), controls) in both.filter(|((id, _), _)| is_wanted(id)) {
        let plugin = plugins.entry(id.clone()).or_insert_with(|| begun(id, info, cold.created.0));
        plugin.create_index = plugin.create_index.min(cold.created.0);
        plugin.modify_index = plugin.modify_index.max(hot.modified.0);
        plugin.controller_required |= info.requires_controller_plugin;
        let healthy = i64::from(is_up && info.healthy);
        let (instances, expected, up) = match controls {
            true => {
                (&mut plugin.controllers, &mut plugin.controllers_expected, &mut plugin.controllers_healthy)
            }
            false => (&mut plugin.nodes, &mut plugin.nodes_expected, &mut plugin.nodes_healthy),
        };
        (*expected, *up) = (*expected + 1, *up + healthy);
        instances.insert(cold.id.to_string(), info.clone());
    }
}

fn begun(id: &str, info: &CSIInfo, created: u64) -> CSIPlugin {
    CSIPlugin {
        id: id.to_string(),
        provider: info.provider.clone(),
        version: info.provider_version.clone(),
        create_index: created,
        ..CSIPlugin::default()
    }
}

/// A volume with its plugin, and the allocations that have it, each with whether it may write. Those that are forgotten have
/// no line.
pub fn csi(
    state: &State,
    plugin: Option<&CSIPlugin>,
    (registered, volume): (&Registered, &CSIVolume),
    users: &[(AllocId, bool)],
) -> CSIVolumeDetail {
    let unknown = CSIPlugin::default();
    let plugin = plugin.unwrap_or(&unknown);
    let ids = |wants: bool| {
        let own = users.iter().filter(|(_, writes)| *writes == wants);
        own.map(|(alloc, _)| (alloc.to_string(), Value::Null)).collect()
    };
    let known = users.iter().filter_map(|(alloc, _)| state.allocs.lookup(*alloc));
    CSIVolumeDetail {
        volume: volume.clone(),
        read_allocs: ids(false),
        write_allocs: ids(true),
        allocations: known.map(|alloc| state::alloc::stub(state, alloc)).collect(),
        schedulable: is_csi_schedulable(state, volume),
        provider: plugin.provider.clone(),
        provider_version: plugin.version.clone(),
        controller_required: plugin.controller_required,
        controllers_healthy: plugin.controllers_healthy,
        controllers_expected: plugin.controllers_expected,
        nodes_healthy: plugin.nodes_healthy,
        nodes_expected: plugin.nodes_expected,
        create_index: registered.created.0,
        modify_index: registered.modified.0,
        create_time: registered.create_time.0,
        modify_time: registered.modify_time.0,
        ..CSIVolumeDetail::default()
    }
}

/// A volume that was made on a node, with the allocations that mount it.
pub fn host(state: &State, registered: &Registered, volume: &HostVolume) -> HostVolumeDetail {
    let stub = |alloc: &Alloc| state::alloc::stub(state, alloc);
    HostVolumeDetail {
        volume: host_document(state, volume),
        create_index: registered.created.0,
        modify_index: registered.modified.0,
        create_time: registered.create_time.0,
        modify_time: registered.modify_time.0,
        allocations: host_users(state, volume).into_iter().map(stub).collect(),
    }
}
