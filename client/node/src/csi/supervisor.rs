//! The loop beside a task that is a plugin: probes it, says what it can do, and has it restarted if it never gets well.

use std::path::{Path, PathBuf};
use std::time::Instant;

use csi::{CsiError, Patience, Plugin};
use model::document::TaskCSIPluginConfig;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::paths;
use super::plugins::Instance;
use crate::clock;
use crate::task::events;
use crate::task::hooks::TaskContext;
use crate::task::requests::TaskRequest;

/// A task that is a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervised {
    pub plugin_id: String,
    pub kind: Kind,
    pub alloc_id: String,
    pub task: String,
    /// Where it answers.
    pub socket: PathBuf,
    /// Below which it mounts, on the host, and as it sees it itself.
    pub mounts: PathBuf,
    pub mounts_inside: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Node,
    Controller,
    Monolith,
}

impl Supervised {
    /// `mounts_inside` is `None` for a task that sees the files of the host.
    ///
    /// # Errors
    /// Names what of the block is wrong.
    pub fn new(
        config: &TaskCSIPluginConfig,
        task: &TaskContext,
        mounts_inside: Option<String>,
    ) -> Result<Supervised, String> {
        let kind = match config.kind.as_str() {
            "node" => Kind::Node,
            "controller" => Kind::Controller,
            "monolith" => Kind::Monolith,
            other => {
                return Err(format!(
                    "csi_plugin type \"{other}\": expected \"node\", \"controller\" or \"monolith\""
                ));
            }
        };
        if config.id.is_empty() {
            return Err("csi_plugin id: expected a name".to_string());
        }
        let state_dir = &task.context.settings.state_dir;
        let alloc_id = task.alloc().id.clone();
        let mounts = paths::mounts(state_dir, &config.id);
        Ok(Supervised {
            plugin_id: config.id.clone(),
            kind,
            socket: paths::socket_dir(state_dir, &alloc_id, &task.name).join(paths::SOCKET),
            mounts_inside: mounts_inside.unwrap_or_else(|| mounts.to_string_lossy().into_owned()),
            mounts,
            task: task.name.clone(),
            alloc_id,
        })
    }

    pub fn is_task(&self, other: &Supervised) -> bool {
        self.alloc_id == other.alloc_id && self.task == other.task
    }

    pub fn is_for_nodes(&self) -> bool {
        self.kind != Kind::Controller
    }

    pub fn is_controller(&self) -> bool {
        self.kind != Kind::Node
    }

    /// A path below its mounts, as it sees it itself.
    pub fn inside(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.mounts).unwrap_or(path);
        Path::new(&self.mounts_inside).join(below).to_string_lossy().into_owned()
    }
}

/// Goes on as long as the task runs.
pub async fn watch(task: TaskContext, of: Supervised, config: TaskCSIPluginConfig) {
    let context = task.context.clone();
    let settings = context.settings.csi;
    let timeout = config.health_timeout.to_std();
    let (began, mut was_well, mut plugin) = (Instant::now(), None, None);
    loop {
        let mut instance = look(&of, plugin.take()).await;
        let is_well = instance.trouble.is_empty();
        if is_well {
            plugin.clone_from(&instance.plugin);
        }
        match (was_well, is_well) {
            (None | Some(false), true) => {
                task.tasks.add_event(&task.name, events::plugin_healthy(&of.plugin_id));
            }
            (Some(true), false) => {
                let event = events::plugin_unhealthy(&of.plugin_id, &instance.trouble);
                task.tasks.add_event(&task.name, event);
            }
            (None, false) if !timeout.is_zero() && began.elapsed() > timeout => {
                let why = format!(
                    "CSI plugin {} did not become healthy in time: {}",
                    of.plugin_id, instance.trouble
                );
                restart(&task, why).await;
                return;
            }
            _ => {}
        }
        if let Some(known) = context.csi.known(&of)
            && known.trouble == instance.trouble
        {
            instance.since = known.since;
        }
        context.csi.found(&context, instance);
        if is_well || was_well.is_some() {
            was_well = Some(is_well);
        }
        sleep(match (is_well, was_well) {
            (true, _) => settings.probe_every,
            (false, Some(_)) => settings.probe_unhealthy_every,
            (false, None) => settings.probe_new_every,
        })
        .await;
    }
}

/// A task that is not well counts as failed. Nobody waits for the outcome: the task's events say it.
async fn restart(task: &TaskContext, reason: String) {
    let Some(requests) = task.requests.upgrade() else { return };
    let (reply, _) = oneshot::channel();
    requests.send(TaskRequest::Restart { reason, revive: false, unhealthy: true, reply }).await.ok();
}

async fn look(of: &Supervised, plugin: Option<Plugin>) -> Instance {
    let mut instance = Instance {
        of: of.clone(),
        plugin,
        description: Default::default(),
        node: None,
        controller: None,
        trouble: String::new(),
        since: clock::now(),
    };
    if let Err(error) = examine(&mut instance).await {
        instance.trouble = error.to_string();
    }
    instance
}

async fn examine(instance: &mut Instance) -> Result<(), CsiError> {
    let (id, socket) = (instance.of.plugin_id.clone(), instance.of.socket.clone());
    let plugin = match instance.plugin.take() {
        Some(plugin) => plugin,
        None => Plugin::connect(&id, &socket, Patience::USUAL).await?,
    };
    if !plugin.probe().await? {
        return Err(CsiError::Unreachable { plugin: id, why: "it is not ready yet".to_string() });
    }
    instance.description = plugin.describe().await?;
    if instance.of.is_for_nodes() {
        instance.node = Some((plugin.node_capabilities().await?, plugin.node_info().await?));
    }
    if instance.of.is_controller() {
        let can = match plugin.controller_capabilities().await {
            // A monolith need not be a controller at all.
            Err(error) if error.is_unimplemented() && instance.of.is_for_nodes() => Default::default(),
            answered => answered?,
        };
        instance.controller = Some(can);
    }
    instance.plugin = Some(plugin);
    Ok(())
}
