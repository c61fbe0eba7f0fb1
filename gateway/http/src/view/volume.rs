//! Volumes and plugins, with what follows from nodes and allocations.

use std::collections::BTreeMap;

use api::{CSIPlugin, CSIPluginListStub, CSIVolumeDetail, CSIVolumeListStub, HostVolumeStub};
pub(crate) use feed::volume::{host, plugin, plugins};
use model::document::{CSIVolume, HostVolume};
use state::State;
use state::volume::{Registered, csi_users, host_document, is_csi_schedulable};

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
    let users = csi_users(state, &volume.namespace, &volume.id);
    let users: Vec<_> = users.into_iter().map(|(alloc, writes)| (alloc.id, writes)).collect();
    feed::volume::csi(state, plugins.get(&volume.plugin_id), (registered, volume), &users)
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
