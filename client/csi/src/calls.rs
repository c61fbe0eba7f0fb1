//! The calls, one method each.

use std::collections::BTreeMap;

use crate::capability::{ControllerCapabilities, NodeCapabilities};
use crate::error::CsiError;
use crate::messages::*;
use crate::plugin::{Call, Description, Plugin};

const GET_PLUGIN_INFO: Call = Call::question("/csi.v1.Identity/GetPluginInfo");
const GET_PLUGIN_CAPABILITIES: Call = Call::question("/csi.v1.Identity/GetPluginCapabilities");
const PROBE: Call = Call::question("/csi.v1.Identity/Probe");
const CONTROLLER_GET_CAPABILITIES: Call = Call::question("/csi.v1.Controller/ControllerGetCapabilities");
const CREATE_VOLUME: Call = Call::work("/csi.v1.Controller/CreateVolume");
const DELETE_VOLUME: Call = Call::work("/csi.v1.Controller/DeleteVolume");
const CONTROLLER_PUBLISH: Call = Call::work("/csi.v1.Controller/ControllerPublishVolume");
const CONTROLLER_UNPUBLISH: Call = Call::work("/csi.v1.Controller/ControllerUnpublishVolume");
const VALIDATE: Call = Call::work("/csi.v1.Controller/ValidateVolumeCapabilities");
const LIST_VOLUMES: Call = Call::work("/csi.v1.Controller/ListVolumes");
const CONTROLLER_EXPAND: Call = Call::work("/csi.v1.Controller/ControllerExpandVolume");
const CREATE_SNAPSHOT: Call = Call::work("/csi.v1.Controller/CreateSnapshot");
const DELETE_SNAPSHOT: Call = Call::work("/csi.v1.Controller/DeleteSnapshot");
const LIST_SNAPSHOTS: Call = Call::work("/csi.v1.Controller/ListSnapshots");
const NODE_GET_CAPABILITIES: Call = Call::question("/csi.v1.Node/NodeGetCapabilities");
const NODE_GET_INFO: Call = Call::question("/csi.v1.Node/NodeGetInfo");
const NODE_STAGE: Call = Call::work("/csi.v1.Node/NodeStageVolume");
const NODE_UNSTAGE: Call = Call::work("/csi.v1.Node/NodeUnstageVolume");
const NODE_PUBLISH: Call = Call::work("/csi.v1.Node/NodePublishVolume");
const NODE_UNPUBLISH: Call = Call::work("/csi.v1.Node/NodeUnpublishVolume");
const NODE_EXPAND: Call = Call::work("/csi.v1.Node/NodeExpandVolume");

/// Services that a plugin may have besides that of nodes.
const CONTROLLER_SERVICE: i32 = 1;
const TOPOLOGY: i32 = 2;

/// Who a plugin is. All errors are the plugin's, or it was not reached: [`CsiError`].
impl Plugin {
    /// Whether it is ready to work.
    ///
    /// # Errors
    /// See above.
    pub async fn probe(&self) -> Result<bool, CsiError> {
        let answer: ProbeResponse = self.ask_nothing(PROBE).await?;
        Ok(answer.ready.is_none_or(|ready| ready.value))
    }

    /// # Errors
    /// See above; or it has no name.
    pub async fn describe(&self) -> Result<Description, CsiError> {
        let info: GetPluginInfoResponse = self.ask_nothing(GET_PLUGIN_INFO).await?;
        if info.name.is_empty() {
            return Err(self.incomplete(GET_PLUGIN_INFO, "a name"));
        }
        let known: GetPluginCapabilitiesResponse = self.ask_nothing(GET_PLUGIN_CAPABILITIES).await?;
        let has = |number: i32| {
            let mut services = known.capabilities.iter().filter_map(|one| one.service.as_ref());
            services.any(|service| service.kind == number)
        };
        Ok(Description {
            name: info.name,
            version: info.vendor_version,
            has_controller: has(CONTROLLER_SERVICE),
            has_topology: has(TOPOLOGY),
        })
    }

    /// # Errors
    /// See above.
    pub async fn controller_capabilities(&self) -> Result<ControllerCapabilities, CsiError> {
        Ok(ControllerCapabilities::of(&self.ask_nothing(CONTROLLER_GET_CAPABILITIES).await?))
    }

    /// # Errors
    /// See above.
    pub async fn node_capabilities(&self) -> Result<NodeCapabilities, CsiError> {
        Ok(NodeCapabilities::of(&self.ask_nothing(NODE_GET_CAPABILITIES).await?))
    }

    /// # Errors
    /// See above; or it does not say which node it is on.
    pub async fn node_info(&self) -> Result<NodeGetInfoResponse, CsiError> {
        let info: NodeGetInfoResponse = self.ask_nothing(NODE_GET_INFO).await?;
        if info.node_id.is_empty() {
            return Err(self.incomplete(NODE_GET_INFO, "the node's id"));
        }
        Ok(info)
    }
}

