//! What storage plugins are asked to do with volumes: made, deleted, listed, kept as snapshots, detached.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    CSISnapshot, CSISnapshotCreateRequest, CSISnapshotCreateResponse, CSISnapshotListResponse,
    CSIVolumeCreateRequest, CSIVolumeCreateResponse, CSIVolumeExternalStub, CSIVolumeListExternalResponse,
    Params,
};
use axum::Router;
use axum::extract::{Path, State as With};
use axum::http::HeaderMap;
use axum::routing::{delete, get, put};
use model::document::{CSIVolume, Map};
use model::{
    Actor, AllocId, Command, CsiClaim, NodeId, NodeStatus, Rejection, Request, VolumeKey, VolumeKind,
};
use state::State;
use state::volume::is_used;
use wire::messages::{
    CsiCapacityRange, CsiControllerQuery, CsiCreateRequest, CsiCreateResponse, CsiDeleteRequest,
    CsiDeleteSnapshotRequest, CsiExpandRequest, CsiExpandResponse, CsiListRequest, CsiListResponse,
    CsiNodeExpandRequest, CsiNodeExpandResponse, CsiSecrets, CsiSnapshotRequest, CsiValidateRequest,
    CsiVolumeClaim, Empty, method,
};

use super::volume_secrets;
use crate::access::{self, ListCsiVolumes, ReadPlugins};
use crate::answer::{Answer, done, json, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Call, Json, Write};
use crate::storage::Storage;

/// Secrets for a plugin, for this request alone: `key=value,key=value`.
const SECRETS: &str = "x-nomad-csi-secrets";

/// Of names of requests; see [`Write::beside`].
const GROWTH: u8 = 0x55;
const EXPANSION: u8 = 0xaa;

/// Most entries of one list, if the caller asks for no number.
const PAGE: i32 = 1000;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/v1/volumes/external", get(external))
        .route(
            "/v1/volumes/snapshot",
            get(list_snapshots).merge(super::write(snapshot)).delete(delete_snapshot),
        )
        .route("/v1/volume/csi/{id}/create", put(create))
        .route("/v1/volume/csi/{id}/delete", delete(delete_volume))
        .route("/v1/volume/csi/{id}/detach", delete(detach))
}

/// A plugin makes the volume before the log speaks of it. One that is there already is made larger, if more is asked for.
async fn create(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    headers: HeaderMap,
    Json(request): Json<CSIVolumeCreateRequest>,
) -> Answer {
    let Ok([volume]) = <[CSIVolume; 1]>::try_from(request.volumes.0) else {
        return Err(Failure::invalid("Volumes: expected one volume in a request"));
    };
    if volume.id != id {
        return Err(Failure::invalid("Volume ID does not match request path"));
    }
    let namespace = namespace(&write.params, &volume.namespace);
    let mut volume = CSIVolume { namespace, ..volume };
    let command = |volume: &CSIVolume| Command::RegisterCsiVolume { volume: Box::new(volume.clone()) };
    let state = server.control.state();
    access::check(&write.access, &state, &command(&volume))?;
    let own = volume_secrets::take(&write, &mut volume)?;
    let given = [own.secrets.clone(), secrets(&headers)?];
    let storage = Storage(server.clone());
    let known = match state.volumes.csi(&volume.namespace, &volume.id) {
        Some(known) if known.plugin_id == volume.plugin_id => {
            Some(storage.registered(&volume.namespace, &volume.id)?)
        }
        _ => None,
    };
    if let Some((known, _)) = &known {
        volume.external_id.clone_from(&known.external_id);
        volume.capacity = known.capacity;
        (volume.context, volume.topologies) = (known.context.clone(), known.topologies.clone());
    }
    rules::check_csi_volume(&state, &volume)?;
    let mut warnings = String::new();
    match known {
        Some((known, external)) => {
            let secrets = joined(known.secrets.0.0, &given);
            if volume.requested_capacity_min > known.capacity {
                let grown = grow(&storage, &write, &volume, &external, secrets).await?;
                volume.capacity = grown.capacity;
                warnings = grown.warning;
            }
        }
        None => {
            let stored = storage.with_secrets(&volume)?.secrets.0.0;
            make(&storage, &mut volume, joined(stored, &given)).await?;
        }
    }
    // The plugin has taken them.
    own.keep(&server, &write, &volume).await?;
    let receipt = server.submit(&write, command(&volume)).await?;
    let response = CSIVolumeCreateResponse {
        volumes: vec![volume].into(),
        warnings,
        index: receipt.index.0,
        known_leader: true,
        ..CSIVolumeCreateResponse::default()
    };
    written(receipt.index, &response)
}

