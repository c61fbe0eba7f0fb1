//! The connection to the container engine, and what its errors mean.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptions, ListContainersOptions, RemoveContainerOptions,
    RemoveImageOptions, StatsOptions, StopContainerOptions, WaitContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::stream::StreamExt;
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::containers::images::Wanted;
use super::super::containers::parts::{ALLOC_LABEL, NETWORK_LABEL, NODE_LABEL};
use super::super::containers::task::STOP_TIMEOUT;
use super::super::containers::usage::usage;
use super::super::containers::{self, Fault, Listed, Status, Words};
use super::settings::Settings;
use super::{exec, pull};
use crate::driver::{Exec, ExecConfig, ExecError, StartError, Usage};

/// How long the engine may take to begin an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long it may take to say that it is there.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// What is said of an engine that does not answer.
pub const NO_ENGINE: &str = "Failed to connect to docker daemon";

/// One engine; it may come and go.
#[derive(Debug)]
pub struct Engine {
    endpoint: String,
    /// Once it has answered: a client with the version of its API.
    client: Mutex<Option<Docker>>,
}

impl Engine {
    pub fn new(endpoint: String) -> Engine {
        Engine { endpoint, client: Mutex::default() }
    }

    /// A client for requests; each of them is a connection of its own.
    ///
    /// # Errors
    /// When the engine does not answer and never has.
    pub async fn client(&self) -> Result<Docker, Error> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        self.greet().await
    }

    /// Finds out which version of the API the engine speaks: it may be another one since.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn greet(&self) -> Result<Docker, Error> {
        let seconds = ANSWER_TIMEOUT.as_secs();
        let unnegotiated = match self.endpoint.starts_with("unix://") {
            true => Docker::connect_with_unix(&self.endpoint, seconds, API_DEFAULT_VERSION)?,
            false => Docker::connect_with_http(&self.endpoint, seconds, API_DEFAULT_VERSION)?,
        };
        let negotiated = timeout(GREETING_TIMEOUT, unnegotiated.negotiate_version()).await;
        let client = negotiated.unwrap_or(Err(Error::RequestTimeoutError))?;
        *self.lock() = Some(client.clone());
        Ok(client)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Docker>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// When the engine does not answer, or has no such container.
    pub async fn inspect(&self, container: &str) -> Result<ContainerInspectResponse, Error> {
        self.client().await?.inspect_container(container, None::<InspectContainerOptions>).await
    }
}

/// The code of an answer that says no.
pub fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// There is no such container, image or command.
pub fn is_missing(error: &Error) -> bool {
    status(error) == Some(404)
}

/// It is so already, or cannot be so now.
pub fn is_conflict(error: &Error) -> bool {
    matches!(status(error), Some(304 | 409))
}

/// The engine has not decided anything: it may well do so when it is asked again.
pub fn is_transient(error: &Error) -> bool {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            *status_code == 500
                && ["Client.Timeout", "EOF", "context deadline exceeded", "connection refused", "is locked"]
                    .iter()
                    .any(|sign| message.contains(sign))
                || *status_code == 503
        }
        Error::DockerStreamError { .. } | Error::DockerContainerWaitError { .. } => false,
        Error::JsonDataError { .. } | Error::JsonSerdeError { .. } => false,
        _ => true,
    }
}

/// For people: what the engine said, or why it said nothing.
pub fn text(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_string(),
        Error::DockerStreamError { error } => error.clone(),
        other if is_transient(other) => format!("{NO_ENGINE}: {other}"),
        other => other.to_string(),
    }
}

fn fault(error: Error) -> Fault {
    let text = text(&error);
    match error {
        error if is_missing(&error) => Fault::Missing(text),
        error if is_conflict(&error) => Fault::Conflict(text),
        error if is_transient(&error) => Fault::Unreached(text),
        _ => Fault::Failed(text),
    }
}

impl containers::Engine for Engine {
    type Settings = Settings;

    const WORDS: Words = Words {
        exited: "Docker container exited with non-zero exit code",
        out_of_memory: "OOM Killed",
        progress: "Docker image pull progress",
        no_auth: "Failed to find docker auth",
    };

