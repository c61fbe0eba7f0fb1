//! Which plugins this node has, by the tasks that they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Time;
use csi::messages::NodeGetInfoResponse;
use csi::{ControllerCapabilities, Description, NodeCapabilities, Plugin};
use model::document::{CSIControllerInfo, CSIInfo, CSINodeInfo, CSITopology, Map};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use super::paths::Usage;
use super::supervisor::Supervised;
use crate::context::Context;

/// A plugin's task, as it was found last.
#[derive(Clone, Debug)]
pub struct Instance {
    pub of: Supervised,
    /// `None` as long as nobody has answered on its socket.
    pub plugin: Option<Plugin>,
    pub description: Description,
    /// What it can do on nodes, and what it calls this one, if it is for that.
    pub node: Option<(NodeCapabilities, NodeGetInfoResponse)>,
    /// What it can do as a controller, if it is one.
    pub controller: Option<ControllerCapabilities>,
    /// Why it is not well; empty if it is.
    pub trouble: String,
    pub since: Time,
}

/// A plugin's id, and what it calls a volume.
type PluginVolume = (String, String);

/// All of them, and who works on which volume.
#[derive(Debug, Default)]
pub struct Plugins {
    /// The one that came last stands last.
    instances: watch::Sender<Vec<Instance>>,
    /// By volume: what is prepared and undone on one volume comes one after the other. As many as there are volumes in use.
    working: Mutex<BTreeMap<PluginVolume, Arc<AsyncMutex<()>>>>,
    /// What tasks may mount, by allocation and the name of the volume in its group.
    published: Mutex<BTreeMap<(String, String), Usage>>,
}

impl Plugins {
    /// A task was looked at.
    pub fn found(&self, context: &Context, instance: Instance) {
        self.instances.send_modify(|all| match all.iter_mut().find(|known| known.of.is_task(&instance.of)) {
            Some(known) => *known = instance,
            None => all.push(instance),
        });
        self.report(context);
    }

    /// A task has ended.
    pub fn gone(&self, context: &Context, task: &Supervised) {
        self.instances.send_modify(|all| all.retain(|known| !known.of.is_task(task)));
        self.report(context);
    }

    /// Puts into the description of the node what its plugins say now.
    fn report(&self, context: &Context) {
        let (mut nodes, mut controllers) = (BTreeMap::new(), BTreeMap::new());
        for instance in self.instances.borrow().iter() {
            let id = &instance.of.plugin_id;
            let is_better = |known: Option<&CSIInfo>| {
                known.is_none_or(|known| !known.healthy || instance.trouble.is_empty())
            };
            if instance.of.is_for_nodes() && is_better(nodes.get(id)) {
                nodes.insert(id.clone(), node_info(instance));
            }
            if instance.of.is_controller() && is_better(controllers.get(id)) {
                controllers.insert(id.clone(), controller_info(instance));
            }
        }
        let known = context.node();
        if known.csi_node_plugins.0 == nodes && known.csi_controller_plugins.0 == controllers {
            return;
        }
        context.change_node(|node| {
            node.csi_node_plugins = Map(nodes);
            node.csi_controller_plugins = Map(controllers);
        });
        context.node_changed.notify_one();
    }

    pub fn known(&self, task: &Supervised) -> Option<Instance> {
        self.instances.borrow().iter().find(|known| known.of.is_task(task)).cloned()
    }

    /// A controller that runs on this node.
    pub fn controller(&self, id: &str) -> Option<Instance> {
        newest(&self.instances.borrow(), id, |instance| instance.controller.is_some())
    }

