//! Volumes that CSI plugins manage, and volumes that were made on nodes.

use base::{Rng, Uuid};
use model::document::{
    CSIInfo, CSINodeInfo, CSIVolume, CSIVolumeCapability, HostVolume, HostVolumeCapability, HostVolumeInfo,
};
use model::{Command, VolumeKey, VolumeKind};
use serde_json::{Value, json};

use super::nodes;

/// The CSI plugin that every node runs, healthy or not.
pub const PLUGIN: &str = "csi";
/// The name of all volumes that were made on nodes.
pub const MADE: &str = "made";
/// CSI volumes: two that jobs share, and three that belong to one allocation each.
const CSI: [&str; 5] = ["shared-0", "shared-1", "own[0]", "own[1]", "own[2]"];
/// How many of `CSI` jobs share.
const SHARED: u64 = 2;

const CSI_MODES: [&str; 4] =
    ["single-node-writer", "multi-node-single-writer", "multi-node-multi-writer", "multi-node-reader-only"];
const HOST_MODES: [&str; 4] =
    ["single-node-writer", "single-node-single-writer", "single-node-multi-writer", "single-node-reader"];
const ATTACHMENT: &str = "file-system";

/// An operator registers a volume, describes it anew or has it forgotten.
pub fn command(count: usize, rng: &mut Rng) -> Command {
    let force = rng.below(4) == 0;
    let (id, node) = (CSI[rng.below(CSI.len() as u64) as usize], rng.below(count as u64) as usize);
    match rng.below(8) {
        0 => Command::DeregisterVolume { volume: VolumeKey::new(VolumeKind::Csi, "default", id), force },
        1 => {
            let id = made_on(node).to_string();
            Command::DeregisterVolume { volume: VolumeKey::new(VolumeKind::Host, "default", &id), force }
        }
        2..=4 => Command::RegisterCsiVolume { volume: Box::new(csi(id, rng)) },
        _ => Command::RegisterHostVolume { volume: Box::new(host(node, rng)) },
    }
}

fn csi(id: &str, rng: &mut Rng) -> CSIVolume {
    let capability = |mode: &str| CSIVolumeCapability {
        access_mode: mode.to_string(),
        attachment_mode: ATTACHMENT.to_string(),
    };
    CSIVolume {
        id: id.to_string(),
        plugin_id: PLUGIN.to_string(),
        requested_capabilities: some_of(&CSI_MODES, rng)
            .into_iter()
            .map(capability)
            .collect::<Vec<_>>()
            .into(),
        ..CSIVolume::default()
    }
}

fn host(node: usize, rng: &mut Rng) -> HostVolume {
    let capability = |mode: &str| HostVolumeCapability {
        access_mode: mode.to_string(),
        attachment_mode: ATTACHMENT.to_string(),
    };
    HostVolume {
        id: made_on(node).to_string(),
        name: MADE.to_string(),
        node_id: nodes::id(node).to_string(),
        host_path: "/srv/made".to_string(),
        requested_capabilities: some_of(&HOST_MODES, rng)
            .into_iter()
            .map(capability)
            .collect::<Vec<_>>()
            .into(),
        ..HostVolume::default()
    }
}

/// One of the modes, and the others half of the time.
fn some_of<'a>(modes: &[&'a str], rng: &mut Rng) -> Vec<&'a str> {
    let sure = modes[rng.below(modes.len() as u64) as usize];
    modes.iter().copied().filter(|mode| *mode == sure || rng.below(2) == 0).collect()
}

fn made_on(node: usize) -> Uuid {
    (0x0501 << 112 | (node as u128 + 1)).into()
}

/// The volume that was made on the node, as the node reports it.
pub fn reported(node: usize) -> HostVolumeInfo {
    let (path, id) = ("/srv/made".to_string(), made_on(node).to_string());
    HostVolumeInfo { path, name: MADE.to_string(), id, ..HostVolumeInfo::default() }
}

/// The plugin of a node, as the node reports it.
pub fn plugin(rng: &mut Rng) -> CSIInfo {
    let healthy = rng.below(4) > 0;
    let max_volumes = [0, 0, 2][rng.below(3) as usize];
    let node_info = Some(CSINodeInfo { max_volumes, ..CSINodeInfo::default() });
    CSIInfo { plugin_id: PLUGIN.to_string(), healthy, node_info, ..CSIInfo::default() }
}

/// Has a group mount one; mostly as a job file may say it, but counts are scaled later.
pub fn mount(group: &mut Value, is_per_node: bool, rng: &mut Rng) {
    let shared = format!("shared-{}", rng.below(SHARED));
    let has_canaries = group["Update"]["Canary"].as_u64().unwrap_or(0) > 0;
    let request = match rng.below(6) {
        0 | 1 => host_request(rng),
        2 if !is_per_node && !has_canaries => {
            json!({"Type": "csi", "Source": "own", "PerAlloc": true, "AccessMode": "single-node-writer"})
        }
        2 | 3 => {
            json!({"Type": "csi", "Source": shared, "AccessMode": "multi-node-reader-only", "ReadOnly": true})
        }
        4 => json!({"Type": "csi", "Source": shared, "AccessMode": "multi-node-multi-writer"}),
        _ => {
            group["Count"] = json!(group["Count"].as_u64().unwrap_or(0).min(1));
            json!({"Type": "csi", "Source": shared, "AccessMode": CSI_MODES[rng.below(2) as usize]})
        }
    };
    group["Volumes"] = json!({"v": request});
    group["Volumes"]["v"]["Name"] = json!("v");
    group["Volumes"]["v"]["AttachmentMode"] = json!(ATTACHMENT);
}

fn host_request(rng: &mut Rng) -> Value {
    let mode = HOST_MODES[rng.below(4) as usize];
    json!({
        "Type": "host", "Source": MADE, "Sticky": rng.below(2) == 0,
        "AccessMode": mode, "ReadOnly": mode == "single-node-reader",
    })
}
