//! CSI volumes: one that is not registered, one that another job writes to, a plugin that does not run.

use std::collections::{BTreeMap, BTreeSet};

use model::document::{Allocation, CSIInfo, CSIVolume, CSIVolumeCapability, Node, TaskGroup, VolumeRequest};
use model::{AllocId, ClientStatus, Command, JobKey, NodeStatus, VolumeKind};
use state::State;
use state::node::NodeRow;
use state::volume::{csi_users, sources};

use super::Search;

/// Most allocations of a group whose volumes are looked at: with `per_alloc` each has volumes of its own.
const ALLOCS_MAX: u32 = 64;

/// Stands for the plugin of a volume that nobody registered, where no plugin runs yet.
const ANY_PLUGIN: &str = "any";

impl Search<'_> {
    pub(super) fn csi_volumes(&mut self, near: &[NodeRow]) {
        let Some(group) = self.own_group() else { return };
        let wanted = wanted(group);
        if wanted.is_empty() {
            return;
        }
        let state = self.asked.state;
        let namespace = state.jobs.get(self.asked.eval.job).key.namespace.clone();
        let is_missing = |id: &String| state.volumes.csi(&namespace, id).is_none();
        let (missing, known): (BTreeMap<_, _>, BTreeMap<_, _>) =
            wanted.into_iter().partition(|(id, _)| is_missing(id));
        if !missing.is_empty() {
            self.registered(&namespace, &missing, near);
        }
        for id in known.keys() {
            self.released(&namespace, id);
        }
        let plugins = known.keys().filter_map(|id| state.volumes.csi(&namespace, id));
        let plugins: BTreeSet<&String> = plugins.map(|volume| &volume.plugin_id).collect();
        for plugin in plugins {
            near.iter().for_each(|row| self.running_plugin(*row, plugin));
        }
    }

    /// The volumes are registered: with a plugin that runs on some node, else with one that comes to a node with them.
    fn registered(&mut self, namespace: &str, missing: &BTreeMap<String, &VolumeRequest>, near: &[NodeRow]) {
        let (state, now) = (self.asked.state, self.asked.now);
        let names: Vec<String> = missing.keys().map(|id| format!("{id:?}")).collect();
        let volumes = match names.as_slice() {
            [one] => format!("the CSI volume {one} were registered"),
            many => format!("the CSI volumes {} were registered", many.join(", ")),
        };
        let plugins = healthy_plugins(state);
        for plugin in &plugins {
            if !self.may_try() {
                return;
            }
            if let Some(fork) = self.with_volumes(state, namespace, missing, plugin) {
                self.try_fork(&fork, || format!("{volumes} with the plugin {plugin:?}"));
            }
        }
        for row in near.iter().filter(|_| plugins.is_empty()) {
            if !self.may_try() {
                return;
            }
            let cold = state.nodes.cold(*row);
            let with_plugin =
                rules::fork::with_node(state, cold.id, &running(&cold.document, ANY_PLUGIN), now);
            if let Some(fork) = self.with_volumes(&with_plugin, namespace, missing, ANY_PLUGIN) {
                let name = &cold.document.name;
                self.try_fork(&fork, || format!("{volumes} and its CSI plugin ran on node {name:?}"));
            }
        }
    }

    fn with_volumes(
        &self,
        state: &State,
        namespace: &str,
        missing: &BTreeMap<String, &VolumeRequest>,
        plugin: &str,
    ) -> Option<State> {
        let mut fork = state.clone();
        for (id, request) in missing {
            let volume = Box::new(volume(namespace, id, request, plugin));
            let register = Command::RegisterCsiVolume { volume };
            fork = rules::fork::after(&fork, &register, self.asked.now, self.asked.seed).ok()?;
        }
        Some(fork)
    }

    /// The allocations of another job that write to the volume have ended.
    fn released(&mut self, namespace: &str, id: &str) {
        let (state, own) = (self.asked.state, self.asked.eval.job);
        let users = csi_users(state, namespace, id).into_iter();
        let others = users.filter(|(alloc, writes)| *writes && !alloc.gone && alloc.job != own);
        let mut by_job: BTreeMap<JobKey, Vec<(AllocId, NodeRow)>> = BTreeMap::new();
        for (alloc, _) in others {
            by_job.entry(state.jobs.get(alloc.job).key.clone()).or_default().push((alloc.id, alloc.node));
        }
        for (job, allocs) in by_job {
            if !self.may_try() {
                return;
            }
            if let Some(fork) = self.without(&allocs) {
                let change =
                    || format!("job {:?}, which writes to the CSI volume {id:?}, released it", job.id);
                self.try_fork(&fork, change);
            }
        }
    }

    fn without(&self, allocs: &[(AllocId, NodeRow)]) -> Option<State> {
        let mut fork = self.asked.state.clone();
        for (id, node) in allocs {
            let ended = Allocation {
                id: id.to_string(),
                client_status: ClientStatus::Complete.to_string(),
                ..Allocation::default()
            };
            let node = fork.nodes.cold(*node).id;
            let report = Command::UpdateAllocs { node, updates: vec![ended] };
            fork = rules::fork::after(&fork, &report, self.asked.now, self.asked.seed).ok()?;
        }
        Some(fork)
    }

    /// The plugin runs on the node and is healthy.
    fn running_plugin(&mut self, row: NodeRow, plugin: &str) {
        let cold = self.asked.state.nodes.cold(row);
        let known = cold.document.csi_node_plugins.get(plugin);
        if known.is_some_and(|known| known.healthy) || !self.may_try() {
            return;
        }
        let document = running(&cold.document, plugin);
        let fork = rules::fork::with_node(self.asked.state, cold.id, &document, self.asked.now);
        let wish = if known.is_some() { "were healthy" } else { "ran" };
        self.try_fork(&fork, || format!("the CSI plugin {plugin:?} {wish} on node {:?}", cold.document.name));
    }
}

