//! Tasks as containers of a Docker engine, reached over its API.
//!
//! [`settings`] is the operator's block, [`keys`] that of a task, and [`container`] what becomes of both: the one pure
//! part. [`start`] makes a container, [`task`] stays with it; its output comes through [`logs`]. Images are counted in
//! [`images`].
//!
//! The engine owns the containers, so they outlive the agent. An engine that does not answer has not said that a task
//! ended: it is asked until it does.

mod auth;
mod container;
mod engine;
mod exec;
mod fingerprint;
mod images;
mod keys;
mod logs;
mod mounts;
mod pause;
mod settings;
mod shared;
mod start;
mod sweep;
mod task;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{RemoveContainerOptions, StopContainerOptions};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use self::settings::Settings;
use self::shared::{EVENTS_MAX, Shared};
use self::start::State;
use self::task::{DockerTask, Parts};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, DriverEvent, Fingerprint, FsIsolation, GroupNetworks, RunningTask,
    Schema, StartError, Started, TaskConfig, TaskHandle, Values,
};

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: settings::PLUGIN,
    dev_config: &[],
    legacy_options: &[("docker.privileged.enabled", "allow_privileged")],
    make,
};

const NAME: &str = "docker";

#[derive(Debug)]
struct DockerDriver {
    /// Or what is wrong with the configuration.
    shared: Result<Arc<Shared>, String>,
    events: Mutex<Option<mpsc::Receiver<DriverEvent>>>,
}

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let endpoint = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    let directory = host.state_dir.join(NAME);
    let settings = Settings::read(config, endpoint);
    let shared = settings.map(|settings| Shared::new(settings, host.node_id.clone(), directory, sender));
    Some(Arc::new(DockerDriver { shared, events: Mutex::new(Some(events)) }))
}

impl DockerDriver {
    fn shared(&self) -> Result<&Arc<Shared>, DriverError> {
        self.shared.as_ref().map_err(|wrong| DriverError::failed(misconfigured(wrong)))
    }
}

fn misconfigured(wrong: &str) -> String {
    format!("plugin \"docker\": {wrong}")
}

fn read_state(state: &Value) -> Result<State, DriverError> {
    let state = State::deserialize(state).map_err(|error| DriverError::Handle(error.to_string()))?;
    match state.container_id.is_empty() {
        true => Err(DriverError::Handle("it names no container".to_string())),
        false => Ok(state),
    }
}

impl Driver for DockerDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { signals: true, exec: true, fs_isolation: FsIsolation::Image }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Makes
    }

    fn create_network<'a>(
        &'a self,
        alloc_id: &'a str,
        hostname: Option<&'a str>,
    ) -> BoxFuture<'a, Result<PathBuf, DriverError>> {
        Box::pin(async move { pause::create(self.shared()?, alloc_id, hostname).await })
    }

    fn destroy_network<'a>(&'a self, alloc_id: &'a str) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move { pause::destroy(self.shared()?, alloc_id).await })
    }

    fn task_schema(&self) -> Schema {
        keys::TASK
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        match &self.shared {
            Ok(shared) => fingerprint::fingerprints(Arc::clone(shared)),
            Err(wrong) => Fingerprint::undetected(&misconfigured(wrong)).once(),
        }
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let shared = self.shared().map_err(StartError::fatal)?;
            start::start(shared, config).await
        })
    }

    /// Fails only when the engine says that there is no such container: one that does not answer now may have it.
    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move {
            let (shared, state) = (self.shared()?, read_state(state)?);
            if let Err(error) = shared.engine.inspect(&state.container_id).await
                && engine::is_missing(&error)
            {
                return Err(DriverError::failed("the container is gone"));
            }
            let mut tracked = shared.track(&state.container_name);
            tracked.add(&state.container_id);
            let image = Some(&state.image_id).filter(|id| !id.is_empty()).map(|id| shared.images.hold(id));
            let (logs, id) = (state.logs(), state.container_id);
            let parts = Parts { shared: Arc::clone(shared), id, image, tracked, logs };
            Ok(Arc::new(DockerTask::attach(parts)) as Arc<dyn RunningTask>)
        })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move { destroy(self.shared()?, &read_state(state)?, force).await })
    }

    fn end_unknown<'a>(&'a self, known: &'a [TaskHandle]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok(shared) = &self.shared else { return };
            sweep::end_unknown(shared, self.handle_key(), known).await;
            sweep::begin(shared);
        })
    }

    fn events(&self) -> BoxStream<'static, DriverEvent> {
        let waiting = self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        match waiting {
            Some(waiting) => {
                stream::unfold(waiting, |mut waiting| async move { Some((waiting.recv().await?, waiting)) })
                    .chain(stream::pending())
                    .boxed()
            }
            None => stream::pending().boxed(),
        }
    }
}

async fn destroy(shared: &Shared, state: &State, force: bool) -> Result<(), DriverError> {
    let failed = |error: bollard::errors::Error| DriverError::Failed(engine::text(&error));
    let id = &state.container_id;
    let found = match shared.engine.inspect(id).await {
        Ok(found) => Some(found),
        Err(error) if engine::is_missing(&error) => None,
        Err(error) => return Err(failed(error)),
    };
    let is_running = found.as_ref().is_some_and(is_running);
    if is_running && !force {
        return Err(DriverError::StillRunning);
    }
    let client = shared.engine.client().await.map_err(failed)?;
    let done = if found.is_none() {
        Ok(())
    } else if shared.settings.gc.container {
        let options = RemoveContainerOptions { force, v: true, ..RemoveContainerOptions::default() };
        client.remove_container(id, Some(options)).await
    } else if is_running {
        client.stop_container(id, Some(StopContainerOptions { t: Some(0), signal: None })).await
    } else {
        Ok(())
    };
    match done {
        Err(error) if !engine::is_missing(&error) && !engine::is_conflict(&error) => {
            return Err(failed(error));
        }
        _ => {}
    }
    std::fs::remove_file(shared.note(id)).ok();
    Ok(())
}

fn is_running(found: &ContainerInspectResponse) -> bool {
    found.state.as_ref().and_then(|state| state.running) == Some(true)
}
