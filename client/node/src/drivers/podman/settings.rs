//! What the operator decides about the driver: the `plugin "podman"` block.

use std::path::PathBuf;
use std::time::Duration;

use super::super::containers::settings::{AUTH, AuthSettings, GC, Gc, VOLUMES, span};
use crate::driver::{Field, Schema, ValueType, Values};

pub const PLUGIN: Schema = Schema(&[&[
    Field::optional("socket_path", ValueType::Text),
    Field::optional("socket", ValueType::Blocks(SOCKET)),
    Field::optional("auth", ValueType::Block(AUTH)),
    Field::optional("volumes", ValueType::Block(VOLUMES)),
    Field::optional("gc", ValueType::Block(GC)),
    Field::optional(
        "recover_stopped",
        ValueType::Unsupported(
            "a container that has ended is reported, and its task restarted by its policy",
        ),
    ),
    Field::optional("extra_labels", ValueType::TextList),
    Field::optional("logging", ValueType::Block(LOGGING)),
    Field::optional(
        "networking",
        ValueType::Block(Schema(&[&[Field::optional("default_rootless_mode", ValueType::Text)]])),
    ),
    Field::optional("disable_log_collection", ValueType::Boolean),
    Field::optional("client_http_timeout", ValueType::Duration),
    Field::optional("dns_servers", ValueType::TextList),
    Field::optional("image_pull_timeout", ValueType::Duration),
    Field::optional("pull_activity_timeout", ValueType::Duration),
]]);

const SOCKET: Schema =
    Schema(&[&[Field::optional("name", ValueType::Text), Field::required("socket_path", ValueType::Text)]]);

pub const LOGGING: Schema =
    Schema(&[&[Field::optional("driver", ValueType::Text), Field::optional("options", ValueType::TextMap)]]);

/// The name of the engine that tasks have which name none.
pub const DEFAULT: &str = "default";

#[derive(Clone, Debug)]
pub struct Settings {
    /// As tasks name it.
    pub socket: String,
    pub path: PathBuf,
    pub auth: AuthSettings,
    /// Tasks may mount what is outside of their allocation.
    pub volumes_enabled: bool,
    pub selinux_label: String,
    pub gc: Gc,
    pub extra_labels: Vec<String>,
    pub logging: Logging,
    /// Of containers of an engine that is not root's.
    pub rootless_mode: Option<String>,
    pub disable_log_collection: bool,
    pub answer_timeout: Duration,
    pub dns_servers: Vec<String>,
    pub image_pull_timeout: Duration,
    pub pull_activity_timeout: Duration,
}

/// Where the engine keeps the output of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logging {
    /// In a file that is read for the task's logs.
    Nomad,
    /// With the host's journal; the task has no logs.
    Journald { tag: Option<String> },
}

impl Logging {
    /// # Errors
    /// When the driver is another one.
    pub fn read(block: &Values) -> Result<Logging, String> {
        let mut options = block.map("options");
        let logging = match block.text("driver").unwrap_or("nomad") {
            "nomad" => Logging::Nomad,
            "journald" => Logging::Journald { tag: options.remove("tag") },
            other => {
                return Err(format!("logging: driver must be \"nomad\" or \"journald\", not \"{other}\""));
            }
        };
        match options.keys().next() {
            None => Ok(logging),
            Some(option) => Err(format!("logging: there is no option \"{option}\" of this driver")),
        }
    }
}

impl Settings {
    /// Those of each engine, the one of tasks that name none first.
    ///
    /// # Errors
    /// Names the first key whose value cannot be.
    pub fn read(config: &Values, uid: u32) -> Result<Vec<Settings>, String> {
        let empty = Values::default();
        let block = |key: &str| config.block(key).unwrap_or(&empty);
        let settings = Settings {
            socket: DEFAULT.to_string(),
            path: PathBuf::new(),
            auth: AuthSettings::read(block("auth")),
            volumes_enabled: block("volumes").flag("enabled").unwrap_or(true),
            selinux_label: block("volumes").text("selinuxlabel").unwrap_or_default().to_string(),
            gc: Gc::read(block("gc"), false)?,
            extra_labels: config.texts("extra_labels").to_vec(),
            logging: Logging::read(block("logging"))?,
            rootless_mode: block("networking").text("default_rootless_mode").map(str::to_string),
            disable_log_collection: config.boolean("disable_log_collection"),
            answer_timeout: span(
                config,
                "client_http_timeout",
                Duration::from_secs(60),
                Duration::from_secs(1),
            )?,
            dns_servers: config.texts("dns_servers").to_vec(),
            image_pull_timeout: span(
                config,
                "image_pull_timeout",
                Duration::from_secs(300),
                Duration::from_secs(1),
            )?,
            pull_activity_timeout: span(
                config,
                "pull_activity_timeout",
                Duration::from_secs(120),
                Duration::from_secs(1),
            )?,
        };
        let sockets = sockets(config, uid)?;
        Ok(sockets.into_iter().map(|(socket, path)| Settings { socket, path, ..settings.clone() }).collect())
    }
}

