//! Storage plugins, asked over the nodes that have them: for routes, for nodes that claim a volume, and for the leader that
//! releases what was claimed.

use std::collections::BTreeMap;

use model::document::{CSIVolume, Map};
use model::{AllocId, CsiClaim, NodeId, NodeStatus, VariableKey, VolumeKey};
use rules::external_id;
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::State;
use wire::messages::{
    CsiAttachRequest, CsiAttachResponse, CsiCapacityRange, CsiControllerQuery, CsiDetachRequest,
    CsiNodeDetachRequest, CsiSecrets, CsiVolumeClaimResponse, Empty, method,
};

use crate::app_state::AppState;
use crate::error::Failure;
use crate::node_rpc::NodeRpcError;

/// Where the secrets of a volume stand: a variable in the volume's namespace, by the volume's id. The log has no secrets but
/// sealed ones, and variables are that.
const SECRETS_BELOW: &str = "csi";

/// Asks storage plugins.
#[derive(Clone)]
pub struct Storage(pub(crate) AppState);

impl Storage {
    /// Asks one controller of the plugin after the other until one is reached. The plugin's own error is final.
    ///
    /// # Errors
    /// 500: there is none, none is reached, or what the plugin says.
    pub(crate) async fn controller<Q: Serialize, A: DeserializeOwned>(
        &self,
        plugin: &str,
        method: &str,
        request: impl Fn(CsiControllerQuery) -> Q,
    ) -> Result<A, Failure> {
        let nodes = controllers(&self.0.control.state(), plugin);
        let mut unreached =
            Failure::internal(format!("plugin {plugin}: no node has a healthy controller of it"));
        for node in nodes {
            let query =
                CsiControllerQuery { controller_node_id: node.to_string(), plugin_id: plugin.to_string() };
            let body =
                msgpack::to_vec(&request(query)).map_err(|error| Failure::internal(error.to_string()))?;
            match self.0.node_rpc.call(node, method, body).await {
                Ok(reply) => {
                    let read = msgpack::from_slice(&reply);
                    return read
                        .map_err(|error| Failure::internal(format!("{method} of node {node}: {error}")));
                }
                Err(error @ NodeRpcError::NoPath(_)) => {
                    unreached = Failure::internal(format!("plugin {plugin}: controller: {error}"));
                }
                Err(error) => return Err(Failure::internal(error.to_string())),
            }
        }
        Err(unreached)
    }

    pub(crate) fn has_controller(&self, plugin: &str) -> bool {
        !controllers(&self.0.control.state(), plugin).is_empty()
    }

    /// The volume as plugins and nodes need it: with its secrets.
    ///
    /// # Errors
    /// 500: there are secrets, and this server cannot open them.
    pub(crate) fn with_secrets(&self, volume: &CSIVolume) -> Result<CSIVolume, Failure> {
        let secrets = CsiSecrets(Map(self.secrets(&volume.namespace, &volume.id)?));
        Ok(CSIVolume { secrets, ..volume.clone() })
    }

    pub(crate) fn secrets(&self, namespace: &str, id: &str) -> Result<BTreeMap<String, String>, Failure> {
        let state = self.0.control.state();
        let key = secrets_key(namespace, id);
        let Some(variable) = state.variables.get(&key) else { return Ok(BTreeMap::new()) };
        let opened = self.0.signer.open_items(&state.keyring, &key, &variable.current().items);
        let items = opened.map_err(|error| Failure::internal(format!("{key} cannot be opened: {error}")))?;
        Ok(items.into_iter().collect())
    }