async fn make(
    storage: &Storage,
    volume: &mut CSIVolume,
    secrets: BTreeMap<String, String>,
) -> Result<(), Failure> {
    let name = if volume.name.is_empty() { &volume.id } else { &volume.name };
    let request = |query| CsiCreateRequest {
        name: name.clone(),
        volume_capabilities: volume.requested_capabilities.clone(),
        mount_options: volume.mount_options.clone(),
        parameters: volume.parameters.clone(),
        secrets: CsiSecrets(Map(secrets.clone())),
        capacity_min: volume.requested_capacity_min,
        capacity_max: volume.requested_capacity_max,
        snapshot_id: volume.snapshot_id.clone(),
        clone_id: volume.clone_id.clone(),
        requested_topologies: volume.requested_topologies.clone(),
        query,
    };
    let made: CsiCreateResponse =
        storage.controller(&volume.plugin_id, method::CSI_CONTROLLER_CREATE, request).await?;
    volume.external_id = made.external_volume_id;
    volume.capacity = made.capacity_bytes;
    volume.context = made.volume_context;
    volume.topologies = made.topologies;
    Ok(())
}

/// What became of a volume that had to grow.
struct Grown {
    capacity: i64,
    /// Names nodes whose file systems stay as large as they are.
    warning: String,
}

/// Has the volume, which its plugin calls `external`, grow, and then the file systems on it where it is mounted. A node that does not
/// answer fails that; asking once more does both again, which plugins have to bear. What no node has done is kept: the next one
/// to mount the volume does it.
async fn grow(
    storage: &Storage,
    write: &Write,
    volume: &CSIVolume,
    external: &str,
    secrets: BTreeMap<String, String>,
) -> Result<Grown, Failure> {
    let capacity = CsiCapacityRange {
        required_bytes: volume.requested_capacity_min,
        limit_bytes: volume.requested_capacity_max,
    };
    let request = |query| CsiExpandRequest {
        external_volume_id: external.to_string(),
        capacity_range: capacity,
        secrets: CsiSecrets(Map(secrets.clone())),
        volume_capability: volume.requested_capabilities.first().cloned(),
        query,
    };
    let grown: CsiExpandResponse =
        storage.controller(&volume.plugin_id, method::CSI_CONTROLLER_EXPAND, request).await?;
    let warning = match grown.node_expansion_required {
        true => expand_on_nodes(storage, write, volume, capacity, &secrets).await?,
        false => String::new(),
    };
    Ok(Grown { capacity: grown.capacity_bytes, warning })
}

