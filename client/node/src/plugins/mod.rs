//! Drivers and devices that are programs of their own: found in the plugin directory, launched, and made parts of this node.
//!
//! [`host`] keeps one program running, [`driver`] makes it one of the node's drivers, [`task`] is a task of it. The protocol
//! is in the crate `plugin`; `docs/plugins.md` says how one is installed and written.

mod config;
mod copier;
pub mod devices;
mod driver;
mod exec;
mod host;
mod log;
mod networks;
mod outputs;
mod task;
mod usage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use model::document::Node;
use plugin::identify::is_newer;
use plugin::launch::programs;
use plugin::proto::base::PluginType;

use self::devices::{DevicePlugin, Devices};
use self::driver::PluginDriver;
use self::host::{Hosted, Recipe};
use self::outputs::Outputs;
use crate::driver::Drivers;
use crate::settings::{NameFilter, NodeSettings};

/// The version of the drivers in this program, as a plugin of the same name has to exceed it.
const BUILTIN_VERSION: &str = "0.1.0";

/// The plugins of a node.
#[derive(Debug, Default)]
pub struct Plugins {
    hosted: Vec<Arc<Hosted>>,
    pub devices: Devices,
}

impl Plugins {
    /// Launches what the configuration names, and adds the drivers among it to `drivers`.
    ///
    /// # Errors
    /// When one is not there, does not start, or rejects its configuration.
    pub async fn open(
        settings: &NodeSettings,
        node: &Node,
        drivers: &mut Drivers,
    ) -> Result<Plugins, String> {
        let found = programs(&settings.plugin_dir)
            .map_err(|error| format!("plugin_dir {}: {error}", settings.plugin_dir.display()))?;
        let recipes = recipes(settings, node, &found)?;
        let of_plugins = settings.state_dir.join("plugins");
        host::end_others(&of_plugins, |name| settings.external_plugins.contains_key(name)).await;
        let hosts = recipes.into_iter().map(|recipe| async move {
            let name = recipe.file.clone();
            recipe.host().await.map_err(|error| format!("plugin \"{name}\": {error}"))
        });
        // All are launched before the first failure is reported, so that none is left that nobody knows.
        let hosted: Vec<Result<Hosted, String>> = join_all(hosts).await;
        let mut plugins = Plugins::default();
        for hosted in highest(hosted.into_iter().collect::<Result<_, _>>()?).await {
            plugins.add(settings, hosted, drivers).await?;
        }
        Ok(plugins)
    }

    async fn add(
        &mut self,
        settings: &NodeSettings,
        hosted: Hosted,
        drivers: &mut Drivers,
    ) -> Result<(), String> {
        let (kind, name) = (hosted.identity.kind, hosted.identity.name.clone());
        if kind == PluginType::Driver && !is_wanted(&hosted, drivers, &settings.driver_filter) {
            hosted.end().await;
            return Ok(());
        }
        let hosted = Arc::new(hosted);
        if kind == PluginType::Driver {
            let outputs = Outputs {
                directory: settings.state_dir.join("plugin_outputs"),
                executor_program: settings.executor_program.clone(),
            };
            let driver = PluginDriver::open(Arc::clone(&hosted), outputs).await;
            drivers.add(Arc::new(driver.map_err(|error| format!("plugin \"{name}\": {error}"))?));
        }
        if kind == PluginType::Device {
            self.devices.0.push(DevicePlugin::open(Arc::clone(&hosted)));
        }
        self.hosted.push(hosted);
        Ok(())
    }

    /// Ends all of them: in development nothing is left of a node.
    pub async fn end(&self) {
        join_all(self.hosted.iter().map(|hosted| hosted.end())).await;
    }
}

/// What is launched: every block with its file.
fn recipes(
    settings: &NodeSettings,
    node: &Node,
    found: &BTreeMap<String, PathBuf>,
) -> Result<Vec<Recipe>, String> {
    let topology = node.node_resources.as_ref().and_then(|resources| resources.processors.topology.as_ref());
    let nomad_config = config::nomad_config(topology);
    let recipe = |(name, block): (&String, &crate::settings::ExternalPlugin)| {
        let path: &Path = found.get(name).ok_or_else(|| {
            let directory = settings.plugin_dir.display();
            format!("plugin \"{name}\": no driver of this program has that name, and there is no such program in plugin_dir {directory}")
        })?;
        Ok(Recipe {
            file: name.clone(),
            path: path.to_path_buf(),
            block: block.clone(),
            nomad_config: Some(nomad_config.clone()),
            directory: settings.state_dir.join("plugins").join(name),
            executor_program: settings.executor_program.clone(),
        })
    };
    settings.external_plugins.iter().map(recipe).collect()
}

/// Of plugins that are the same, the one with the highest version; the others are ended.
async fn highest(hosted: Vec<Hosted>) -> Vec<Hosted> {
    let mut kept: Vec<Hosted> = Vec::new();
    for one in hosted {
        let (kind, name) = (one.identity.kind, &one.identity.name);
        let same = kept.iter().position(|other| other.identity.kind == kind && other.identity.name == *name);
        let loser = match same {
            None => {
                kept.push(one);
                continue;
            }
            Some(place) if is_newer(&one.identity.version, &kept[place].identity.version) => {
                std::mem::replace(&mut kept[place], one)
            }
            Some(_) => one,
        };
        let identity = &loser.identity;
        tracing::warn!(
            name = identity.name,
            version = identity.version,
            "a plugin is not used: there is a newer one"
        );
        loser.end().await;
    }
    kept
}

/// Whether a plugin becomes a driver of the node: operators filter by name, and one in this program is replaced only by a
/// newer one.
fn is_wanted(hosted: &Hosted, drivers: &Drivers, filter: &NameFilter) -> bool {
    let (name, version) = (&hosted.identity.name, &hosted.identity.version);
    let is_older = drivers.get(name).is_ok() && !is_newer(version, BUILTIN_VERSION);
    if is_older {
        tracing::warn!(name, version, "a plugin is not used: the driver in this program is not older");
    }
    filter.allows(name) && !is_older
}