    /// A plugin that mounts volumes on this node, waited for.
    ///
    /// # Errors
    /// In words: there is none after that time, and why not as far as that is known.
    pub async fn wait_for_node(&self, id: &str, within: Duration) -> Result<Instance, String> {
        let mut changes = self.instances.subscribe();
        // The list is borrowed while it is looked at: whoever borrowed it again would wait for a writer who waits for us.
        let of_node = |all: &Vec<Instance>| newest(all, id, |instance| instance.node.is_some());
        let came = tokio::time::timeout(within, changes.wait_for(|all| of_node(all).is_some())).await;
        if let Ok(Ok(all)) = &came
            && let Some(found) = of_node(all)
        {
            return Ok(found);
        }
        drop(came);
        let all = self.instances.borrow();
        let known = all.iter().rfind(|instance| instance.of.plugin_id == id);
        Err(match known {
            None => format!("plugin {id}: no task of this node is that plugin"),
            Some(known) => format!("plugin {id} is unhealthy: {}", known.trouble),
        })
    }

    /// Waits until nobody else works on the volume.
    pub async fn work_on(&self, plugin_id: &str, external_id: &str) -> OwnedMutexGuard<()> {
        let key = (plugin_id.to_string(), external_id.to_string());
        let lock = {
            let mut working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
            working.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(working.entry(key).or_default())
        };
        lock.lock_owned().await
    }

    pub fn publish(&self, alloc_id: &str, name: &str, usage: Usage) {
        self.lock_published().insert((alloc_id.to_string(), name.to_string()), usage);
    }

    pub fn published(&self, alloc_id: &str, name: &str) -> Option<Usage> {
        self.lock_published().get(&(alloc_id.to_string(), name.to_string())).cloned()
    }

    pub fn forget_published(&self, alloc_id: &str) {
        self.lock_published().retain(|(alloc, _), _| alloc != alloc_id);
    }

    fn lock_published(&self) -> MutexGuard<'_, BTreeMap<(String, String), Usage>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The healthy one that came last, of those that fit.
fn newest(all: &[Instance], id: &str, fits: impl Fn(&Instance) -> bool) -> Option<Instance> {
    let of_plugin = |one: &&Instance| one.of.plugin_id == id && one.trouble.is_empty() && fits(one);
    all.iter().rfind(of_plugin).cloned()
}

fn info(instance: &Instance) -> CSIInfo {
    let healthy = instance.trouble.is_empty();
    CSIInfo {
        plugin_id: instance.of.plugin_id.clone(),
        alloc_id: instance.of.alloc_id.clone(),
        healthy,
        health_description: if healthy { "healthy".to_string() } else { instance.trouble.clone() },
        update_time: instance.since.into(),
        requires_controller_plugin: instance.description.has_controller,
        requires_topologies: instance.description.has_topology,
        provider: instance.description.name.clone(),
        provider_version: instance.description.version.clone(),
        ..CSIInfo::default()
    }
}

fn node_info(instance: &Instance) -> CSIInfo {
    let node_info = instance.node.as_ref().map(|(can, info)| CSINodeInfo {
        id: info.node_id.clone(),
        max_volumes: info.max_volumes_per_node,
        accessible_topology: info
            .accessible_topology
            .as_ref()
            .map(|topology| CSITopology { segments: Map(topology.segments.clone()) }),
        requires_node_stage_volume: can.stage,
        supports_stats: can.stats,
        supports_expand: can.expand,
        supports_condition: can.condition,
    });
    CSIInfo { node_info, ..info(instance) }
}

fn controller_info(instance: &Instance) -> CSIInfo {
    let controller_info = instance.controller.map(|can| CSIControllerInfo {
        supports_create_delete: can.create_delete,
        supports_attach_detach: can.publish,
        supports_list_volumes: can.list_volumes,
        supports_get_capacity: can.get_capacity,
        supports_create_delete_snapshot: can.snapshots,
        supports_list_snapshots: can.list_snapshots,
        supports_clone: can.clone_volume,
        supports_read_only_attach: can.publish_readonly,
        supports_expand: can.expand,
        supports_list_volumes_attached_nodes: can.list_published_nodes,
        supports_condition: can.condition,
        supports_get: can.get_volume,
    });
    CSIInfo { controller_info, ..info(instance) }
}