    async fn status(&self, container: &str) -> Result<Status, Fault> {
        let found = self.inspect(container).await.map_err(fault)?;
        let state = found.state.unwrap_or_default();
        Ok(Status {
            is_running: state.running == Some(true) || state.restarting == Some(true),
            exit_code: state.exit_code.unwrap_or(-1),
            oom_killed: state.oom_killed == Some(true),
            pid: state.pid,
            text: state.status.map(|status| status.to_string()),
            image: found.image,
        })
    }

    async fn await_exit(&self, container: &str) -> Result<(), Fault> {
        let client = self.client().await.map_err(fault)?;
        let options = WaitContainerOptions { condition: "not-running".to_string() };
        match client.wait_container(container, Some(options)).next().await {
            Some(Ok(_) | Err(Error::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => Err(fault(error)),
            None => Err(Fault::Failed("the engine has stopped waiting".to_string())),
        }
    }

    async fn kill(&self, container: &str, signal: Signal) -> Result<(), Fault> {
        let options = KillContainerOptions { signal: signal.as_str().to_string() };
        self.client().await.map_err(fault)?.kill_container(container, Some(options)).await.map_err(fault)
    }

    async fn stop(&self, container: &str, grace: Duration) -> Result<(), Fault> {
        let client = self.client().await.map_err(fault)?.with_timeout(grace + STOP_TIMEOUT);
        let seconds = i32::try_from(grace.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
        let options = StopContainerOptions { t: Some(seconds), signal: None };
        client.stop_container(container, Some(options)).await.map_err(fault)
    }

    async fn stats(&self, container: &str) -> Result<Option<Usage>, Fault> {
        let options = StatsOptions { stream: false, one_shot: true };
        let read = self.client().await.map_err(fault)?.stats(container, Some(options)).next().await;
        Ok(read.transpose().map_err(fault)?.and_then(|stats| usage(&stats)))
    }

    async fn exec(&self, container: &str, config: ExecConfig) -> Result<Exec, ExecError> {
        exec::exec(self, container, config).await
    }

    async fn remove(&self, container: &str) -> Result<(), Fault> {
        let options = RemoveContainerOptions { force: true, v: true, ..RemoveContainerOptions::default() };
        match self.client().await.map_err(fault)?.remove_container(container, Some(options)).await {
            Err(error) if !is_missing(&error) && !is_conflict(&error) => Err(fault(error)),
            _ => Ok(()),
        }
    }

    async fn own_containers(&self, node_id: &str) -> Result<Vec<Listed>, Fault> {
        let label = format!("{NODE_LABEL}={node_id}");
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([("label".to_string(), vec![label])])),
            ..ListContainersOptions::default()
        };
        let found = self.client().await.map_err(fault)?.list_containers(Some(options)).await;
        Ok(found.map_err(fault)?.into_iter().filter_map(listed).collect())
    }

    async fn find_image(&self, name: &str) -> Result<Option<String>, Fault> {
        match self.client().await.map_err(fault)?.inspect_image(name).await {
            Ok(image) => Ok(Some(image.id.unwrap_or_default())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(fault(error)),
        }
    }

    async fn remove_image(&self, id: &str) -> Result<(), Fault> {
        let client = self.client().await.map_err(fault)?;
        client.remove_image(id, None::<RemoveImageOptions>, None).await.map(drop).map_err(fault)
    }

    async fn pull(&self, wanted: &Wanted, said: &watch::Sender<String>) -> Result<(), StartError> {
        let client = self.client().await.map_err(|error| StartError::transient(text(&error)))?;
        pull::pull(&client, wanted, said).await
    }

    async fn load(&self, archive: &Path, patience: Duration) -> Result<Option<String>, StartError> {
        let client = self.client().await.map_err(|error| StartError::transient(text(&error)))?;
        pull::load(&client, archive, patience).await.map(|()| None)
    }
}

fn listed(found: ContainerSummary) -> Option<Listed> {
    let labels = found.labels.unwrap_or_default();
    Some(Listed {
        id: found.id?,
        names: found.names.iter().flatten().map(|name| name.trim_start_matches('/').to_string()).collect(),
        created: found.created,
        is_running: found.state == Some(ContainerSummaryStateEnum::RUNNING),
        has_network: labels.contains_key(NETWORK_LABEL),
        alloc: labels.get(ALLOC_LABEL).cloned(),
    })
}
