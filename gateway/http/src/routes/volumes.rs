//! Volumes that are registered with servers, and the plugins that nodes report.

use axum::Router;
use axum::extract::{Path, State as With};
use axum::routing::{any, delete, get};
use base::{Index, Uuid};
use model::document::{CSITopology, CSIVolume, HostVolume, List};
use model::{Command, JobKey, Rejection, VolumeKey, VolumeKind};
use serde_json::Value;
use state::State;
use state::volume::{Document, Registered, csi_users, is_used};
use wire::messages::{ClientHostVolumeRequest, ClientHostVolumeResponse, method};

use api::{
    CSIVolumeRegisterRequest, CSIVolumeRegisterResponse, HostVolumeDeleteResponse, HostVolumeRegisterRequest,
    HostVolumeRegisterResponse, Params,
};

use super::write;
use crate::access::{
    self, DeleteHostVolumes, Each, ListCsiVolumes, ListPlugins, ReadCsiVolume, ReadHostVolumes, ReadPlugins,
};
use crate::answer::{Answer, done, written};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::page::{Page, page};
use crate::request::{Call, Json, Read, Reading, Write, as_json, random};
use crate::view::volume as view;

const NOT_FOUND: &str = "volume not found";

pub(super) fn router() -> Router<AppState> {
    let elsewhere = async || Failure::not_found("resource not found");
    Router::new()
        .route("/v1/volumes", get(list).merge(write(register_csi)))
        .route("/v1/volumes/{*rest}", any(elsewhere))
        .route("/v1/volumes/claims", get(claims))
        .route("/v1/volumes/claim/{id}", delete(no_claim))
        .route("/v1/volume/csi/{id}", get(csi).put(register_csi_named).delete(deregister_csi))
        .route("/v1/volume/host/create", write(create_host))
        .route("/v1/volume/host/register", write(register_host))
        .route("/v1/volume/host/{id}", get(host).delete(deregister_host))
        .route("/v1/volume/{*rest}", any(elsewhere))
        .route("/v1/plugins", get(plugins))
        .route("/v1/plugin/csi/{id}", get(plugin))
        .route("/v1/plugin/{*rest}", any(elsewhere))
        .merge(super::storage::router())
}

async fn list(server: With<AppState>, read: Read<Each>) -> Answer {
    match read.params.get("type").unwrap_or_default() {
        "csi" => list_csi(server, read.narrowed()?).await,
        "host" => list_host(server, read.narrowed()?).await,
        "" => empty(server, read).await,
        _ => Err(Failure::not_found("resource not found")),
    }
}

async fn empty(With(server): With<AppState>, read: impl Into<Reading>) -> Answer {
    server.list(read, changed, |_, _| Ok(Page::<Value>::whole(std::iter::empty()))).await
}

/// Sticky volumes are not built, so nothing is claimed.
async fn claims(server: With<AppState>, read: Read<ReadHostVolumes>) -> Answer {
    empty(server, read).await
}

async fn list_csi(With(server): With<AppState>, mut read: Read<ListCsiVolumes>) -> Answer {
    read.options.reverse = false;
    let view = |state: &State, read: &Reading| {
        let given = |name| read.params.get(name).unwrap_or_default();
        let (plugin, node) = (given("plugin_id"), given("node_id"));
        let known = shown(state, read, |document| match document {
            Document::Csi(volume) => Some(&**volume),
            Document::Host(_) => None,
        });
        let known = known.filter(|(_, volume): &(&Registered, &CSIVolume)| {
            volume.id.starts_with(&read.options.prefix)
                && (plugin.is_empty() || volume.plugin_id == plugin)
                && (node.is_empty() || is_used_on(state, volume, node))
        });
        let plugins = view::plugins(state);
        let document = |one: &(&Registered, &CSIVolume)| as_json(&view::csi(state, &plugins, *one));
        let kept = read.filtered("CSIVolume", known, document)?;
        let keyed = kept.into_iter().map(|one| (JobKey::new(&one.1.namespace, &one.1.id), one));
        Ok(page(keyed, &read.options)?.map(|one| view::csi_stub(state, &plugins, one)))
    };
    server.list(read, changed_with_users, view).await
}

