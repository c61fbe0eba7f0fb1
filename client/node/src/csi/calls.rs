//! What servers ask of the controllers that run here.

use api::{CSISnapshot, CSIVolumeExternalStub};
use csi::messages::*;
use csi::{CsiError, Plugin, capability};
use model::document::{CSIMountOptions, CSITopology, CSIVolumeCapability, Map};
use wire::messages::*;

use crate::context::Context;

/// All errors are in words: there is no such controller here, or its own.
impl Context {
    fn controller(&self, query: &CsiControllerQuery) -> Result<Plugin, String> {
        let found = self.csi.controller(&query.plugin_id).and_then(|instance| instance.plugin);
        found.ok_or_else(|| format!("plugin {}: no healthy controller runs on this node", query.plugin_id))
    }

    /// # Errors
    /// As above.
    pub async fn csi_attach(&self, asked: CsiAttachRequest) -> Result<CsiAttachResponse, String> {
        let options = asked.mount_options.unwrap_or_default();
        let how =
            capability(&asked.access_mode, &asked.attachment_mode, &options.fs_type, &options.mount_flags)?;
        let can = self.csi.controller(&asked.query.plugin_id).and_then(|instance| instance.controller);
        if can.is_some_and(|can| !can.publish) {
            // It makes volumes, and nothing has to be attached.
            return Ok(CsiAttachResponse::default());
        }
        let request = ControllerPublishVolumeRequest {
            volume_id: asked.volume_id,
            node_id: asked.client_csi_node_id,
            volume_capability: Some(how),
            // Others are mounted read-only on the node.
            readonly: asked.read_only && can.is_some_and(|can| can.publish_readonly),
            secrets: asked.secrets.0.0,
            volume_context: asked.volume_context.0,
        };
        let publish_context =
            self.controller(&asked.query)?.controller_publish(request).await.map_err(text)?;
        Ok(CsiAttachResponse { publish_context: Map(publish_context) })
    }

    /// # Errors
    /// As above.
    pub async fn csi_detach(&self, asked: CsiDetachRequest) -> Result<Empty, String> {
        let can = self.csi.controller(&asked.query.plugin_id).and_then(|instance| instance.controller);
        if can.is_some_and(|can| !can.publish) {
            return Ok(Empty {});
        }
        let secrets = csi::Secrets(asked.secrets.0.0);
        let plugin = self.controller(&asked.query)?;
        let gone = plugin.controller_unpublish(&asked.volume_id, &asked.client_csi_node_id, &secrets).await;
        gone.map(|()| Empty {}).map_err(text)
    }

