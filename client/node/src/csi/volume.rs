//! A volume of an allocation is made ready, and given back. All of it may be done again at any time: the interface demands
//! that of plugins, and the agent may be killed between any two steps.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use csi::messages::{
    CapacityRange, NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    VolumeCapability,
};
use csi::{Plugin, capability};
use model::document::{CSIMountOptions, CSIVolume};
use wire::messages::{
    CsiCapacityRange, CsiNodeDetachRequest, CsiNodeExpandRequest, CsiNodeExpandResponse, CsiSecrets,
};

use super::paths::Usage;
use super::plugins::Instance;
use crate::context::Context;

/// What the servers say with a claim.
#[derive(Debug)]
pub struct Claimed {
    pub volume: CSIVolume,
    pub publish_context: BTreeMap<String, String>,
    /// It has grown, and no node has expanded it since.
    pub expansion: Option<CsiCapacityRange>,
}

/// Stages and publishes the volume, waiting for its plugin.
///
/// # Errors
/// In words: which plugin, in which call.
pub async fn mount(
    context: &Context,
    usage: &Usage,
    options: &CSIMountOptions,
    claimed: &Claimed,
) -> Result<(), String> {
    let within = context.settings.csi.plugin_within;
    let instance = context.csi.wait_for_node(&usage.plugin_id, within).await?;
    let (plugin, stages) = parts(&instance)?;
    let how = capability(&usage.access_mode, &usage.attachment_mode, &options.fs_type, &options.mount_flags)?;
    let state_dir = &context.settings.state_dir;
    let _alone = context.csi.work_on(&usage.plugin_id, &usage.external_id).await;
    let io = |error: std::io::Error| format!("volume {}: {error}", usage.volume_id);
    // First of all: whoever ends meanwhile has to see that what is staged is needed.
    let target = usage.prepare_target(state_dir).map_err(io)?;
    let mut staging_inside = String::new();
    if stages {
        let staging = usage.staging(state_dir);
        std::fs::create_dir_all(&staging).map_err(io)?;
        staging_inside = instance.of.inside(&staging);
        let request = NodeStageVolumeRequest {
            volume_id: usage.external_id.clone(),
            publish_context: claimed.publish_context.clone(),
            staging_target_path: staging_inside.clone(),
            volume_capability: Some(how.clone()),
            secrets: claimed.volume.secrets.0.0.clone(),
            volume_context: claimed.volume.context.0.clone(),
        };
        plugin.node_stage(request).await.map_err(|error| error.to_string())?;
    }
    let request = NodePublishVolumeRequest {
        volume_id: usage.external_id.clone(),
        publish_context: claimed.publish_context.clone(),
        staging_target_path: staging_inside,
        target_path: instance.of.inside(&target),
        volume_capability: Some(how),
        readonly: usage.read_only,
        secrets: claimed.volume.secrets.0.0.clone(),
        volume_context: claimed.volume.context.0.clone(),
    };
    plugin.node_publish(request).await.map_err(|error| error.to_string())?;
    match target.symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "plugin {}: the volume is published, but not seen at {}: do mounts of the plugin's task reach the host?",
            usage.plugin_id,
            target.display()
        )),
    }
}

/// Unpublishes the volume, and unstages it if nobody else on this node needs that.
///
/// # Errors
/// In words: which plugin, in which call; nothing is forgotten then.
pub async fn unmount(context: &Context, usage: &Usage, within: Duration) -> Result<(), String> {
    let instance = context.csi.wait_for_node(&usage.plugin_id, within).await?;
    let (plugin, stages) = parts(&instance)?;
    let state_dir = &context.settings.state_dir;
    let _alone = context.csi.work_on(&usage.plugin_id, &usage.external_id).await;
    let target = usage.target(state_dir);
    let inside = instance.of.inside(&target);
    plugin.node_unpublish(&usage.external_id, &inside).await.map_err(|error| error.to_string())?;
    let io = |error: std::io::Error| {
        format!("plugin {}: after NodeUnpublishVolume {}: {error}", usage.plugin_id, target.display())
    };
    usage.remove_target(state_dir).map_err(io)?;
    let staging = usage.staging(state_dir);
    let is_shared = usage.is_shared(state_dir).map_err(io)?;
    if stages && !is_shared && staging.exists() {
        let inside = instance.of.inside(&staging);
        plugin.node_unstage(&usage.external_id, &inside).await.map_err(|error| error.to_string())?;
        usage.remove_staging(state_dir).map_err(io)?;
    }
    Ok(())
}

