use model::document::{CSIVolume, HostVolume};
use model::event::{VolumeDeregistered, VolumeRegistered};
use model::{Doc, NodeId, Rejection, VolumeKey, VolumeKind};
use state::State;
use state::volume::{Document, Registered, is_used};

use crate::claim::{self, external_id};
use crate::decision::{Context, Decision};
use crate::expansion;

const CSI_ACCESS: [&str; 5] = [
    "single-node-reader-only",
    "single-node-writer",
    "multi-node-reader-only",
    "multi-node-single-writer",
    "multi-node-multi-writer",
];
const HOST_ACCESS: [&str; 4] =
    ["single-node-reader", "single-node-writer", "single-node-single-writer", "single-node-multi-writer"];
const ATTACHMENT: [&str; 2] = ["file-system", "block-device"];

/// Storage that a CSI plugin manages becomes known, or is described anew.
pub fn register_csi(state: &State, document: &CSIVolume) -> Result<Decision, Rejection> {
    let document = described_anew(state, document);
    check_csi(state, &document)?;
    let key = VolumeKey::new(VolumeKind::Csi, &document.namespace, &document.id);
    let before = state.volumes.csi(&document.namespace, &document.id);
    let moves = before.is_some_and(|before| !is_same_storage(before, &document));
    let mut decision = registered(state, key.clone(), Doc::of(&document));
    if moves {
        decision.events.extend(expansion::forgotten(state, &key));
    }
    Ok(decision)
}

/// The volume as it is known once it is described so: what its plugin has said of the same storage stays, as far as the new
/// description does not speak of it.
pub fn described_anew(state: &State, document: &CSIVolume) -> CSIVolume {
    let mut document = CSIVolume { namespace: namespace(&document.namespace), ..document.clone() };
    let Some(before) = state.volumes.csi(&document.namespace, &document.id) else { return document };
    if document.external_id.is_empty() && document.plugin_id == before.plugin_id {
        document.external_id.clone_from(&before.external_id);
    }
    if !is_same_storage(before, &document) {
        return document;
    }
    if document.topologies.is_empty() {
        document.topologies.clone_from(&before.topologies);
    }
    if document.context.is_empty() {
        document.context.clone_from(&before.context);
    }
    if document.capacity == 0 {
        document.capacity = before.capacity;
    }
    document
}

/// Plugins do not know of each other: two may call different things the same.
fn is_same_storage(one: &CSIVolume, other: &CSIVolume) -> bool {
    (&one.plugin_id, external_id(one)) == (&other.plugin_id, external_id(other))
}

/// Whether the volume may become known, or be described so.
///
/// # Errors
/// What is wrong with it.
pub fn check_csi(state: &State, document: &CSIVolume) -> Result<(), Rejection> {
    let namespace = namespace(&document.namespace);
    let capabilities = document.requested_capabilities.iter();
    let modes = capabilities.map(|own| (own.access_mode.as_str(), own.attachment_mode.as_str()));
    required("ID", "a name", &document.id)?;
    required("PluginID", "the name of a plugin", &document.plugin_id)?;
    check_modes(modes, &CSI_ACCESS)?;
    check_namespace(state, &namespace)?;
    if !document.secrets.0.is_empty() {
        return invalid("Secrets", "none: they belong into the variable csi/ID of the volume's namespace");
    }
    let key = VolumeKey::new(VolumeKind::Csi, &namespace, &document.id);
    let before = state.volumes.csi(&namespace, &document.id);
    if before.is_some_and(|before| !is_same_storage(before, document)) && is_used(state, &key) {
        return Err(Rejection::VolumeInUse(key));
    }
    Ok(())
}

/// A volume that was made on a node becomes known. One without an id is given one.
pub fn register_host(state: &State, ctx: &mut Context, document: &HostVolume) -> Result<Decision, Rejection> {
    check_host(state, document)?;
    let namespace = namespace(&document.namespace);
    let node = document.node_id.parse::<NodeId>().ok().and_then(|id| state.nodes.find(id));
    let node = node.expect("the node was checked");
    let id = match document.id.parse::<base::Uuid>() {
        Ok(id) => id.to_string(),
        Err(_) => ctx.mint().to_string(),
    };
    let key = VolumeKey::new(VolumeKind::Host, &namespace, &id);
    let document = HostVolume {
        namespace,
        id,
        node_pool: state.nodes.cold(node).document.node_pool.clone(),
        // What the node says of it is not a part of what was registered.
        state: String::new(),
        ..document.clone()
    };
    Ok(registered(state, key, Doc::of(&document)))
}