/// Says which nodes have the volume mounted and cannot expand it.
async fn expand_on_nodes(
    storage: &Storage,
    write: &Write,
    volume: &CSIVolume,
    capacity: CsiCapacityRange,
    secrets: &BTreeMap<String, String>,
) -> Result<String, Failure> {
    let key = VolumeKey::new(VolumeKind::Csi, &volume.namespace, &volume.id);
    let CsiCapacityRange { required_bytes, limit_bytes } = capacity;
    let awaited = Command::AwaitCsiExpansion { volume: key.clone(), required_bytes, limit_bytes };
    storage.0.submit(&write.beside(GROWTH), awaited).await?;
    let state = storage.0.control.state();
    // What a node has given back it stages anew.
    let held = state.claims.of_volume(&key).filter(|(_, claimed)| !claimed.detached);
    let (mut cannot, mut done) = (BTreeSet::new(), None);
    for (alloc, claimed) in held {
        let claim = &claimed.claim;
        if !expands(&state, claim) {
            cannot.insert(claim.node.to_string());
            continue;
        }
        let request = of_claim(&key, alloc, claim, capacity, secrets);
        let _: CsiNodeExpandResponse = storage.0.ask(claim.node, method::CSI_NODE_EXPAND, &request).await?;
        done = Some(claim.node);
    }
    if let Some(node) = done {
        let ended = Command::EndCsiExpansion { volume: key, node, required_bytes };
        let actor = Actor::Caller(write.caller.clone());
        let request = Request::named(write.beside(EXPANSION).request, actor, ended);
        if let Err(error) = storage.0.control.submit(request).await {
            // The volume has left the node meanwhile: the next one expands it once more.
            tracing::debug!(volume = volume.id, %node, %error, "an expansion is not noted");
        }
    }
    let nodes = cannot.into_iter().collect::<Vec<_>>().join(", ");
    Ok(match nodes.is_empty() {
        true => String::new(),
        false => format!("plugin {} cannot expand what is mounted on these nodes: {nodes}", volume.plugin_id),
    })
}

fn of_claim(
    key: &VolumeKey,
    alloc: AllocId,
    claim: &CsiClaim,
    capacity: CsiCapacityRange,
    secrets: &BTreeMap<String, String>,
) -> CsiNodeExpandRequest {
    CsiNodeExpandRequest {
        plugin_id: claim.plugin.clone(),
        volume_id: key.id.clone(),
        volume_namespace: key.namespace.clone(),
        external_id: claim.external_volume.clone(),
        capacity,
        secrets: CsiSecrets(Map(secrets.clone())),
        claim: Some(CsiVolumeClaim {
            allocation_id: alloc.to_string(),
            node_id: claim.node.to_string(),
            mode: i64::from(!claim.read_only),
            access_mode: claim.access_mode.clone(),
            attachment_mode: claim.attachment_mode.clone(),
            ..CsiVolumeClaim::default()
        }),
    }
}

/// Whether the plugin of the claim's node says that it can expand volumes.
fn expands(state: &State, claim: &CsiClaim) -> bool {
    let plugins = state.nodes.find(claim.node).map(|row| &state.nodes.cold(row).document.csi_node_plugins);
    let plugin = plugins.and_then(|plugins| plugins.get(&claim.plugin));
    plugin.and_then(|plugin| plugin.node_info.as_ref()).is_some_and(|info| info.supports_expand)
}

/// Has a controller look whether the volume is there and can be used so, if one is reached. `own`: secrets besides those that
/// are kept.
///
/// # Errors
/// 500: what the plugin says.
pub(super) async fn validate(
    server: &AppState,
    volume: &CSIVolume,
    own: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let storage = Storage(server.clone());
    if !storage.has_controller(&volume.plugin_id) {
        return Ok(());
    }
    let secrets = joined(storage.secrets(&volume.namespace, &volume.id)?, std::slice::from_ref(own));
    let request = |query| CsiValidateRequest {
        volume_id: rules::external_id(volume).to_string(),
        volume_capabilities: volume.requested_capabilities.clone(),
        mount_options: volume.mount_options.clone(),
        secrets: CsiSecrets(Map(secrets.clone())),
        parameters: volume.parameters.clone(),
        context: volume.context.clone(),
        query,
    };
    let _: Empty = storage.controller(&volume.plugin_id, method::CSI_CONTROLLER_VALIDATE, request).await?;
    Ok(())
}

