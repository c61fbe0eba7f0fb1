//! What the operator decides about the driver: the `plugin "docker"` block.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::containers::settings::{AUTH, AuthSettings, GC, Gc, MINUTE, VOLUMES, span};
use crate::driver::capabilities;
use crate::driver::{Field, Schema, ValueType, Values};

pub const PLUGIN: Schema = Schema(&[&[
    Field::optional("endpoint", ValueType::Text),
    Field::optional("auth", ValueType::Block(AUTH)),
    Field::optional(
        "tls",
        ValueType::Unsupported(
            "engines are reached by a unix socket or plain HTTP; use a tunnel to another host",
        ),
    ),
    Field::optional("extra_labels", ValueType::TextList),
    Field::optional("logging", ValueType::Block(LOGGING)),
    Field::optional("gc", ValueType::Block(GC)),
    Field::optional("volumes", ValueType::Block(VOLUMES)),
    Field::optional("allow_privileged", ValueType::Boolean),
    Field::optional("allow_caps", ValueType::TextList),
    Field::optional("nvidia_runtime", ValueType::Text),
    Field::optional("allow_runtimes", ValueType::TextList),
    Field::optional("infra_image", ValueType::Text),
    Field::optional("infra_image_pull_timeout", ValueType::Duration),
    Field::optional("image_pull_timeout", ValueType::Duration),
    Field::optional("pull_activity_timeout", ValueType::Duration),
    Field::optional("container_exists_attempts", ValueType::Number),
    Field::optional("oom_score_adj", ValueType::Number),
    Field::optional("pids_limit", ValueType::Number),
    Field::optional("disable_log_collection", ValueType::Boolean),
    Field::optional("allowed_modes", ValueType::Block(MODES)),
    Field::optional(
        "windows_allow_insecure_container_admin",
        ValueType::Unsupported("it is about containers of Windows"),
    ),
]]);

pub const LOGGING: Schema = Schema(&[&[
    Field::optional("type", ValueType::Text),
    Field::optional("driver", ValueType::Text),
    Field::optional("config", ValueType::TextMap),
]]);

const MODES: Schema = Schema(&[&[
    Field::optional("pid", ValueType::TextList),
    Field::optional("ipc", ValueType::TextList),
    Field::optional("userns", ValueType::TextList),
    Field::optional("uts", ValueType::TextList),
]]);

const SOCKET: &str = "unix:///var/run/docker.sock";

#[derive(Clone, Debug)]
pub struct Settings {
    /// `unix://PATH`, `tcp://HOST:PORT` or `http://HOST:PORT`.
    pub endpoint: String,
    pub auth: AuthSettings,
    /// Patterns of names of labels that containers get.
    pub extra_labels: Vec<String>,
    pub logging: Logging,
    pub gc: Gc,
    /// Tasks may mount what is outside of their allocation.
    pub volumes_enabled: bool,
    /// Follows each bind of the task's own directories.
    pub selinux_label: String,
    pub allow_privileged: bool,
    pub allow_caps: capabilities::Allowed,
    pub allow_runtimes: Vec<String>,
    /// Of containers that were given GPUs of Nvidia.
    pub nvidia_runtime: String,
    /// Of the container that has the network of a group.
    pub infra_image: String,
    pub infra_image_pull_timeout: Duration,
    pub image_pull_timeout: Duration,
    pub pull_activity_timeout: Duration,
    pub container_exists_attempts: u32,
    pub oom_score_adj: i64,
    /// The most that a task may have; None for any number.
    pub pids_limit: Option<i64>,
    pub disable_log_collection: bool,
    /// Patterns of modes that reach out of the container and may be used, by `pid`, `ipc`, `userns` and `uts`.
    pub allowed_modes: BTreeMap<&'static str, Vec<String>>,
}

/// Where the engine keeps the output of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    pub kind: String,
    pub config: BTreeMap<String, String>,
}

