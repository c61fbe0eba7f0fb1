//! Which networks groups can have on this node, besides that of the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::document::{NetworkResource, NodeNetworkResource};

use super::Attributes;
use crate::network::{self, NetworkSettings, plugins};

/// How long a plugin may take to say which release it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What bridges need of plugins. Jobs with a bridge ask for nodes that have them, whoever the servers are; so a node says
/// that it has their like.
const OF_BRIDGES: [&str; 5] = ["bridge", "firewall", "host-local", "loopback", "portmap"];
const BUILT_IN: &str = "1.0.0+builtin";

#[derive(Debug)]
pub struct GroupNetworks {
    /// The name of the bridge, if there can be one.
    bridge: Option<String>,
    /// The bridge is ours, without plugins.
    is_built_in: bool,
    hairpin: bool,
    configured: Vec<String>,
    versions: BTreeMap<String, String>,
}

pub fn find(settings: &NetworkSettings) -> GroupNetworks {
    let with_plugins = plugins::can_bridge(settings);
    let can = has_bridge_module() && (with_plugins || network::can_bridge());
    GroupNetworks {
        bridge: can.then(|| settings.bridge_name.clone()),
        is_built_in: can && !with_plugins,
        hairpin: settings.bridge_hairpin,
        configured: plugins::configurations(settings).into_keys().collect(),
        versions: versions(settings),
    }
}

impl GroupNetworks {
    pub fn describe(&self, attributes: &mut Attributes) {
        if self.bridge.is_some() {
            attributes.insert("nomad.bridge.hairpin_mode".to_string(), self.hairpin.to_string());
        }
        let name = |plugin: &str| format!("plugins.cni.version.{plugin}");
        if self.is_built_in {
            attributes.extend(OF_BRIDGES.map(|plugin| (name(plugin), BUILT_IN.to_string())));
        }
        attributes.extend(self.versions.iter().map(|(plugin, version)| (name(plugin), version.clone())));
    }

    /// The networks by mode, as both lists of a node have them.
    pub fn resources(&self, bridge: bool, cni: bool) -> (Vec<NetworkResource>, Vec<NodeNetworkResource>) {
        let own = self.bridge.iter().filter(|_| bridge).map(|device| ("bridge".to_string(), device.clone()));
        let configured = self.configured.iter().filter(|_| cni);
        let all: Vec<(String, String)> =
            own.chain(configured.map(|name| (format!("cni/{name}"), String::new()))).collect();
        let of_group = |(mode, _): &(String, String)| NetworkResource {
            mode: mode.clone(),
            ..NetworkResource::default()
        };
        let of_node = |(mode, device): &(String, String)| NodeNetworkResource {
            mode: mode.clone(),
            device: device.clone(),
            ..NodeNetworkResource::default()
        };
        (all.iter().map(of_group).collect(), all.iter().map(of_node).collect())
    }
}

/// In the kernel, loaded, or to be loaded when it is asked for.
fn has_bridge_module() -> bool {
    if Path::new("/sys/module/bridge").exists() {
        return true;
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    read("/proc/modules").lines().any(|line| line.starts_with("bridge "))
        || read(&format!("/lib/modules/{release}/modules.builtin")).contains("/bridge.ko")
        || read(&format!("/lib/modules/{release}/modules.dep")).contains("/bridge.ko")
}

/// What each program of the plugin path says about itself.
fn versions(settings: &NetworkSettings) -> BTreeMap<String, String> {
    let installed = plugins::installed(settings).into_iter();
    installed.filter_map(|(name, path)| Some((name, version_in(&run(&path)?)?))).collect()
}

/// The output of a program that is called without arguments.
fn run(path: &Path) -> Option<String> {
    let mut command = Command::new(path);
    command.env_remove("CNI_COMMAND").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let begun = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().ok();
            child.wait().ok();
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let output = child.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The first word that is a version. A build that does not know its release, as Debian's, counts by the newest version of the
/// protocol that it has.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let numbers = word.strip_prefix('v').unwrap_or(word).split(['-', '+']).next().unwrap_or_default();
        let parts: Vec<&str> = numbers.split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    };
    text.split_whitespace().find(is_version).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_say_their_release() {
        let said = "CNI bridge plugin v1.4.0\nCNI protocol versions supported: 0.1.0, 0.2.0, 1.0.0\n";
        assert_eq!(version_in(said).as_deref(), Some("v1.4.0"));
        assert_eq!(version_in("CNI plugin 1.1.1-debian").as_deref(), Some("1.1.1-debian"));
        assert_eq!(version_in("no version"), None);
    }

    #[test]
    fn what_is_built_in_counts_as_what_jobs_ask_for() {
        let networks = GroupNetworks {
            bridge: Some("nomad".to_string()),
            is_built_in: true,
            hairpin: false,
            configured: vec!["mesh".to_string()],
            versions: BTreeMap::from([("mesh".to_string(), "v0.1.0".to_string())]),
        };
        let mut attributes = Attributes::new();
        networks.describe(&mut attributes);
        assert_eq!(attributes["plugins.cni.version.bridge"], BUILT_IN);
        assert_eq!(attributes["plugins.cni.version.mesh"], "v0.1.0");
        assert_eq!(attributes["nomad.bridge.hairpin_mode"], "false");
        let (of_group, of_node) = networks.resources(true, true);
        let modes: Vec<&str> = of_group.iter().map(|network| network.mode.as_str()).collect();
        assert_eq!(modes, ["bridge", "cni/mesh"]);
        assert_eq!(of_node[0].device, "nomad");
        assert!(networks.resources(false, false).0.is_empty());
    }
}