/// What a controller does.
impl Plugin {
    /// # Errors
    /// As above; or the answer has no volume.
    pub async fn create_volume(&self, request: CreateVolumeRequest) -> Result<Volume, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let answer: CreateVolumeResponse = self.call(CREATE_VOLUME, request, &secrets).await?;
        let volume = answer.volume.filter(|volume| !volume.volume_id.is_empty());
        volume.ok_or_else(|| self.incomplete(CREATE_VOLUME, "the volume's id"))
    }

    /// A volume that is gone is as good as deleted.
    ///
    /// # Errors
    /// As above.
    pub async fn delete_volume(&self, volume_id: &str, secrets: &Secrets) -> Result<(), CsiError> {
        let request = DeleteVolumeRequest { volume_id: volume_id.to_string(), secrets: secrets.0.clone() };
        gone(self.call(DELETE_VOLUME, request, secrets).await)
    }

    /// Attaches the volume to a node. What it answers with the node plugin wants to see.
    ///
    /// # Errors
    /// As above.
    pub async fn controller_publish(
        &self,
        request: ControllerPublishVolumeRequest,
    ) -> Result<BTreeMap<String, String>, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let answer: ControllerPublishVolumeResponse =
            self.call(CONTROLLER_PUBLISH, request, &secrets).await?;
        Ok(answer.publish_context)
    }

    /// Detaches it. A volume, or a node, that is gone is as good as detached.
    ///
    /// # Errors
    /// As above.
    pub async fn controller_unpublish(
        &self,
        volume_id: &str,
        node_id: &str,
        secrets: &Secrets,
    ) -> Result<(), CsiError> {
        let request = ControllerUnpublishVolumeRequest {
            volume_id: volume_id.to_string(),
            node_id: node_id.to_string(),
            secrets: secrets.0.clone(),
        };
        gone(self.call(CONTROLLER_UNPUBLISH, request, secrets).await)
    }

    /// Whether the volume is there and can be used so; if not, with what the plugin says about it.
    ///
    /// # Errors
    /// As above.
    pub async fn validate(
        &self,
        request: ValidateVolumeCapabilitiesRequest,
    ) -> Result<Result<(), String>, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let answer: ValidateVolumeCapabilitiesResponse = self.call(VALIDATE, request, &secrets).await?;
        Ok(match answer.confirmed {
            Some(_) => Ok(()),
            None if answer.message.is_empty() => Err("the volume cannot be used in that way".to_string()),
            None => Err(secrets.hide_in(answer.message)),
        })
    }

    /// # Errors
    /// As above.
    pub async fn list_volumes(&self, request: ListVolumesRequest) -> Result<ListVolumesResponse, CsiError> {
        self.ask(LIST_VOLUMES, request).await
    }

    /// # Errors
    /// As above.
    pub async fn controller_expand(
        &self,
        request: ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        self.call(CONTROLLER_EXPAND, request, &secrets).await
    }

    /// # Errors
    /// As above; or the answer has no snapshot.
    pub async fn create_snapshot(&self, request: CreateSnapshotRequest) -> Result<Snapshot, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let answer: CreateSnapshotResponse = self.call(CREATE_SNAPSHOT, request, &secrets).await?;
        let snapshot = answer.snapshot.filter(|snapshot| !snapshot.snapshot_id.is_empty());
        snapshot.ok_or_else(|| self.incomplete(CREATE_SNAPSHOT, "the snapshot's id"))
    }

    /// A snapshot that is gone is as good as deleted.
    ///
    /// # Errors
    /// As above.
    pub async fn delete_snapshot(&self, snapshot_id: &str, secrets: &Secrets) -> Result<(), CsiError> {
        let request =
            DeleteSnapshotRequest { snapshot_id: snapshot_id.to_string(), secrets: secrets.0.clone() };
        gone(self.call(DELETE_SNAPSHOT, request, secrets).await)
    }

    /// # Errors
    /// As above.
    pub async fn list_snapshots(
        &self,
        request: ListSnapshotsRequest,
    ) -> Result<ListSnapshotsResponse, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        self.call(LIST_SNAPSHOTS, request, &secrets).await
    }
}

/// What happens on a node.
impl Plugin {
    /// # Errors
    /// As above.
    pub async fn node_stage(&self, request: NodeStageVolumeRequest) -> Result<(), CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let _: Nothing = self.call(NODE_STAGE, request, &secrets).await?;
        Ok(())
    }

    /// # Errors
    /// As above.
    pub async fn node_unstage(&self, volume_id: &str, staging: &str) -> Result<(), CsiError> {
        let request = NodeUnstageVolumeRequest {
            volume_id: volume_id.to_string(),
            staging_target_path: staging.to_string(),
        };
        gone(self.ask(NODE_UNSTAGE, request).await)
    }

    /// # Errors
    /// As above.
    pub async fn node_publish(&self, request: NodePublishVolumeRequest) -> Result<(), CsiError> {
        let secrets = Secrets(request.secrets.clone());
        let _: Nothing = self.call(NODE_PUBLISH, request, &secrets).await?;
        Ok(())
    }

    /// # Errors
    /// As above.
    pub async fn node_unpublish(&self, volume_id: &str, target: &str) -> Result<(), CsiError> {
        let request =
            NodeUnpublishVolumeRequest { volume_id: volume_id.to_string(), target_path: target.to_string() };
        gone(self.ask(NODE_UNPUBLISH, request).await)
    }

    /// # Errors
    /// As above.
    pub async fn node_expand(
        &self,
        request: NodeExpandVolumeRequest,
    ) -> Result<NodeExpandVolumeResponse, CsiError> {
        let secrets = Secrets(request.secrets.clone());
        self.call(NODE_EXPAND, request, &secrets).await
    }
}

fn gone(result: Result<Nothing, CsiError>) -> Result<(), CsiError> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