    /// # Errors
    /// As above; or the volume cannot be used so.
    pub async fn csi_validate(&self, asked: CsiValidateRequest) -> Result<Empty, String> {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: asked.volume_id,
            volume_context: asked.context.0,
            volume_capabilities: capabilities(&asked.volume_capabilities, asked.mount_options)?,
            parameters: asked.parameters.0,
            secrets: asked.secrets.0.0,
        };
        self.controller(&asked.query)?.validate(request).await.map_err(text)??;
        Ok(Empty {})
    }

    /// # Errors
    /// As above.
    pub async fn csi_create(&self, asked: CsiCreateRequest) -> Result<CsiCreateResponse, String> {
        let source = match (asked.snapshot_id.is_empty(), asked.clone_id.is_empty()) {
            (false, _) => Some(SourceType::Snapshot(SourceId { id: asked.snapshot_id })),
            (true, false) => Some(SourceType::Volume(SourceId { id: asked.clone_id })),
            (true, true) => None,
        };
        let range = CapacityRange { required_bytes: asked.capacity_min, limit_bytes: asked.capacity_max };
        let topologies = asked.requested_topologies.map(|wanted| TopologyRequirement {
            requisite: wanted.required.iter().map(topology).collect(),
            preferred: wanted.preferred.iter().map(topology).collect(),
        });
        let request = CreateVolumeRequest {
            name: asked.name,
            capacity_range: Some(range).filter(|range| *range != CapacityRange::default()),
            volume_capabilities: capabilities(&asked.volume_capabilities, asked.mount_options)?,
            parameters: asked.parameters.0,
            secrets: asked.secrets.0.0,
            volume_content_source: source.map(|source| VolumeContentSource { source: Some(source) }),
            accessibility_requirements: topologies,
        };
        let made = self.controller(&asked.query)?.create_volume(request).await.map_err(text)?;
        let segments = |topology: Topology| CSITopology { segments: Map(topology.segments) };
        Ok(CsiCreateResponse {
            external_volume_id: made.volume_id,
            capacity_bytes: made.capacity_bytes,
            volume_context: Map(made.volume_context),
            topologies: made.accessible_topology.into_iter().map(segments).collect(),
        })
    }

    /// # Errors
    /// As above.
    pub async fn csi_delete(&self, asked: CsiDeleteRequest) -> Result<Empty, String> {
        let secrets = csi::Secrets(asked.secrets.0.0);
        let plugin = self.controller(&asked.query)?;
        plugin.delete_volume(&asked.external_volume_id, &secrets).await.map_err(text)?;
        Ok(Empty {})
    }

    /// # Errors
    /// As above.
    pub async fn csi_expand(&self, asked: CsiExpandRequest) -> Result<CsiExpandResponse, String> {
        let how = asked.volume_capability.map(|own| capabilities(&[own], None)).transpose()?;
        let request = ControllerExpandVolumeRequest {
            volume_id: asked.external_volume_id,
            capacity_range: Some(range(asked.capacity_range)),
            secrets: asked.secrets.0.0,
            volume_capability: how.and_then(|how| how.into_iter().next()),
        };
        let grown = self.controller(&asked.query)?.controller_expand(request).await.map_err(text)?;
        Ok(CsiExpandResponse {
            capacity_bytes: grown.capacity_bytes,
            node_expansion_required: grown.node_expansion_required,
        })
    }

    /// # Errors
    /// As above.
    pub async fn csi_list(
        &self,
        asked: CsiListRequest,
    ) -> Result<CsiListResponse<CSIVolumeExternalStub>, String> {
        let request =
            ListVolumesRequest { max_entries: asked.max_entries, starting_token: asked.starting_token };
        let listed = self.controller(&asked.query)?.list_volumes(request).await.map_err(text)?;
        let stub = |entry: VolumeEntry| {
            let volume = entry.volume?;
            let status = entry.status.unwrap_or_default();
            let condition = status.volume_condition.unwrap_or_default();
            let source = volume.content_source.and_then(|content| content.source);
            let (snapshot_id, clone_id) = match source {
                Some(SourceType::Snapshot(source)) => (source.id, String::new()),
                Some(SourceType::Volume(source)) => (String::new(), source.id),
                None => Default::default(),
            };
            Some(CSIVolumeExternalStub {
                external_id: volume.volume_id,
                capacity_bytes: volume.capacity_bytes,
                volume_context: Map(volume.volume_context),
                clone_id,
                snapshot_id,
                published_external_node_ids: status.published_node_ids.into(),
                is_abnormal: condition.abnormal,
                status: condition.message,
            })
        };
        let entries = listed.entries.into_iter().filter_map(stub).collect();
        Ok(CsiListResponse { entries, next_token: listed.next_token })
    }

    /// # Errors
    /// As above.
    pub async fn csi_create_snapshot(&self, asked: CsiSnapshotRequest) -> Result<CSISnapshot, String> {
        let request = CreateSnapshotRequest {
            source_volume_id: asked.external_source_volume_id,
            name: asked.name.clone(),
            secrets: asked.secrets.0.0,
            parameters: asked.parameters.0,
        };
        let made = self.controller(&asked.query)?.create_snapshot(request).await.map_err(text)?;
        Ok(CSISnapshot { name: asked.name, ..snapshot(made, &asked.query.plugin_id) })
    }

    /// # Errors
    /// As above.
    pub async fn csi_delete_snapshot(&self, asked: CsiDeleteSnapshotRequest) -> Result<Empty, String> {
        let secrets = csi::Secrets(asked.secrets.0.0);
        self.controller(&asked.query)?.delete_snapshot(&asked.id, &secrets).await.map_err(text)?;
        Ok(Empty {})
    }

    /// # Errors
    /// As above.
    pub async fn csi_list_snapshots(
        &self,
        asked: CsiListRequest,
    ) -> Result<CsiListResponse<CSISnapshot>, String> {
        let request = ListSnapshotsRequest {
            max_entries: asked.max_entries,
            starting_token: asked.starting_token,
            secrets: asked.secrets.0.0,
            ..ListSnapshotsRequest::default()
        };
        let listed = self.controller(&asked.query)?.list_snapshots(request).await.map_err(text)?;
        let of_entry = |entry: SnapshotEntry| Some(snapshot(entry.snapshot?, &asked.query.plugin_id));
        let entries = listed.entries.into_iter().filter_map(of_entry).collect();
        Ok(CsiListResponse { entries, next_token: listed.next_token })
    }
}

fn text(error: CsiError) -> String {
    error.to_string()
}

fn capabilities(
    own: &[CSIVolumeCapability],
    options: Option<CSIMountOptions>,
) -> Result<Vec<VolumeCapability>, String> {
    let CSIMountOptions { fs_type, mount_flags } = options.unwrap_or_default();
    let one = |own: &CSIVolumeCapability| {
        capability(&own.access_mode, &own.attachment_mode, &fs_type, &mount_flags)
    };
    own.iter().map(one).collect()
}

fn topology(topology: &CSITopology) -> Topology {
    Topology { segments: topology.segments.0.clone() }
}

fn range(range: CsiCapacityRange) -> CapacityRange {
    CapacityRange { required_bytes: range.required_bytes, limit_bytes: range.limit_bytes }
}

fn snapshot(made: Snapshot, plugin_id: &str) -> CSISnapshot {
    CSISnapshot {
        id: made.snapshot_id,
        external_source_volume_id: made.source_volume_id,
        size_bytes: made.size_bytes,
        create_time: made.creation_time.map_or(0, |time| time.seconds),
        is_ready: made.ready_to_use,
        plugin_id: plugin_id.to_string(),
        ..CSISnapshot::default()
    }
}
