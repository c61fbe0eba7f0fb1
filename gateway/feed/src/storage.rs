//! What happened to volumes, and to the plugins that mount them, as the stream lists it: what is gone as it was before.

use std::collections::{BTreeMap, BTreeSet};

use api::{CSIPlugin, CSIVolumeDetail, HostVolumeDetail};
use model::document::CSIInfo;
use model::{Batch, Event, NodeId, NodeStatus, Subject, VolumeKey, VolumeKind};
use serde::Serialize;
use state::State;
use state::volume::{Document, Registered, host_document};

use crate::entries::{Entry, Object, kind};
use crate::volume;

pub(crate) const HOST_VOLUME: &str = api::TOPICS[13];
pub(crate) const CSI_VOLUME: &str = api::TOPICS[14];
pub(crate) const CSI_PLUGIN: &str = api::TOPICS[15];

/// The payload, under the name that Nomad gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StorageDocument {
    Csi {
        #[serde(rename = "Volume")]
        volume: Box<CSIVolumeDetail>,
    },
    Host {
        #[serde(rename = "Volume")]
        volume: Box<HostVolumeDetail>,
    },
    Plugin {
        #[serde(rename = "Plugin")]
        plugin: Box<CSIPlugin>,
    },
}

/// One object that a batch names, and under which type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Volume(VolumeKey, &'static str),
    /// By its id.
    Plugin(String, &'static str),
}

/// Entries for all of them, to stand behind everything else of the batch: ids of events that readers have stored stay what
/// they were. What came and went within the batch was never seen by anybody.
pub(crate) fn entries(before: &State, after: &State, batch: &Batch) -> Vec<Entry> {
    let mut listing =
        Listing { before, after, nodes: BTreeMap::new(), listed: BTreeSet::new(), entries: Vec::new() };
    for (fact, logged) in batch.events.iter().enumerate() {
        let at = (logged.command, fact as u16);
        let command = batch.commands[usize::from(logged.command)].kind;
        match (&logged.event, logged.event.subject()) {
            (Event::VolumeRegistered(e), _) => listing.changed(&e.volume, registered(e.volume.kind), at),
            (Event::VolumeDeregistered(e), _) => listing.removed(&e.volume, at),
            (Event::CsiVolumeClaimed(e), _) => listing.changed(&e.volume, "CSIVolumeClaim", at),
            (Event::CsiClaimDetached(e), _) => listing.changed(&e.volume, "CSIVolumeClaim", at),
            (Event::CsiClaimReleased(e), _) => listing.changed(&e.volume, "CSIVolumeClaim", at),
            (event, Subject::Node(node)) => {
                let kind = kind(command, event);
                kind.into_iter().for_each(|kind| listing.node(node, kind, at));
            }
            _ => {}
        }
    }
    listing.on_nodes();
    listing.entries
}

fn registered(kind: VolumeKind) -> &'static str {
    match kind {
        VolumeKind::Csi => "CSIVolumeRegistered",
        VolumeKind::Host => "HostVolumeRegistered",
    }
}

/// The positions of a command and of a fact in their batch.
type At = (u16, u16);

struct Listing<'a> {
    before: &'a State,
    after: &'a State,
    /// Those that the batch is about, each with the first type it is listed under.
    nodes: BTreeMap<NodeId, (&'static str, At)>,
    listed: BTreeSet<Named>,
    entries: Vec<Entry>,
}

impl Listing<'_> {
    fn changed(&mut self, key: &VolumeKey, kind: &'static str, at: At) {
        if let Some(known) = self.after.volumes.get(key) {
            self.add(Named::Volume(key.clone(), kind), filter_keys(known), None, at);
        }
    }

    fn removed(&mut self, key: &VolumeKey, at: At) {
        let kind = match key.kind {
            VolumeKind::Csi => "CSIVolumeDeregistered",
            VolumeKind::Host => "HostVolumeDeleted",
        };
        let Some(known) = self.before.volumes.get(key) else { return };
        let was = current(self.before, topic(key.kind), &key.namespace, &key.id);
        self.add(Named::Volume(key.clone(), kind), filter_keys(known), was, at);
    }

    /// What nodes have of plugins and volumes follows from them. Each is looked at once, when all of the batch has happened.
    fn node(&mut self, node: NodeId, kind: &'static str, at: At) {
        // Most of what happens to nodes are reports of their allocations, which leave the nodes themselves as they are.
        let modified = |state: &State| state.nodes.find(node).map(|row| state.nodes.hot(row).modified);
        if modified(self.before) == modified(self.after) {
            return;
        }
        let (before, after) = (has_plugins(self.before, node), has_plugins(self.after, node));
        for id in changed_plugins(&before, &after) {
            let named = Named::Plugin(id.clone(), kind);
            // Before all nodes are looked at: many of them may be lost at once.
            if self.listed.contains(&named) {
                continue;
            }
            let is_there = is_reported(self.after, &id);
            let was = if is_there { None } else { current(self.before, CSI_PLUGIN, "", &id) };
            if is_there || was.is_some() {
                self.add(named, vec![id], was, at);
            }
        }
        self.nodes.entry(node).or_insert((kind, at));
    }

    /// Volumes that were made on one of the nodes, where that changed what is shown of them.
    fn on_nodes(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        if nodes.is_empty() {
            return;
        }
        for (key, known) in self.after.volumes.iter() {
            let Document::Host(volume) = &known.document else { continue };
            let own = volume.node_id.parse().ok().and_then(|node: NodeId| nodes.get(&node));
            let Some((kind, at)) = own else { continue };
            let was_there = self.before.volumes.get(key).is_some();
            let shown = |state: &State| host_document(state, volume).state;
            if was_there && shown(self.before) != shown(self.after) {
                self.add(Named::Volume(key.clone(), kind), filter_keys(known), None, *at);
            }
        }
    }

    fn add(
        &mut self,
        named: Named,
        filter_keys: Vec<String>,
        was: Option<StorageDocument>,
        (command, fact): At,
    ) {
        if !self.listed.insert(named.clone()) {
            return;
        }
        let (topic, kind, key, namespace) = match named {
            Named::Volume(key, kind) => (topic(key.kind), kind, key.id, key.namespace),
            Named::Plugin(id, kind) => (CSI_PLUGIN, kind, id, String::new()),
        };
        self.entries.push(Entry {
            topic,
            kind,
            key,
            namespace,
            filter_keys,
            object: Object::Storage(was.map(Box::new)),
            command,
            fact,
        });
    }
}