async fn list_host(With(server): With<AppState>, read: Read<ReadHostVolumes>) -> Answer {
    let view = |state: &State, read: &Reading| {
        let given = |name| read.params.get(name).unwrap_or_default();
        let (pool, node) = (given("node_pool"), given("node_id"));
        let known = shown(state, read, |document| match document {
            Document::Host(volume) => Some(&**volume),
            Document::Csi(_) => None,
        });
        let known = known.filter(|(_, volume): &(&Registered, &HostVolume)| {
            volume.id.starts_with(&read.options.prefix)
                && (pool.is_empty() || volume.node_pool == pool)
                && (node.is_empty() || volume.node_id == node)
        });
        let document = |(registered, volume): &(&Registered, &HostVolume)| {
            as_json(&view::host(state, registered, volume))
        };
        let kept = read.filtered("HostVolume", known, document)?;
        let keyed = kept.into_iter().map(|one| (JobKey::new(&one.1.namespace, &one.1.id), one));
        Ok(page(keyed, &read.options)?.map(|(registered, volume)| view::host_stub(state, registered, volume)))
    };
    server.list(read, changed_with_nodes, view).await
}

/// The volumes of the namespace that are of one type.
fn shown<'s, V: 's>(
    state: &'s State,
    read: &Reading,
    of_type: impl Fn(&'s Document) -> Option<&'s V>,
) -> impl Iterator<Item = (&'s Registered, &'s V)> {
    let own = state.volumes.iter().filter(move |(key, _)| read.shows(&key.namespace));
    own.filter_map(move |(_, registered)| Some((registered, of_type(&registered.document)?)))
}

fn is_used_on(state: &State, volume: &CSIVolume, node: &str) -> bool {
    let mut users = csi_users(state, &volume.namespace, &volume.id).into_iter();
    users.any(|(alloc, _)| alloc.node_id.to_string() == node)
}

async fn csi(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadCsiVolume>) -> Answer {
    let key = key(&read.params, VolumeKind::Csi, &id);
    let view = |state: &State| match state.volumes.get(&key) {
        Some(registered @ Registered { document: Document::Csi(volume), .. }) => {
            Ok(view::csi(state, &view::plugins(state), (registered, volume)))
        }
        _ => Err(Failure::not_found(NOT_FOUND)),
    };
    server.read(&read, changed_with_users, view).await
}

async fn host(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadHostVolumes>) -> Answer {
    let key = key(&read.params, VolumeKind::Host, &id);
    let view = |state: &State| match state.volumes.get(&key) {
        Some(registered @ Registered { document: Document::Host(volume), .. }) => {
            Ok(view::host(state, registered, volume))
        }
        _ => Err(Failure::not_found(NOT_FOUND)),
    };
    server.read(&read, changed_with_users, view).await
}

async fn plugins(With(server): With<AppState>, read: Read<ListPlugins>) -> Answer {
    read.without_filter()?;
    let is_csi = read.params.get("type") == Some("csi");
    let view = move |state: &State, read: &Reading| {
        let all = view::plugins(state);
        let shown = all.values().filter(|plugin| is_csi && plugin.id.starts_with(&read.options.prefix));
        Ok(Page::whole(shown.map(view::plugin_stub)))
    };
    server.list(read, |state: &State| state.tables.nodes.max(Index(1)), view).await
}

async fn plugin(With(server): With<AppState>, Path(id): Path<String>, read: Read<ReadPlugins>) -> Answer {
    let view = |state: &State| view::plugin(state, &id).ok_or_else(|| Failure::not_found("plugin not found"));
    server.read(&read, |state: &State| state.tables.nodes.max(Index(1)), view).await
}

async fn register_csi(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<CSIVolumeRegisterRequest>,
) -> Answer {
    let Ok([volume]) = <[CSIVolume; 1]>::try_from(request.volumes.0) else {
        return Err(Failure::invalid("Volumes: expected one volume in a request"));
    };
    let (topologies, warnings) = topologies(&volume);
    let namespace = namespace(&write.params, &volume.namespace);
    let mut volume = CSIVolume { namespace, topologies, ..volume };
    let secrets = super::volume_secrets::take(&write, &mut volume)?;
    let state = server.control.state();
    let volume = rules::csi_volume_anew(&state, &volume);
    let command = Command::RegisterCsiVolume { volume: Box::new(volume.clone()) };
    access::check(&write.access, &state, &command)?;
    rules::check_csi_volume(&state, &volume)?;
    super::storage::validate(&server, &volume, &secrets.secrets).await?;
    secrets.keep(&server, &write, &volume).await?;
    let receipt = server.submit(&write, command).await?;
    let response = CSIVolumeRegisterResponse {
        volumes: vec![volume].into(),
        warnings,
        index: receipt.index.0,
        known_leader: true,
        ..CSIVolumeRegisterResponse::default()
    };
    written(receipt.index, &response)
}

/// From where a volume that is there can be reached: what is given, else what its request requires, as no plugin is asked. With
/// what of that has no effect.
fn topologies(volume: &CSIVolume) -> (List<CSITopology>, String) {
    let Some(asked) = volume.requested_topologies.as_ref() else {
        return (volume.topologies.clone(), String::new());
    };
    let warnings = match asked.preferred.is_empty() {
        true => String::new(),
        false => "topology_request: preferred has no effect on a volume that is there already".to_string(),
    };
    let given = if volume.topologies.is_empty() { &asked.required } else { &volume.topologies };
    (given.clone(), warnings)
}

async fn register_csi_named(
    server: With<AppState>,
    Path(id): Path<String>,
    write: Write,
    Json(request): Json<CSIVolumeRegisterRequest>,
) -> Answer {
    if request.volumes.iter().any(|volume| volume.id != id) {
        return Err(Failure::invalid("Volume ID does not match request path"));
    }
    register_csi(server, write, Json(request)).await
}

async fn deregister_csi(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let volume = key(&write.params, VolumeKind::Csi, &id);
    let command = Command::DeregisterVolume { volume, force: force(&write.params)? };
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    Ok(done(receipt.index))
}

/// Has a plugin of a node make the volume before the log speaks of it.
async fn create_host(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<HostVolumeRegisterRequest>,
) -> Answer {
    let asked = request.volume.ok_or_else(|| Failure::invalid("Volume: expected a host volume"))?;
    let named = |given: &str, or: String| if given.is_empty() { or } else { given.to_string() };
    let mut volume = HostVolume {
        namespace: namespace(&write.params, &asked.namespace),
        plugin_id: named(&asked.plugin_id, "mkdir".to_string()),
        id: named(&asked.id, Uuid::from_random(random()).to_string()),
        host_path: "/".to_string(),
        ..asked
    };
    let state = server.control.state();
    access::check(&write.access, &state, &Command::CreateHostVolume { volume: Box::new(volume.clone()) })?;
    let node = placement::node_for_volume(&state, &volume).map_err(Failure::internal)?;
    volume.node_id = node.to_string();
    rules::check_host_volume(&state, &volume)?;
    let made: ClientHostVolumeResponse =
        server.ask(node, method::HOST_VOLUME_CREATE, &of_node(&volume)).await?;
    volume.host_path = made.host_path;
    volume.capacity_bytes = made.capacity_bytes;
    let command = Command::CreateHostVolume { volume: Box::new(volume.clone()) };
    let receipt = match server.submit(&write, command).await {
        Ok(receipt) => receipt,
        Err(failure) => {
            // Nobody will know of it.
            let gone: Result<ClientHostVolumeResponse, Failure> =
                server.ask(node, method::HOST_VOLUME_DELETE, &of_node(&volume)).await;
            if gone.is_err() {
                tracing::warn!(volume = volume.id, %node, "a volume that nobody knows of stays on its node");
            }
            return Err(failure);
        }
    };
    let state = server.control.state();
    let key = VolumeKey::new(VolumeKind::Host, &volume.namespace, &volume.id);
    let stored = state.volumes.get(&key).map(|registered| view::host(&state, registered, &volume));
    written(
        receipt.index,
        &HostVolumeRegisterResponse { volume: stored, warnings: String::new(), index: receipt.index.0 },
    )
}

/// What a node has to know of the volume.
fn of_node(volume: &HostVolume) -> ClientHostVolumeRequest {
    ClientHostVolumeRequest {
        id: volume.id.clone(),
        name: volume.name.clone(),
        plugin_id: volume.plugin_id.clone(),
        namespace: volume.namespace.clone(),
        node_pool: volume.node_pool.clone(),
        node_id: volume.node_id.clone(),
        host_path: volume.host_path.clone(),
        requested_capacity_min_bytes: volume.requested_capacity_min_bytes,
        requested_capacity_max_bytes: volume.requested_capacity_max_bytes,
        capacity_bytes: volume.capacity_bytes,
        parameters: volume.parameters.clone(),
        auth_token: String::new(),
    }
}

async fn register_host(
    With(server): With<AppState>,
    write: Write,
    Json(request): Json<HostVolumeRegisterRequest>,
) -> Answer {
    let volume = request.volume.ok_or_else(|| Failure::invalid("Volume: expected a host volume"))?;
    // Nobody's plugin removes what it has not made.
    let (namespace, plugin_id) = (namespace(&write.params, &volume.namespace), String::new());
    let volume = HostVolume { namespace, plugin_id, ..volume };
    let command = Command::RegisterHostVolume { volume: Box::new(volume.clone()) };
    let receipt = server.submit(&write, command).await?;
    let state = server.control.state();
    let stored = state.volumes.iter().find_map(|(_, registered)| match &registered.document {
        Document::Host(known) => {
            let same = (&known.namespace, &known.name, &known.node_id)
                == (&volume.namespace, &volume.name, &volume.node_id);
            same.then(|| view::host(&state, registered, known))
        }
        Document::Csi(_) => None,
    });
    if let Some(stored) = &stored
        && let Ok(node) = stored.volume.node_id.parse()
        && let Err(failure) = server
            .ask::<_, ClientHostVolumeResponse>(node, method::HOST_VOLUME_REGISTER, &of_node(&stored.volume))
            .await
    {
        tracing::debug!(volume = stored.volume.id, ?failure, "a node does not offer a volume");
    }
    let is_there = stored.as_ref().is_some_and(|stored| stored.volume.state == "ready");
    // Nodes that were notified report it in a moment.
    let warnings = match is_there {
        true => String::new(),
        false => "the volume is pending until its node reports it: add it to the node's host volumes".into(),
    };
    written(receipt.index, &HostVolumeRegisterResponse { volume: stored, warnings, index: receipt.index.0 })
}

async fn deregister_host(With(server): With<AppState>, Path(id): Path<String>, write: Write) -> Answer {
    let volume = key(&write.params, VolumeKind::Host, &id);
    let force = force(&write.params)?;
    let command = Command::DeregisterVolume { volume: volume.clone(), force };
    let state = server.control.state();
    access::check(&write.access, &state, &command)?;
    if !force && is_used(&state, &volume) {
        // Before its node is asked: what is decided a moment later may be something else.
        return Err(Failure::from(Rejection::VolumeInUse(volume)).as_internal());
    }
    if let Some(known) = state.volumes.host(&volume.namespace, &volume.id)
        && let Ok(node) = known.node_id.parse()
    {
        let gone: Result<ClientHostVolumeResponse, Failure> =
            server.ask(node, method::HOST_VOLUME_DELETE, &of_node(known)).await;
        // What nobody here has made needs nobody to remove it.
        if !known.plugin_id.is_empty() && !force {
            gone?;
        }
    }
    let receipt = server.submit(&write, command).await.map_err(Failure::as_internal)?;
    written(receipt.index, &HostVolumeDeleteResponse { index: receipt.index.0 })
}

/// None is there to be deleted.
async fn no_claim(_: Call<DeleteHostVolumes>) -> Failure {
    Failure::internal("claim not found")
}

fn force(params: &Params) -> Result<bool, Failure> {
    params.boolean("force").map_err(|_| Failure::invalid("invalid force value"))
}

/// The volume's own, else that of the request.
fn namespace(params: &Params, own: &str) -> String {
    if own.is_empty() { params.namespace() } else { own }.to_string()
}

fn key(params: &Params, kind: VolumeKind, id: &str) -> VolumeKey {
    VolumeKey::new(kind, params.namespace(), id)
}

fn changed(state: &State) -> Index {
    state.volumes.changed.max(Index(1))
}

/// What nodes say of them is part of what is shown.
fn changed_with_nodes(state: &State) -> Index {
    changed(state).max(state.tables.nodes)
}

fn changed_with_users(state: &State) -> Index {
    changed_with_nodes(state).max(state.tables.allocs).max(state.claims.changed())
}
