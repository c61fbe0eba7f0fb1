//! Who makes volumes: the built-in `mkdir`, and programs of the operator.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::document::Node;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;
use wire::messages::ClientHostVolumeRequest;

use crate::programs::{self, RunError};
use crate::settings::NodeSettings;

const MKDIR: &str = "mkdir";
const MKDIR_VERSION: &str = "0.0.1";

/// How long a program may take to say its version, and to make or remove a volume.
const FINGERPRINT_WITHIN: Duration = Duration::from_secs(5);
const CHANGE_WITHIN: Duration = Duration::from_secs(60);

/// How much of what a program prints is shown in an error.
const SHOWN_MAX: usize = 512;

/// A volume that is there.
#[derive(Debug)]
pub(super) struct Made {
    pub path: String,
    pub bytes: i64,
}

#[derive(Debug)]
pub(super) struct Plugins {
    /// Below it volumes are made.
    volumes_dir: PathBuf,
    /// The programs, each called as the plugin is.
    plugin_dir: PathBuf,
    node_pool: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Created {
    path: String,
    bytes: i64,
    error: String,
}

/// What a plugin is asked for, and how long it may take.
struct Operation {
    name: &'static str,
    within: Duration,
}

/// Adds the plugins that the node has to what it says of itself.
pub async fn fingerprint(settings: &NodeSettings, node: &mut Node) {
    if !settings.fingerprint_filter.allows("host_volume_plugins") {
        return;
    }
    let mut found = BTreeMap::from([(MKDIR.to_string(), MKDIR_VERSION.to_string())]);
    let plugins = Plugins::of(settings);
    for entry in std::fs::read_dir(&plugins.plugin_dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == MKDIR || plugins.program(&name).is_err() {
            continue;
        }
        let operation = Operation { name: "fingerprint", within: FINGERPRINT_WITHIN };
        match plugins.run::<Version>(&name, &operation, BTreeMap::new()).await {
            Ok(Version { version }) if !version.is_empty() => drop(found.insert(name, version)),
            Ok(_) => tracing::warn!(plugin = name, "a host volume plugin does not say its version"),
            Err(error) => tracing::warn!(plugin = name, error, "a host volume plugin does not answer"),
        }
    }
    let attributes =
        found.into_iter().map(|(name, version)| (format!("plugins.host_volume.{name}.version"), version));
    node.attributes.extend(attributes);
}

impl Plugins {
    pub(super) fn of(settings: &NodeSettings) -> Plugins {
        Plugins {
            volumes_dir: settings.host_volumes_dir.clone(),
            plugin_dir: settings.host_volume_plugin_dir.clone(),
            node_pool: settings.node_pool.clone(),
        }
    }

    pub(super) async fn create(&self, volume: &ClientHostVolumeRequest) -> Result<Made, String> {
        std::fs::create_dir_all(&self.volumes_dir)
            .map_err(|error| format!("\"{}\": {error}", self.volumes_dir.display()))?;
        if volume.plugin_id == MKDIR {
            return self.mkdir(volume);
        }
        let mut variables = self.variables(volume);
        variables.insert("DHV_CAPACITY_MIN_BYTES", volume.requested_capacity_min_bytes.to_string());
        variables.insert("DHV_CAPACITY_MAX_BYTES", volume.requested_capacity_max_bytes.to_string());
        let operation = Operation { name: "create", within: CHANGE_WITHIN };
        let created: Created = self.run(&volume.plugin_id, &operation, variables).await?;
        if !created.error.is_empty() {
            return Err(created.error);
        }
        let is_there = Path::new(&created.path).is_absolute() && Path::new(&created.path).exists();
        if !is_there {
            return Err(format!(
                "plugin \"{}\" answers path \"{}\": expected an absolute one that is there",
                volume.plugin_id, created.path
            ));
        }
        Ok(Made { path: created.path, bytes: created.bytes })
    }