fn topic(kind: VolumeKind) -> &'static str {
    match kind {
        VolumeKind::Csi => CSI_VOLUME,
        VolumeKind::Host => HOST_VOLUME,
    }
}

/// As Nomad has them: id, name and plugin.
fn filter_keys(known: &Registered) -> Vec<String> {
    match &known.document {
        Document::Csi(volume) => vec![volume.id.clone(), volume.name.clone(), volume.plugin_id.clone()],
        Document::Host(volume) => vec![volume.id.clone(), volume.name.clone(), volume.plugin_id.clone()],
    }
}

fn is_reported(state: &State, plugin: &str) -> bool {
    state.nodes.rows().any(|row| {
        let document = &state.nodes.cold(row).document;
        document.csi_node_plugins.contains_key(plugin) || document.csi_controller_plugins.contains_key(plugin)
    })
}

/// The plugins of a node by id, and whether it is up.
#[derive(Default)]
struct Plugins<'a> {
    is_up: bool,
    nodes: BTreeMap<&'a str, &'a CSIInfo>,
    controllers: BTreeMap<&'a str, &'a CSIInfo>,
}

fn has_plugins(state: &State, node: NodeId) -> Plugins<'_> {
    let Some(row) = state.nodes.find(node) else { return Plugins::default() };
    let document = &state.nodes.cold(row).document;
    Plugins {
        is_up: state.nodes.hot(row).status != NodeStatus::Down,
        nodes: document.csi_node_plugins.iter().map(|(id, info)| (id.as_str(), info)).collect(),
        controllers: document.csi_controller_plugins.iter().map(|(id, info)| (id.as_str(), info)).collect(),
    }
}

fn changed_plugins(before: &Plugins<'_>, after: &Plugins<'_>) -> BTreeSet<String> {
    let all = [&before.nodes, &before.controllers, &after.nodes, &after.controllers];
    let ids: BTreeSet<&str> = all.into_iter().flat_map(|own| own.keys().copied()).collect();
    let is_same = |id: &&str| {
        before.is_up == after.is_up
            && before.nodes.get(*id) == after.nodes.get(*id)
            && before.controllers.get(*id) == after.controllers.get(*id)
    };
    ids.into_iter().filter(|id| !is_same(id)).map(str::to_string).collect()
}

/// The object of that topic, namespace and key. Who has a volume are those that have claimed it, until nothing is left of the
/// claim: that is what the events are about.
pub(crate) fn current(state: &State, topic: &str, namespace: &str, key: &str) -> Option<StorageDocument> {
    if topic == CSI_PLUGIN {
        let plugin = Box::new(volume::plugin(state, key)?);
        return Some(StorageDocument::Plugin { plugin });
    }
    let kind = if topic == CSI_VOLUME { VolumeKind::Csi } else { VolumeKind::Host };
    let key = VolumeKey::new(kind, namespace, key);
    let registered = state.volumes.get(&key)?;
    Some(match &registered.document {
        Document::Csi(own) => {
            let claims = state.claims.of_volume(&key);
            let users: Vec<_> = claims.map(|(alloc, claimed)| (alloc, !claimed.claim.read_only)).collect();
            let plugin = volume::plugin(state, &own.plugin_id);
            let shown = volume::csi(state, plugin.as_ref(), (registered, own), &users);
            StorageDocument::Csi { volume: Box::new(shown) }
        }
        Document::Host(own) => {
            StorageDocument::Host { volume: Box::new(volume::host(state, registered, own)) }
        }
    })
}