/// The CSI volumes of the group's allocations, by id.
fn wanted(group: &TaskGroup) -> BTreeMap<String, &VolumeRequest> {
    let count = u32::try_from(group.count.unwrap_or(1)).unwrap_or(1).clamp(1, ALLOCS_MAX);
    let of_alloc = |index| sources(group, index, VolumeKind::Csi).map(|(request, id)| (id, request));
    (0..count).flat_map(of_alloc).collect()
}

fn healthy_plugins(state: &State) -> BTreeSet<String> {
    let ready = state.nodes.rows().filter(|row| state.nodes.hot(*row).status == NodeStatus::Ready);
    let plugins = ready.flat_map(|row| state.nodes.cold(row).document.csi_node_plugins.iter());
    plugins.filter(|(_, plugin)| plugin.healthy).map(|(name, _)| name.clone()).collect()
}

/// The volume, registered for what the group wants to do with it.
fn volume(namespace: &str, id: &str, request: &VolumeRequest, plugin: &str) -> CSIVolume {
    let or = |mode: &str, usual: &str| (if mode.is_empty() { usual } else { mode }).to_string();
    let capability = CSIVolumeCapability {
        access_mode: or(&request.access_mode, "single-node-writer"),
        attachment_mode: or(&request.attachment_mode, "file-system"),
    };
    CSIVolume {
        id: id.to_string(),
        name: id.to_string(),
        external_id: id.to_string(),
        namespace: namespace.to_string(),
        plugin_id: plugin.to_string(),
        requested_capabilities: vec![capability].into(),
        ..CSIVolume::default()
    }
}

fn running(node: &Node, plugin: &str) -> Node {
    let mut document = Node::clone(node);
    let known = document.csi_node_plugins.get(plugin).cloned().unwrap_or_default();
    document.csi_node_plugins.insert(plugin.to_string(), CSIInfo { healthy: true, ..known });
    document
}
