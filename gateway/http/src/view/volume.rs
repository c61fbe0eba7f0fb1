//! Volumes and plugins, with what follows from nodes and allocations.

use std::collections::BTreeMap;

use api::{
    CSIPlugin, CSIPluginListStub, CSIVolumeDetail, CSIVolumeListStub, HostVolumeDetail, HostVolumeStub,
};
use model::document::{CSIInfo, CSIVolume, HostVolume};
use model::{AllocId, NodeStatus};
use serde_json::Value;
use state::State;
use state::alloc::Alloc;
use state::volume::{Registered, csi_users, host_document, host_users, is_csi_schedulable};

/// All plugins by id, as the nodes report them.
pub(crate) fn plugins(state: &State) -> BTreeMap<String, CSIPlugin> {
    let mut plugins: BTreeMap<String, CSIPlugin> = BTreeMap::new();
    for row in state.nodes.rows() {
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        let is_up = hot.status != NodeStatus::Down;
        let document = &cold.document;
        let of_node = document.csi_node_plugins.iter().map(|known| (known, false));
        for ((id, info), controls) in
            of_node.chain(document.csi_controller_plugins.iter().map(|known| (known, true)))
        {
            let plugin = plugins.entry(id.clone()).or_insert_with(|| begun(id, info, cold.created.0));
            plugin.create_index = plugin.create_index.min(cold.created.0);
            plugin.modify_index = plugin.modify_index.max(hot.modified.0);
            plugin.controller_required |= info.requires_controller_plugin;
            let healthy = i64::from(is_up && info.healthy);
            let (instances, expected, up) = match controls {
                true => (
                    &mut plugin.controllers,
                    &mut plugin.controllers_expected,
                    &mut plugin.controllers_healthy,
                ),
                false => (&mut plugin.nodes, &mut plugin.nodes_expected, &mut plugin.nodes_healthy),
            };
            (*expected, *up) = (*expected + 1, *up + healthy);
            instances.insert(cold.id.to_string(), info.clone());
        }
    }
    plugins
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

/// The plugin with the allocations that run it.
pub(crate) fn plugin(state: &State, plugin: CSIPlugin) -> CSIPlugin {
    let instances = plugin.controllers.values().chain(plugin.nodes.values());
    let ids = instances.filter_map(|info| info.alloc_id.parse().ok());
    let ids: std::collections::BTreeSet<AllocId> = ids.collect();
    let known = ids.into_iter().filter_map(|id| state.allocs.lookup(id));
    let allocations = known.map(|alloc| state::alloc::stub(state, alloc)).collect();
    CSIPlugin { allocations, ..plugin }
}

pub(crate) fn plugin_stub(plugin: &CSIPlugin) -> CSIPluginListStub {
    CSIPluginListStub {
        id: plugin.id.clone(),
        provider: plugin.provider.clone(),
        controller_required: plugin.controller_required,
        controllers_healthy: plugin.controllers_healthy,
        controllers_expected: plugin.controllers_expected,
        nodes_healthy: plugin.nodes_healthy,
        nodes_expected: plugin.nodes_expected,
        create_index: plugin.create_index,
        modify_index: plugin.modify_index,
    }
}

pub(crate) fn csi_stub(
    state: &State,
    plugins: &BTreeMap<String, CSIPlugin>,
    (registered, volume): (&Registered, &CSIVolume),
) -> CSIVolumeListStub {
    let unknown = CSIPlugin::default();
    let plugin = plugins.get(&volume.plugin_id).unwrap_or(&unknown);
    let users = csi_users(state, &volume.namespace, &volume.id);
    let writers = users.iter().filter(|(_, writes)| *writes).count() as i64;
    CSIVolumeListStub {
        id: volume.id.clone(),
        namespace: volume.namespace.clone(),
        name: volume.name.clone(),
        external_id: volume.external_id.clone(),
        topologies: volume.topologies.clone(),
        access_mode: volume.access_mode.clone(),
        attachment_mode: volume.attachment_mode.clone(),
        current_readers: users.len() as i64 - writers,
        current_writers: writers,
        schedulable: is_csi_schedulable(state, volume),
        plugin_id: volume.plugin_id.clone(),
        provider: plugin.provider.clone(),
        controller_required: plugin.controller_required,
        controllers_healthy: plugin.controllers_healthy,
        controllers_expected: plugin.controllers_expected,
        nodes_healthy: plugin.nodes_healthy,
        nodes_expected: plugin.nodes_expected,
        create_index: registered.created.0,
        modify_index: registered.modified.0,
        create_time: registered.create_time.0,
        modify_time: registered.modify_time.0,
        ..CSIVolumeListStub::default()
    }
}

pub(crate) fn csi(
    state: &State,
    plugins: &BTreeMap<String, CSIPlugin>,
    (registered, volume): (&Registered, &CSIVolume),
) -> CSIVolumeDetail {
    let unknown = CSIPlugin::default();
    let plugin = plugins.get(&volume.plugin_id).unwrap_or(&unknown);
    let users = csi_users(state, &volume.namespace, &volume.id);
    let ids = |wants: bool| {
        let own = users.iter().filter(|(_, writes)| *writes == wants);
        own.map(|(alloc, _)| (alloc.id.to_string(), Value::Null)).collect()
    };
    CSIVolumeDetail {
        volume: volume.clone(),
        read_allocs: ids(false),
        write_allocs: ids(true),
        allocations: users.iter().map(|(alloc, _)| state::alloc::stub(state, alloc)).collect(),
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

pub(crate) fn host_stub(state: &State, registered: &Registered, volume: &HostVolume) -> HostVolumeStub {
    let shown = host_document(state, volume);
    HostVolumeStub {
        namespace: shown.namespace,
        id: shown.id,
        name: shown.name,
        plugin_id: shown.plugin_id,
        node_pool: shown.node_pool,
        node_id: shown.node_id,
        capacity_bytes: shown.capacity_bytes,
        state: shown.state,
        create_index: registered.created.0,
        modify_index: registered.modified.0,
        create_time: registered.create_time.0,
        modify_time: registered.modify_time.0,
    }
}

pub(crate) fn host(state: &State, registered: &Registered, volume: &HostVolume) -> HostVolumeDetail {
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