/// Whether the volume may become known, or be described so.
///
/// # Errors
/// What is wrong with it.
pub fn check_host(state: &State, document: &HostVolume) -> Result<(), Rejection> {
    let namespace = namespace(&document.namespace);
    let capabilities = document.requested_capabilities.iter();
    let modes = capabilities.map(|own| (own.access_mode.as_str(), own.attachment_mode.as_str()));
    required("Name", "a name", &document.name)?;
    required("HostPath", "a path on the node", &document.host_path)?;
    check_modes(modes, &HOST_ACCESS)?;
    check_namespace(state, &namespace)?;
    let node = document.node_id.parse::<NodeId>().ok().and_then(|id| state.nodes.find(id));
    if node.is_none() {
        return invalid("NodeID", "the id of a registered node");
    }
    let id = match document.id.as_str() {
        "" => String::new(),
        id => match id.parse::<base::Uuid>() {
            Ok(id) => id.to_string(),
            Err(_) => return invalid("ID", "a UUID, or none"),
        },
    };
    let key = VolumeKey::new(VolumeKind::Host, &namespace, &id);
    if let Some(before) = state.volumes.host(&namespace, &id)
        && (before.name != document.name || before.node_id != document.node_id)
    {
        return invalid("Name and NodeID", "those the volume was registered with");
    }
    let is_other = |(other, volume): (&VolumeKey, &Registered)| {
        let Document::Host(volume) = &volume.document else { return false };
        *other != key
            && other.namespace == namespace
            && volume.name == document.name
            && volume.node_id == document.node_id
    };
    if state.volumes.iter().any(is_other) {
        return invalid("Name", "one that no other volume of the namespace has on the node");
    }
    Ok(())
}

/// The volume is forgotten; what is stored on it stays. In use only by force.
pub fn deregister(state: &State, key: &VolumeKey, force: bool) -> Result<Decision, Rejection> {
    if state.volumes.get(key).is_none() {
        return Err(Rejection::VolumeUnknown(key.clone()));
    }
    if !force && is_used(state, key) {
        return Err(Rejection::VolumeInUse(key.clone()));
    }
    let mut events = claim::forgotten(state, key);
    events.extend(expansion::forgotten(state, key));
    events.push(VolumeDeregistered { volume: key.clone() }.into());
    Ok(Decision::of(events))
}

fn registered(state: &State, volume: VolumeKey, document: Doc) -> Decision {
    let before = state.volumes.get(&volume);
    if before.is_some_and(|before| before.document.bytes() == document.0) {
        return Decision::nothing();
    }
    VolumeRegistered { volume, document }.into()
}

fn namespace(namespace: &str) -> String {
    if namespace.is_empty() { "default" } else { namespace }.to_string()
}

fn check_namespace(state: &State, namespace: &str) -> Result<(), Rejection> {
    match state.namespaces.exists(namespace) {
        true => Ok(()),
        false => Err(Rejection::NamespaceUnknown(namespace.to_string())),
    }
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::VolumeInvalid { field: field.into(), expected: expected.into() })
}

fn required(field: &'static str, expected: &'static str, value: &str) -> Result<(), Rejection> {
    if value.is_empty() { invalid(field, expected) } else { Ok(()) }
}

fn check_modes<'a>(
    modes: impl Iterator<Item = (&'a str, &'a str)>,
    access: &[&str],
) -> Result<(), Rejection> {
    let mut modes = modes.peekable();
    if modes.peek().is_none() {
        return invalid("RequestedCapabilities", "at least one");
    }
    for (own_access, attachment) in modes {
        if !access.contains(&own_access) {
            return invalid("RequestedCapabilities.AccessMode", "an access mode of such volumes");
        }
        if !ATTACHMENT.contains(&attachment) {
            return invalid("RequestedCapabilities.AttachmentMode", "file-system or block-device");
        }
    }
    Ok(())
}