    /// What the node that claims it has to know: the volume, what its controller says when it attaches it, and whether it has grown.
    ///
    /// # Errors
    /// 404: it is not registered. 500: its controller, or none is reached.
    pub async fn attach(&self, key: &VolumeKey, alloc: AllocId) -> Result<CsiVolumeClaimResponse, Failure> {
        let state = self.0.control.state();
        let known = state.volumes.csi(&key.namespace, &key.id);
        let volume = self.with_secrets(known.ok_or_else(|| Failure::not_found("volume not found"))?)?;
        let Some(claim) = state.claims.get(key, alloc).map(|claimed| claimed.claim.clone()) else {
            return Err(Failure::internal("the claim was released meanwhile"));
        };
        // Whoever may not write to it cannot make its file system larger.
        let expansion = state.expansions.get(key).filter(|_| !claim.read_only);
        let expansion = expansion.map(|awaited| CsiCapacityRange {
            required_bytes: awaited.required_bytes,
            limit_bytes: awaited.limit_bytes,
        });
        let answer = |volume, publish_context| CsiVolumeClaimResponse {
            volume: Some(volume),
            publish_context,
            expansion,
            ..CsiVolumeClaimResponse::default()
        };
        if !claim.attached {
            return Ok(answer(volume, Map::default()));
        }
        let request = |query| CsiAttachRequest {
            volume_id: claim.external_volume.clone(),
            client_csi_node_id: claim.external_node.clone(),
            attachment_mode: claim.attachment_mode.clone(),
            access_mode: claim.access_mode.clone(),
            mount_options: volume.mount_options.clone(),
            read_only: claim.read_only,
            secrets: volume.secrets.clone(),
            volume_context: volume.context.clone(),
            query,
        };
        let attached: CsiAttachResponse =
            self.controller(&claim.plugin, method::CSI_CONTROLLER_ATTACH, request).await?;
        Ok(answer(volume, attached.publish_context))
    }

    /// Has a controller detach what was claimed. A volume that is forgotten has no secrets any more.
    ///
    /// # Errors
    /// 500: its controller, or none is reached.
    pub async fn detach(&self, key: &VolumeKey, claim: &CsiClaim) -> Result<(), Failure> {
        let secrets = self.secrets(&key.namespace, &key.id)?;
        let request = |query| CsiDetachRequest {
            volume_id: claim.external_volume.clone(),
            client_csi_node_id: claim.external_node.clone(),
            secrets: CsiSecrets(Map(secrets.clone())),
            query,
        };
        let _: Empty = self.controller(&claim.plugin, method::CSI_CONTROLLER_DETACH, request).await?;
        Ok(())
    }

    /// Has the node unmount what an allocation has left.
    ///
    /// # Errors
    /// The node is not reached; what its plugin says.
    pub async fn unmount(&self, key: &VolumeKey, alloc: AllocId, claim: &CsiClaim) -> Result<(), Failure> {
        let request = CsiNodeDetachRequest {
            plugin_id: claim.plugin.clone(),
            volume_id: key.id.clone(),
            volume_namespace: key.namespace.clone(),
            external_id: claim.external_volume.clone(),
            alloc_id: alloc.to_string(),
            node_id: claim.node.to_string(),
            attachment_mode: claim.attachment_mode.clone(),
            access_mode: claim.access_mode.clone(),
            read_only: claim.read_only,
        };
        let _: Empty = self.0.ask(claim.node, method::CSI_NODE_DETACH, &request).await?;
        Ok(())
    }

    /// What the plugin calls a volume that is registered.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn registered(&self, namespace: &str, id: &str) -> Result<(CSIVolume, String), Failure> {
        let state = self.0.control.state();
        let known = state.volumes.csi(namespace, id);
        let known = known.ok_or_else(|| Failure::not_found("volume not found"))?;
        Ok((self.with_secrets(known)?, external_id(known).to_string()))
    }
}

/// Where the secrets of a volume are kept. Volumes of single allocations share those of their name.
pub(crate) fn secrets_key(namespace: &str, id: &str) -> VariableKey {
    let name = id.split('[').next().unwrap_or(id);
    VariableKey { namespace: namespace.to_string(), path: format!("{SECRETS_BELOW}/{name}") }
}

/// The nodes that have a healthy controller of the plugin, and are reached.
fn controllers(state: &State, plugin: &str) -> Vec<NodeId> {
    let ready = state.nodes.rows().filter(|row| {
        let hot = state.nodes.hot(*row);
        !hot.gone && hot.status == NodeStatus::Ready
    });
    let own = ready.map(|row| state.nodes.cold(row)).filter(|node| {
        node.document.csi_controller_plugins.get(plugin).is_some_and(|controller| controller.healthy)
    });
    own.map(|node| node.id).collect()
}