fn sockets(config: &Values, uid: u32) -> Result<Vec<(String, PathBuf)>, String> {
    let path = |text: &str| {
        let path = text.strip_prefix("unix://").unwrap_or(text);
        match path.starts_with('/') {
            true => Ok(PathBuf::from(path)),
            false => Err(format!("socket_path \"{text}\" must be the absolute path of a unix socket")),
        }
    };
    let blocks = config.blocks("socket");
    if !blocks.is_empty() && config.text("socket_path").is_some() {
        return Err("socket_path and socket blocks exclude each other".to_string());
    }
    if blocks.is_empty() {
        let usual = match uid {
            0 => "/run/podman/podman.sock".to_string(),
            uid => format!("/run/user/{uid}/podman/podman.sock"),
        };
        return Ok(vec![(DEFAULT.to_string(), path(config.text("socket_path").unwrap_or(&usual))?)]);
    }
    let mut sockets: Vec<(String, PathBuf)> = Vec::new();
    for block in blocks {
        let name = block.text("name").unwrap_or(DEFAULT);
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !name.chars().all(valid) {
            return Err(format!("socket: name \"{name}\" must consist of letters, digits, - and _"));
        }
        if sockets.iter().any(|(known, _)| known == name) {
            return Err(format!("socket: there are two of the name \"{name}\""));
        }
        let path = path(block.text("socket_path").expect("the schema requires a path"))?;
        if let Some((other, _)) = sockets.iter().find(|(_, known)| *known == path) {
            let path = path.display();
            return Err(format!("socket: \"{other}\" and \"{name}\" have the same socket_path \"{path}\""));
        }
        sockets.push((name.to_string(), path));
    }
    sockets.sort_by_key(|(name, _)| name != DEFAULT);
    match sockets[0].0 == DEFAULT {
        true => Ok(sockets),
        false => Err(format!("socket: one must have the name \"{DEFAULT}\", or none")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Result<Vec<Settings>, String> {
        let config = config.as_object().unwrap().clone().into_iter().collect();
        Settings::read(&Values::read("podman", PLUGIN, config)?, 1000)
    }

    #[test]
    fn engines_are_those_of_the_blocks_or_the_usual_one() {
        let plain = read(json!({})).unwrap().remove(0);
        assert_eq!(plain.path, PathBuf::from("/run/user/1000/podman/podman.sock"));
        assert!(plain.volumes_enabled && plain.gc.container && !plain.gc.image);
        let several = json!({"socket": [
            {"name": "app", "socket_path": "/run/user/9/podman/podman.sock"}, {"socket_path": "unix:///run/p"}
        ]});
        let names: Vec<_> = read(several)
            .unwrap()
            .into_iter()
            .map(|one| (one.socket, one.path.display().to_string()))
            .collect();
        let app = ("app".to_string(), "/run/user/9/podman/podman.sock".to_string());
        assert_eq!(names, [("default".to_string(), "/run/p".to_string()), app]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (config, text) in [
            (json!({"socket_path": "tcp://x"}), "socket_path \"tcp://x\" must be the absolute path"),
            (
                json!({"socket_path": "/a", "socket": [{"socket_path": "/b"}]}),
                "socket_path and socket blocks",
            ),
            (json!({"socket": [{"name": "a", "socket_path": "/b"}]}), "socket: one must have the name"),
            (
                json!({"socket": [{"socket_path": "/b"}, {"name": "app", "socket_path": "unix:///b"}]}),
                "socket: \"default\" and \"app\" have the same socket_path \"/b\"",
            ),
            (json!({"logging": {"driver": "k8s-file"}}), "logging: driver must be \"nomad\" or \"journald\""),
            (json!({"recover_stopped": true}), "config key \"recover_stopped\" is not supported"),
        ] {
            let error = read(config).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