fn parts(instance: &Instance) -> Result<(&Plugin, bool), String> {
    let (plugin, node) = (instance.plugin.as_ref(), instance.node.as_ref());
    let both = plugin.zip(node).map(|(plugin, (can, _))| (plugin, can.stage));
    both.ok_or_else(|| format!("plugin {} mounts nothing on nodes", instance.of.plugin_id))
}

impl Context {
    /// Unmounts what an allocation has left of a volume, because servers ask for it.
    ///
    /// # Errors
    /// As above.
    pub async fn detach_volume(&self, asked: CsiNodeDetachRequest) -> Result<(), String> {
        let usage = Usage {
            plugin_id: asked.plugin_id,
            namespace: asked.volume_namespace,
            volume_id: asked.volume_id,
            external_id: asked.external_id,
            alloc_id: asked.alloc_id,
            read_only: asked.read_only,
            access_mode: asked.access_mode,
            attachment_mode: asked.attachment_mode,
        };
        if !is_left(&self.settings.state_dir, &usage) {
            return Ok(());
        }
        // The servers ask again later.
        unmount(self, &usage, Duration::ZERO).await
    }
}

impl Context {
    /// Has the file system on a volume follow the volume.
    ///
    /// # Errors
    /// As above.
    pub async fn expand_volume(&self, asked: CsiNodeExpandRequest) -> Result<CsiNodeExpandResponse, String> {
        let claim = asked.claim.ok_or("no claim of an allocation")?;
        let usage = Usage {
            plugin_id: asked.plugin_id,
            namespace: asked.volume_namespace,
            volume_id: asked.volume_id,
            external_id: asked.external_id,
            alloc_id: claim.allocation_id,
            read_only: claim.mode == 0,
            access_mode: claim.access_mode,
            attachment_mode: claim.attachment_mode,
        };
        let how = capability(&usage.access_mode, &usage.attachment_mode, "", &[])?;
        let capacity_bytes = expand(self, &usage, how, asked.capacity, asked.secrets).await?;
        Ok(CsiNodeExpandResponse { capacity_bytes })
    }
}

/// Has what is on a volume that was mounted just now follow the volume, which has grown. `false`: the plugin cannot do that here.
///
/// # Errors
/// As above.
pub async fn expand_mounted(
    context: &Context,
    usage: &Usage,
    options: &CSIMountOptions,
    claimed: &Claimed,
    to: CsiCapacityRange,
) -> Result<bool, String> {
    let instance = context.csi.wait_for_node(&usage.plugin_id, Duration::ZERO).await?;
    if !instance.node.as_ref().is_some_and(|(can, _)| can.expand) {
        return Ok(false);
    }
    let how = capability(&usage.access_mode, &usage.attachment_mode, &options.fs_type, &options.mount_flags)?;
    expand(context, usage, how, to, claimed.volume.secrets.clone()).await?;
    Ok(true)
}

async fn expand(
    context: &Context,
    usage: &Usage,
    how: VolumeCapability,
    to: CsiCapacityRange,
    secrets: CsiSecrets,
) -> Result<i64, String> {
    let instance = context.csi.wait_for_node(&usage.plugin_id, Duration::ZERO).await?;
    let (plugin, stages) = parts(&instance)?;
    let state_dir = &context.settings.state_dir;
    let _alone = context.csi.work_on(&usage.plugin_id, &usage.external_id).await;
    let staging = if stages { instance.of.inside(&usage.staging(state_dir)) } else { String::new() };
    let request = NodeExpandVolumeRequest {
        volume_id: usage.external_id.clone(),
        volume_path: instance.of.inside(&usage.target(state_dir)),
        capacity_range: Some(CapacityRange {
            required_bytes: to.required_bytes,
            limit_bytes: to.limit_bytes,
        }),
        staging_target_path: staging,
        volume_capability: Some(how),
        secrets: secrets.0.0,
    };
    let grown = plugin.node_expand(request).await.map_err(|error| error.to_string())?;
    Ok(grown.capacity_bytes)
}

/// Anything of the volume may be mounted for the allocation.
fn is_left(state_dir: &Path, usage: &Usage) -> bool {
    let target = usage.target(state_dir);
    target.parent().is_some_and(Path::exists)
}