impl Settings {
    /// `host` is the endpoint that the environment names, if it does.
    ///
    /// # Errors
    /// Names the first key whose value cannot be.
    pub fn read(config: &Values, host: Option<String>) -> Result<Settings, String> {
        let empty = Values::default();
        let block = |key: &str| config.block(key).unwrap_or(&empty);
        let (auth, volumes) = (block("auth"), block("volumes"));
        let modes = config.block("allowed_modes").unwrap_or(&empty);
        let listed = |key| (key, modes.texts(key).to_vec());
        let runtimes = config.texts("allow_runtimes").to_vec();
        let default_runtimes = || ["runc", "nvidia"].map(str::to_string).to_vec();
        let attempts = config.number("container_exists_attempts").unwrap_or(5);
        let settings = Settings {
            endpoint: config.text("endpoint").map(str::to_string).or(host).unwrap_or(SOCKET.to_string()),
            auth: AuthSettings::read(auth),
            extra_labels: config.texts("extra_labels").to_vec(),
            logging: match config.block("logging") {
                Some(block) => logging(block)?,
                None => Logging::default(),
            },
            gc: Gc::read(block("gc"), true)?,
            volumes_enabled: volumes.boolean("enabled"),
            selinux_label: volumes.text("selinuxlabel").unwrap_or_default().to_string(),
            allow_privileged: config.boolean("allow_privileged"),
            allow_caps: capabilities::Allowed::read(config.texts("allow_caps")),
            nvidia_runtime: config.text("nvidia_runtime").unwrap_or("nvidia").to_string(),
            allow_runtimes: if runtimes.is_empty() { default_runtimes() } else { runtimes },
            infra_image: config
                .text("infra_image")
                .filter(|image| !image.is_empty())
                .map_or_else(pause_image, str::to_string),
            infra_image_pull_timeout: span(config, "infra_image_pull_timeout", 5 * MINUTE, Duration::ZERO)?,
            image_pull_timeout: span(config, "image_pull_timeout", 5 * MINUTE, Duration::ZERO)?,
            pull_activity_timeout: span(config, "pull_activity_timeout", 2 * MINUTE, MINUTE)?,
            container_exists_attempts: u32::try_from(attempts)
                .map_err(|_| "container_exists_attempts must not be negative".to_string())?,
            oom_score_adj: config.number("oom_score_adj").unwrap_or_default(),
            pids_limit: config.number("pids_limit").filter(|limit| *limit > 0),
            disable_log_collection: config.boolean("disable_log_collection"),
            allowed_modes: ["pid", "ipc", "userns", "uts"].map(listed).into(),
        };
        let known = ["unix://", "tcp://", "http://"];
        if !known.iter().any(|scheme| settings.endpoint.starts_with(scheme)) {
            return Err(format!("endpoint \"{}\" must begin with {}", settings.endpoint, known.join(" or ")));
        }
        if !(-1000..=1000).contains(&settings.oom_score_adj) {
            return Err("oom_score_adj must be between -1000 and 1000".to_string());
        }
        Ok(settings)
    }
}

/// Nomad's.
fn pause_image() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("registry.k8s.io/pause-{arch}:3.3")
}

impl Default for Logging {
    fn default() -> Logging {
        let config = [("max-file", "2"), ("max-size", "2m")];
        Logging {
            kind: "json-file".to_string(),
            config: config.map(|(key, value)| (key.to_string(), value.to_string())).into(),
        }
    }
}

/// A `logging` block, of the agent or of a task.
///
/// # Errors
/// When it names two drivers.
pub fn logging(block: &Values) -> Result<Logging, String> {
    let kind = match (block.text("type"), block.text("driver")) {
        (Some(kind), Some(driver)) if kind != driver => {
            return Err(format!(
                "logging has the type \"{kind}\" and the driver \"{driver}\", which is the same"
            ));
        }
        (kind, driver) => kind.or(driver).unwrap_or("json-file").to_string(),
    };
    Ok(Logging { kind, config: block.map("config") })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Result<Settings, String> {
        let config = config.as_object().unwrap().clone().into_iter().collect();
        Settings::read(&Values::read("docker", PLUGIN, config)?, None)
    }

    #[test]
    fn what_is_not_set_is_as_nomad_has_it() {
        let settings = read(json!({})).unwrap();
        assert_eq!(settings.endpoint, "unix:///var/run/docker.sock");
        assert!(settings.gc.image && settings.gc.container && settings.gc.dangling.enabled);
        assert_eq!(settings.gc.image_delay, 3 * MINUTE);
        assert_eq!(settings.logging.config["max-size"], "2m");
        assert!(!settings.volumes_enabled && !settings.allow_privileged && settings.pids_limit.is_none());
    }

    #[test]
    fn what_is_set_is_read_in_the_form_of_configuration_files() {
        let settings = read(json!({
            "endpoint": "tcp://10.0.0.1:2375",
            "gc": [{"image": false, "dangling_containers": [{"dry_run": true, "period": "10s"}]}],
            "volumes": {"enabled": true, "selinuxlabel": "z"},
            "logging": {"type": "journald", "config": [{"tag": "x"}]},
            "allowed_modes": {"pid": ["host"]}
        }))
        .unwrap();
        assert_eq!(settings.endpoint, "tcp://10.0.0.1:2375");
        assert!(!settings.gc.image && settings.gc.dangling.dry_run);
        assert_eq!(settings.gc.dangling.period, Duration::from_secs(10));
        assert_eq!((settings.selinux_label.as_str(), settings.volumes_enabled), ("z", true));
        assert_eq!(
            (settings.logging.kind.as_str(), settings.logging.config["tag"].as_str()),
            ("journald", "x")
        );
        assert_eq!(settings.allowed_modes["pid"], ["host"]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (config, text) in [
            (json!({"endpoint": "ssh://x"}), "endpoint \"ssh://x\" must begin with"),
            (json!({"pull_activity_timeout": "10s"}), "pull_activity_timeout must be at least 60 s"),
            (
                json!({"gc": {"dangling_containers": {"creation_grace": "1s"}}}),
                "creation_grace must be at least",
            ),
            (json!({"tls": {"ca": "x"}}), "config key \"tls\" is not supported: engines are reached by"),
            (
                json!({"logging": {"type": "a", "driver": "b"}}),
                "logging has the type \"a\" and the driver \"b\"",
            ),
        ] {
            let error = read(config).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