/// Has the plugin delete what is stored, and forgets the volume.
async fn delete_volume(
    With(server): With<AppState>,
    Path(id): Path<String>,
    write: Write,
    headers: HeaderMap,
) -> Answer {
    let key = VolumeKey::new(VolumeKind::Csi, write.params.namespace(), &id);
    let command = Command::DeregisterVolume { volume: key.clone(), force: false };
    let state = server.control.state();
    access::check(&write.access, &state, &command)?;
    let storage = Storage(server.clone());
    let (volume, external) = storage.registered(&key.namespace, &id).map_err(Failure::as_internal)?;
    if is_used(&state, &key) {
        // Before its plugin is asked: what is decided a moment later may be something else.
        return Err(Failure::from(Rejection::VolumeInUse(key)).as_internal());
    }
    let secrets = joined(volume.secrets.0.0, &[secrets(&headers)?]);
    let request = |query| CsiDeleteRequest {
        external_volume_id: external.clone(),
        secrets: CsiSecrets(Map(secrets.clone())),
        query,
    };
    let _: Empty = storage.controller(&volume.plugin_id, method::CSI_CONTROLLER_DELETE, request).await?;
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    Ok(done(receipt.index))
}

/// Takes the volume from a node. Nomad does so under tasks that run; here these must have ended.
async fn detach(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let key = VolumeKey::new(VolumeKind::Csi, write.params.namespace(), &id);
    let state = server.control.state();
    let command = |alloc| Command::DetachCsiClaim { volume: key.clone(), alloc, node: None };
    access::check(&write.access, &state, &command(Default::default()))?;
    let asked = write.params.get("node").filter(|node| !node.is_empty());
    let asked = asked.ok_or_else(|| Failure::invalid("detach requires node ID"))?;
    let node: NodeId = asked.parse().map_err(|_| Failure::invalid("node: expected the id of a node"))?;
    if state.volumes.get(&key).is_none() {
        return Err(Failure::not_found("volume not found"));
    }
    let is_up = state.nodes.find(node).is_some_and(|row| {
        let hot = state.nodes.hot(row);
        !hot.gone && hot.status != NodeStatus::Down
    });
    let storage = Storage(server.clone());
    let mut index = state.claims.changed();
    for (alloc, claimed) in state.claims.of_volume(&key).filter(|(_, claimed)| claimed.claim.node == node) {
        let runs = state.allocs.lookup(alloc).is_some_and(|alloc| alloc.takes_room());
        if runs && is_up {
            return Err(Failure::internal(format!(
                "volume in use: {id}: allocation {alloc} runs; stop it first"
            )));
        }
        if is_up && !claimed.detached {
            storage.unmount(&key, alloc, &claimed.claim).await?;
        }
        index = server.submit(&write, command(alloc)).await.map_err(Failure::as_internal)?.index;
    }
    Ok(done(index))
}

/// The volumes that a plugin knows, registered or not.
async fn external(With(server): With<AppState>, call: Call<ListCsiVolumes>) -> Answer {
    let plugin = plugin(&call)?;
    let request = |query| page(&call.params, CsiSecrets::default(), query);
    let listed: CsiListResponse<CSIVolumeExternalStub> =
        Storage(server).controller(plugin, method::CSI_CONTROLLER_LIST, request).await?;
    Ok(json(&CSIVolumeListExternalResponse { volumes: listed.entries, next_token: listed.next_token }))
}

async fn list_snapshots(
    With(server): With<AppState>,
    call: Call<ListCsiVolumes>,
    headers: HeaderMap,
) -> Answer {
    let (plugin, secrets) = (plugin(&call)?, CsiSecrets(Map(secrets(&headers)?)));
    let request = |query| page(&call.params, secrets.clone(), query);
    let listed: CsiListResponse<CSISnapshot> =
        Storage(server).controller(plugin, method::CSI_CONTROLLER_LIST_SNAPSHOTS, request).await?;
    let (snapshots, next_token) = (listed.entries, listed.next_token);
    let response =
        CSISnapshotListResponse { snapshots, next_token, known_leader: true, ..Default::default() };
    Ok(json(&response))
}

