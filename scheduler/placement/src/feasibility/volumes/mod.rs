//! Volumes: whether the volumes that a group mounts are on a node or can be attached to it.

mod csi;
mod host;
mod made;
mod request;

use model::document::{TaskGroup, VolumeRequest};

use csi::{Claim, CsiVolumeRequests, CsiVolumes};
pub use host::MISSING;
use host::{HostVolumeRequests, HostVolumes, unmet_claims, writes};
pub use made::node_for;
pub use request::VolumeRequests;

/// The requests of one type, in the order of their names.
fn of_type(group: &TaskGroup, kind: &str) -> Vec<VolumeRequest> {
    group.volumes.values().filter(|request| request.kind == kind).cloned().collect()
}

/// The volume that the allocation with this number in its name requests.
fn source(request: &VolumeRequest, name_index: u32) -> String {
    if request.per_alloc { format!("{}[{name_index}]", request.source) } else { request.source.clone() }
}

/// The mode of a request, or the default if it is empty.
fn or<'a>(mode: &'a str, default: &'a str) -> &'a str {
    if mode.is_empty() { default } else { mode }
}
