//! Volumes of storage plugins, as nodes claim them for their allocations and give them back.

use model::{AllocId, Command, VolumeKey, VolumeKind};
use serde::Deserialize;
use wire::RemoteError;
use wire::messages::{
    CsiVolumeClaimRequest, CsiVolumeClaimResponse, CsiVolumeExpandedRequest, CsiVolumeUnpublishRequest,
    CsiVolumeUnpublishResponse, Empty, QueryOptions,
};

use super::{Rpc, denied};

/// Claims first, so that nothing is attached for two; then has it attached, and says what the node needs for the rest.
pub(super) async fn claim(
    rpc: &Rpc,
    request: CsiVolumeClaimRequest,
) -> Result<CsiVolumeClaimResponse, RemoteError> {
    let alloc = alloc(&request.allocation_id)?;
    let node = rpc.caller(&rpc.state(), &request.write.auth_token, Some(alloc))?;
    let volume = key(&request.write.namespace, &request.volume_id);
    let command = Command::ClaimCsiVolume { volume: volume.clone(), alloc, node };
    let receipt = rpc.submit(node, command).await?;
    let answer = rpc.storage.attach(&volume, alloc).await.map_err(denied)?;
    Ok(CsiVolumeClaimResponse { meta: rpc.query_meta(receipt.index.0), ..answer })
}

/// The node has expanded a volume that it has just mounted.
pub(super) async fn expanded(rpc: &Rpc, request: CsiVolumeExpandedRequest) -> Result<Empty, RemoteError> {
    let node = rpc.caller(&rpc.state(), &request.write.auth_token, None)?;
    let volume = key(&request.write.namespace, &request.volume_id);
    let command = Command::EndCsiExpansion { volume, node, required_bytes: request.required_bytes };
    rpc.submit(node, command).await?;
    Ok(Empty {})
}

/// What is left to be done is the leader's business.
pub(super) async fn unpublish(
    rpc: &Rpc,
    request: CsiVolumeUnpublishRequest,
) -> Result<CsiVolumeUnpublishResponse, RemoteError> {
    let claim = request.claim.ok_or("missing claim")?;
    let alloc = alloc(&claim.allocation_id)?;
    let node = rpc.caller(&rpc.state(), &request.write.auth_token, Some(alloc))?;
    let volume = key(&request.write.namespace, &request.volume_id);
    let command = Command::DetachCsiClaim { volume, alloc, node: Some(node) };
    let receipt = rpc.submit(node, command).await?;
    Ok(CsiVolumeUnpublishResponse { meta: rpc.query_meta(receipt.index.0) })
}

/// `CSIVolume.Get`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct GetRequest {
    #[serde(rename = "ID")]
    id: String,
    #[serde(flatten)]
    query: QueryOptions,
}

/// As it was registered, for nodes.
pub(super) async fn get(rpc: &Rpc, request: GetRequest) -> Result<CsiVolumeClaimResponse, RemoteError> {
    let state = rpc.state();
    rpc.caller(&state, &request.query.auth_token, None)?;
    let key = key(&request.query.namespace, &request.id);
    let volume = state.volumes.csi(&key.namespace, &key.id).cloned();
    let meta = rpc.query_meta(state.volumes.changed.0);
    Ok(CsiVolumeClaimResponse { volume, meta, ..CsiVolumeClaimResponse::default() })
}

fn alloc(id: &str) -> Result<AllocId, RemoteError> {
    id.parse().map_err(|_| "missing or malformed allocation ID".into())
}

fn key(namespace: &str, id: &str) -> VolumeKey {
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    VolumeKey::new(VolumeKind::Csi, namespace, id)
}