async fn snapshot(
    With(server): With<AppState>,
    write: Write,
    headers: HeaderMap,
    Json(request): Json<CSISnapshotCreateRequest>,
) -> Answer {
    let namespace = write.params.namespace().to_string();
    may_write(&server, &write, &namespace)?;
    let Ok([asked]) = <[CSISnapshot; 1]>::try_from(request.snapshots.0) else {
        return Err(Failure::invalid("Snapshots: expected one snapshot in a request"));
    };
    let storage = Storage(server.clone());
    let (volume, external) = storage.registered(&namespace, &asked.source_volume_id)?;
    if !asked.plugin_id.is_empty() && asked.plugin_id != volume.plugin_id {
        return Err(Failure::invalid("PluginID: expected that of the source volume"));
    }
    let secrets = joined(volume.secrets.0.0, &[asked.secrets.0, secrets(&headers)?]);
    let request = |query| CsiSnapshotRequest {
        external_source_volume_id: external.clone(),
        name: asked.name.clone(),
        secrets: CsiSecrets(Map(secrets.clone())),
        parameters: asked.parameters.clone(),
        query,
    };
    let made: CSISnapshot =
        storage.controller(&volume.plugin_id, method::CSI_CONTROLLER_CREATE_SNAPSHOT, request).await?;
    let made = CSISnapshot { source_volume_id: asked.source_volume_id, ..made };
    let response =
        CSISnapshotCreateResponse { snapshots: vec![made].into(), known_leader: true, ..Default::default() };
    Ok(json(&response))
}

async fn delete_snapshot(With(server): With<AppState>, write: Write, headers: HeaderMap) -> Answer {
    may_write(&server, &write, write.params.namespace())?;
    let given = |name: &'static str| {
        let value = write.params.get(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| Failure::invalid(format!("{name}: expected one")))
    };
    let (plugin, id) = (given("plugin_id")?, given("snapshot_id")?);
    let secrets = CsiSecrets(Map(secrets(&headers)?));
    let request = |query| CsiDeleteSnapshotRequest { id: id.to_string(), secrets: secrets.clone(), query };
    let storage = Storage(server.clone());
    let _: Empty = storage.controller(plugin, method::CSI_CONTROLLER_DELETE_SNAPSHOT, request).await?;
    Ok(done(server.control.state().index))
}

/// Snapshots are no part of the state; who may register volumes may make and delete them.
fn may_write(server: &AppState, write: &Write, namespace: &str) -> Result<(), Failure> {
    let volume = CSIVolume { namespace: namespace.to_string(), ..CSIVolume::default() };
    let command = Command::RegisterCsiVolume { volume: Box::new(volume) };
    access::check(&write.access, &server.control.state(), &command)
}

fn plugin(call: &Call<ListCsiVolumes>) -> Result<&str, Failure> {
    call.access.require::<ReadPlugins>(call.params.namespace())?;
    let plugin = call.params.get("plugin_id").filter(|plugin| !plugin.is_empty());
    plugin.ok_or_else(|| Failure::invalid("plugin_id: expected the name of a plugin"))
}

fn page(params: &Params, secrets: CsiSecrets, query: CsiControllerQuery) -> CsiListRequest {
    let wanted = params.get("per_page").and_then(|number| number.parse().ok());
    CsiListRequest {
        max_entries: wanted.filter(|number| *number > 0).unwrap_or(PAGE),
        starting_token: params.get("next_token").unwrap_or_default().to_string(),
        secrets,
        query,
    }
}

/// # Errors
/// 400: no pairs of keys and values.
fn secrets(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Failure> {
    let malformed = || Failure::invalid("X-Nomad-CSI-Secrets: expected key=value,key=value");
    let mut secrets = BTreeMap::new();
    for given in headers.get_all(SECRETS) {
        let text = given.to_str().map_err(|_| malformed())?;
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
            secrets.insert(key.trim().to_string(), value.to_string());
        }
    }
    Ok(secrets)
}

/// What comes later wins.
fn joined(
    mut secrets: BTreeMap<String, String>,
    others: &[BTreeMap<String, String>],
) -> BTreeMap<String, String> {
    for other in others {
        secrets.extend(other.clone());
    }
    secrets
}

/// The volume's own, else that of the request.
fn namespace(params: &Params, own: &str) -> String {
    if own.is_empty() { params.namespace() } else { own }.to_string()
}
