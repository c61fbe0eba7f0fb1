//! What the engine is asked about containers and images.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bollard::models::ContainerStatsResponse;
use futures_util::stream::StreamExt;
use model::document::Timestamp;
use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::containers::images::{Wanted, is_absent};
use super::super::containers::parts::{ALLOC_LABEL, NETWORK_LABEL, NODE_LABEL};
use super::super::containers::task::STOP_TIMEOUT;
use super::super::containers::usage::usage;
use super::super::containers::{self, Fault, Listed, Status, Words};
use super::engine::{Call, Engine, escaped, lines};
use super::exec;
use super::settings::Settings;
use crate::driver::{Exec, ExecConfig, ExecError, StartError, Usage};

/// How long one request waits for the end of a container: an engine that is restarted is asked again.
const WAIT: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Inspected {
    pub image: String,
    pub state: State,
    pub config: Config,
    pub network_settings: NetworkSettings,
    pub host_config: HostConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostConfig {
    pub log_config: LogConfig,
}

/// Where the monitor of a container writes its output.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LogConfig {
    pub path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Config {
    pub labels: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct State {
    pub status: String,
    pub exit_code: i64,
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    pub pid: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NetworkSettings {
    #[serde(rename = "IPAddress")]
    pub ip_address: String,
    pub networks: Option<std::collections::BTreeMap<String, NetworkSettings>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Row {
    id: String,
    names: Option<Vec<String>>,
    created: String,
    state: String,
    labels: Option<std::collections::BTreeMap<String, String>>,
}

impl State {
    /// One that is about to run, or about to have ended, is looked at again.
    pub fn is_running(&self) -> bool {
        !matches!(self.status.as_str(), "exited" | "stopped" | "created" | "configured" | "removing" | "dead")
    }
}

impl Engine {
    /// # Errors
    /// When there is no such container, or the engine does not answer.
    pub async fn inspect(&self, container: &str) -> Result<Inspected, Fault> {
        self.read(Call::get(format!("/containers/{container}/json"))).await
    }
}

impl containers::Engine for Engine {
    type Settings = Settings;

    const WORDS: Words = Words {
        exited: "Podman container exited with non-zero exit code",
        out_of_memory: "Podman container killed by OOM killer",
        progress: "Podman image pull progress",
        no_auth: "Failed to find auth",
    };

    async fn status(&self, container: &str) -> Result<Status, Fault> {
        let found = self.inspect(container).await?;
        let state = found.state;
        Ok(Status {
            is_running: state.is_running(),
            exit_code: state.exit_code,
            oom_killed: state.oom_killed,
            pid: Some(state.pid).filter(|pid| *pid > 0),
            text: Some(state.status),
            image: Some(found.image),
        })
    }

    async fn await_exit(&self, container: &str) -> Result<(), Fault> {
        let path = format!("/containers/{container}/wait?condition=stopped&condition=exited&interval=250ms");
        self.ask_for(Call::post(path), None, WAIT).await.map(drop)
    }

    async fn kill(&self, container: &str, signal: Signal) -> Result<(), Fault> {
        let path = format!("/containers/{container}/kill?signal={}", signal.as_str());
        self.ask(Call::post(path), None).await.map(drop)
    }

    async fn stop(&self, container: &str, grace: Duration) -> Result<(), Fault> {
        let path = format!("/containers/{container}/stop?timeout={}", grace.as_millis().div_ceil(1000));
        self.ask_for(Call::post(path), None, grace + STOP_TIMEOUT).await.map(drop)
    }

    async fn stats(&self, container: &str) -> Result<Option<Usage>, Fault> {
        let read = self
            .read::<ContainerStatsResponse>(Call::get(format!("/containers/{container}/stats?stream=false")));
        match read.await {
            Ok(stats) => Ok(usage(&stats)),
            // It has no numbers of one that does not run.
            Err(error) => match self.status(container).await {
                Ok(status) if !status.is_running => Ok(None),
                _ => Err(error),
            },
        }
    }

    async fn exec(&self, container: &str, config: ExecConfig) -> Result<Exec, ExecError> {
        exec::exec(self, container, config).await
    }

    async fn remove(&self, container: &str) -> Result<(), Fault> {
        let path = format!("/containers/{container}?force=true&v=true&timeout=0");
        match self.ask(Call::delete(path), None).await {
            Ok(_) | Err(Fault::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn own_containers(&self, node_id: &str) -> Result<Vec<Listed>, Fault> {
        let filters = json!({"label": [format!("{NODE_LABEL}={node_id}")]}).to_string();
        let path = format!("/containers/json?all=true&filters={}", escaped(&filters));
        let rows: Option<Vec<Row>> = self.read(Call::get(path)).await?;
        Ok(rows.unwrap_or_default().into_iter().map(listed).collect())
    }

    async fn find_image(&self, name: &str) -> Result<Option<String>, Fault> {
        let read = self.read::<Value>(Call::get(format!("/images/{}/json", escaped(name)))).await;
        match read {
            Ok(found) => Ok(Some(found["Id"].as_str().unwrap_or_default().to_string())),
            Err(Fault::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn remove_image(&self, id: &str) -> Result<(), Fault> {
        self.ask(Call::delete(format!("/images/{}", escaped(id))), None).await.map(drop)
    }

    async fn pull(&self, wanted: &Wanted, said: &watch::Sender<String>) -> Result<(), StartError> {
        let failed = |error: &str, recoverable| {
            let message = format!("Failed to pull `{}`: {error}", wanted.name.full());
            StartError::Failed { message, recoverable }
        };
        match timeout(wanted.timeout, pull(self, wanted, said)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(&error, !is_absent(&error))),
            Err(_) => {
                let seconds = wanted.timeout.as_secs();
                Err(failed(&format!("not done within {seconds} s (image_pull_timeout)"), true))
            }
        }
    }

    async fn load(&self, archive: &Path, patience: Duration) -> Result<Option<String>, StartError> {
        let failed = |error: &dyn std::fmt::Display| {
            StartError::fatal(format!("Failed to load image from {}: {error}", archive.display()))
        };
        let mut call = Call::post("/images/load");
        call.headers.push(("Content-Type", "application/x-tar".to_string()));
        let bytes = self.upload(call, archive, patience).await.map_err(|error| failed(&error))?;
        let said: Value = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
        let name = said["Names"][0].as_str().ok_or_else(|| failed(&"the engine names no image in it"))?;
        Ok(Some(name.to_string()))
    }
}

fn listed(row: Row) -> Listed {
    let labels = row.labels.unwrap_or_default();
    let created = row.created.parse::<Timestamp>().ok().and_then(|time| time.0);
    Listed {
        id: row.id,
        names: row.names.unwrap_or_default(),
        created: created.map(|time| time.0 / 1_000_000_000),
        is_running: row.state == "running",
        has_network: labels.contains_key(NETWORK_LABEL),
        alloc: labels.get(ALLOC_LABEL).cloned(),
    }
}

async fn pull(engine: &Engine, wanted: &Wanted, said: &watch::Sender<String>) -> Result<(), String> {
    let mut path = format!("/images/pull?policy=always&reference={}", escaped(&wanted.name.full()));
    let platform = &wanted.platform;
    for (key, text) in [("Arch", &platform.arch), ("OS", &platform.os), ("Variant", &platform.variant)] {
        if !text.is_empty() {
            path += &format!("&{key}={}", escaped(text));
        }
    }
    if let Some(verify) = wanted.tls_verify {
        path += &format!("&tlsVerify={verify}");
    }
    let mut call = Call::post(path);
    if let Some(credentials) = &wanted.credentials {
        let text = serde_json::to_vec(credentials).map_err(|error| error.to_string())?;
        call.headers.push(("X-Registry-Auth", URL_SAFE.encode(text)));
    }
    let answer = engine.stream(call, None, wanted.timeout).await.map_err(|error| error.to_string())?;
    let mut lines = std::pin::pin!(lines(answer));
    loop {
        let seconds = wanted.activity_timeout.as_secs();
        let late = |_| format!("no progress for {seconds} s (pull_activity_timeout)");
        let Some(line) = timeout(wanted.activity_timeout, lines.next()).await.map_err(late)? else {
            return Ok(());
        };
        let line: Value = serde_json::from_str(&line.map_err(|error| error.to_string())?).unwrap_or_default();
        if let Some(error) = line["error"].as_str() {
            return Err(error.to_string());
        }
        if let Some(text) = line["stream"].as_str() {
            said.send_replace(text.trim().to_string());
        }
    }
}