    pub(super) async fn delete(&self, volume: &ClientHostVolumeRequest) -> Result<(), String> {
        if volume.plugin_id == MKDIR {
            let path = self.volumes_dir.join(&volume.id);
            return match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(format!("\"{}\": {error}", path.display()))
                }
                _ => Ok(()),
            };
        }
        let mut variables = self.variables(volume);
        variables.insert("DHV_CREATED_PATH", volume.host_path.clone());
        let operation = Operation { name: "delete", within: CHANGE_WITHIN };
        let deleted: Created = self.run(&volume.plugin_id, &operation, variables).await?;
        if deleted.error.is_empty() { Ok(()) } else { Err(deleted.error) }
    }

    /// What is there stays as it is.
    fn mkdir(&self, volume: &ClientHostVolumeRequest) -> Result<Made, String> {
        let (mut mode, mut uid, mut gid) = (0o700, None, None);
        for (key, value) in volume.parameters.iter() {
            let wrong = |expected: &str| format!("parameters: {key} = \"{value}\": expected {expected}");
            let id = || value.parse::<u32>().map_err(|_| wrong("the number of a user or group"));
            match key.as_str() {
                "mode" => {
                    let parsed = u32::from_str_radix(value, 8).ok().filter(|mode| *mode <= 0o7777);
                    mode = parsed.ok_or_else(|| wrong("rights in octal, like 0700"))?;
                }
                "uid" => uid = Some(id()?),
                "gid" => gid = Some(id()?),
                _ => return Err(wrong("only mode, uid and gid")),
            }
        }
        let path = self.volumes_dir.join(&volume.id);
        let make = || match std::fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                std::os::unix::fs::chown(&path, uid, gid)?;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
            }
        };
        make().map_err(|error| format!("\"{}\": {error}", path.display()))?;
        Ok(Made { path: path.display().to_string(), bytes: 0 })
    }

    fn variables(&self, volume: &ClientHostVolumeRequest) -> BTreeMap<&'static str, String> {
        let parameters = serde_json::to_string(&volume.parameters.0).expect("texts have a JSON form");
        BTreeMap::from([
            ("DHV_NODE_POOL", self.node_pool.clone()),
            ("DHV_NAMESPACE", volume.namespace.clone()),
            ("DHV_VOLUME_NAME", volume.name.clone()),
            ("DHV_VOLUME_ID", volume.id.clone()),
            ("DHV_NODE_ID", volume.node_id.clone()),
            ("DHV_PARAMETERS", parameters),
        ])
    }

    /// The program of a plugin: an executable file, right in the directory.
    fn program(&self, plugin: &str) -> Result<PathBuf, String> {
        let path = self.plugin_dir.join(plugin);
        let runs = programs::is_plain_name(plugin) && programs::is_program(&path);
        if runs { Ok(path) } else { Err(format!("this node has no host volume plugin \"{plugin}\"")) }
    }

    async fn run<T: DeserializeOwned>(
        &self,
        plugin: &str,
        operation: &Operation,
        variables: BTreeMap<&'static str, String>,
    ) -> Result<T, String> {
        let mut command = Command::new(self.program(plugin)?);
        command.arg(operation.name).env_clear().envs(variables);
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("DHV_OPERATION", operation.name);
        command.env("DHV_VOLUMES_DIR", &self.volumes_dir).env("DHV_PLUGIN_DIR", &self.plugin_dir);
        let ran = programs::run(command, operation.within).await;
        let ran = ran.map_err(|error| match error {
            RunError::Late(within) => format!("plugin \"{plugin}\": no answer within {within:?}"),
            RunError::Io(error) => format!("plugin \"{plugin}\": {error}"),
        })?;
        let answer = serde_json::from_slice::<T>(&ran.output);
        let shown =
            |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).trim().to_string();
        match (ran.status.success(), answer) {
            (true, Ok(answer)) => Ok(answer),
            (true, Err(error)) => {
                Err(format!("plugin \"{plugin}\" answers \"{}\": {error}", shown(&ran.output)))
            }
            (false, _) => {
                let (status, out, err) = (ran.status, shown(&ran.output), shown(&ran.errors));
                Err(format!("plugin \"{plugin}\": {status}: {out} {err}").trim_end().to_string())
            }
        }
    }
}
