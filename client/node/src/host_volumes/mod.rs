//! Volumes that are made on this node when servers ask for them, beside those of its configuration.
//!
//! What is known of them is stored: at the next start they are made again, which changes nothing where they are there, and
//! offered under their names. One change is made at a time. Read `plugin.rs` for who makes them.

mod plugin;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::document::{HostVolumeInfo, Node};
use wire::messages::{ClientHostVolumeRequest, ClientHostVolumeResponse};

use crate::context::Context;
use crate::settings::{HostVolume, NodeSettings};
use crate::store::Store;
pub use plugin::fingerprint;
use plugin::{Made, Plugins};

/// The volumes that were made here, by id.
#[derive(Debug)]
pub struct HostVolumes {
    plugins: Plugins,
    store: Store,
    known: Mutex<BTreeMap<String, ClientHostVolumeRequest>>,
    changing: tokio::sync::Mutex<()>,
}

impl HostVolumes {
    pub fn new(settings: &NodeSettings, store: Store) -> HostVolumes {
        let plugins = Plugins::of(settings);
        HostVolumes { plugins, store, known: Mutex::default(), changing: tokio::sync::Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ClientHostVolumeRequest>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume of that name, as tasks mount it.
    pub fn named(&self, name: &str) -> Option<HostVolume> {
        let known = self.lock();
        let volume = known.values().find(|volume| volume.name == name)?;
        Some(HostVolume { path: PathBuf::from(&volume.host_path), read_only: false })
    }

    /// Makes again what an earlier agent has made, and offers it. What fails is not offered, and tried again at the next
    /// start.
    pub async fn restore(&self, node: &mut Node) {
        let _one_at_a_time = self.changing.lock().await;
        for volume in self.store.load_volumes() {
            match self.make(&volume).await {
                Ok(made) => self.add(node, ClientHostVolumeRequest { host_path: made.path, ..volume }),
                Err(error) => {
                    tracing::error!(volume = volume.name, id = volume.id, error, "a volume is not offered");
                }
            }
        }
    }

    fn add(&self, node: &mut Node, volume: ClientHostVolumeRequest) {
        let info = HostVolumeInfo {
            path: volume.host_path.clone(),
            read_only: false,
            id: volume.id.clone(),
            name: volume.name.clone(),
        };
        node.host_volumes.insert(volume.name.clone(), info);
        self.lock().insert(volume.id.clone(), volume);
    }

    async fn make(&self, volume: &ClientHostVolumeRequest) -> Result<Made, String> {
        if volume.plugin_id.is_empty() {
            // Somebody else has made it.
            let there = std::fs::metadata(&volume.host_path);
            there.map_err(|error| format!("host path \"{}\": {error}", volume.host_path))?;
            return Ok(Made { path: volume.host_path.clone(), bytes: volume.capacity_bytes });
        }
        self.plugins.create(volume).await
    }
}

impl Context {
    /// Has a plugin make a volume, or takes one whose path the request names, and offers it.
    ///
    /// # Errors
    /// In words: what is wrong with the request, the plugin's error, or that its name is taken.
    pub async fn create_volume(
        &self,
        volume: ClientHostVolumeRequest,
    ) -> Result<ClientHostVolumeResponse, String> {
        let volumes = &self.host_volumes;
        let _one_at_a_time = volumes.changing.lock().await;
        volume.id.parse::<base::Uuid>().map_err(|_| "ID: expected a UUID".to_string())?;
        let is_taken =
            volumes.lock().values().any(|other| other.name == volume.name && other.id != volume.id)
                || self.settings.host_volumes.contains_key(&volume.name);
        if volume.name.is_empty() || is_taken {
            return Err(format!("Name: \"{}\": expected one that no volume of this node has", volume.name));
        }
        let made = volumes.make(&volume).await?;
        let (volume_id, volume_name) = (volume.id.clone(), volume.name.clone());
        let volume = ClientHostVolumeRequest {
            host_path: made.path.clone(),
            capacity_bytes: made.bytes,
            auth_token: String::new(),
            ..volume
        };
        volumes.store.put_volume(&volume);
        self.change_node(|node| volumes.add(node, volume));
        self.node_changed.notify_one();
        Ok(ClientHostVolumeResponse {
            volume_id,
            volume_name,
            host_path: made.path,
            capacity_bytes: made.bytes,
        })
    }

    /// Has the plugin remove what it has made. A volume that nobody has made is left where it is, and not offered any more.
    ///
    /// # Errors
    /// The plugin's.
    pub async fn delete_volume(
        &self,
        asked: ClientHostVolumeRequest,
    ) -> Result<ClientHostVolumeResponse, String> {
        let volumes = &self.host_volumes;
        let _one_at_a_time = volumes.changing.lock().await;
        let known = volumes.lock().get(&asked.id).cloned();
        let volume = known.unwrap_or(asked);
        volume.id.parse::<base::Uuid>().map_err(|_| "ID: expected a UUID".to_string())?;
        if !volume.plugin_id.is_empty() {
            volumes.plugins.delete(&volume).await?;
        }
        volumes.lock().remove(&volume.id);
        volumes.store.forget_volume(&volume.id);
        self.change_node(|node| {
            if node.host_volumes.get(&volume.name).is_some_and(|info| info.id == volume.id) {
                node.host_volumes.remove(&volume.name);
            }
        });
        self.node_changed.notify_one();
        Ok(ClientHostVolumeResponse { volume_id: volume.id, volume_name: volume.name, ..Default::default() })
    }
}
