//! Tasks as containers of a Docker engine, reached over its API.
//!
//! [`settings`] is the operator's block, [`keys`] that of a task, and [`container`] what becomes of both: the one pure
//! part. [`start`] makes a container; what happens to it then is that of all containers, in [`super::containers`].

mod container;
mod engine;
mod exec;
mod fingerprint;
mod keys;
mod logs;
mod mounts;
mod pause;
mod pull;
mod settings;
mod start;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::models::ContainerInspectResponse;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;

use self::engine::Engine;
use self::settings::Settings;
use super::containers::shared::EVENTS_MAX;
use super::containers::task::{self, ContainerTask, Parts};
use super::containers::{self, State, sweep};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, DriverEvent, Fingerprint, FsIsolation, GroupNetworks, Known,
    RunningTask, Schema, StartError, Started, TaskConfig, Values,
};

type Shared = containers::Shared<Engine>;

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
    let shared = settings.map(|settings| {
        let (engine, gc) = (Engine::new(settings.endpoint.clone()), settings.gc.clone());
        Shared::new(engine, settings, gc, host.node_id.clone(), directory, sender, Arc::default())
    });
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

impl Driver for DockerDriver {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: true,
            exec: true,
            fs_isolation: FsIsolation::Image,
            mounts: true,
            device_permissions: true,
        }
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

    fn task_schema(&self) -> Option<Schema> {
        Some(keys::TASK)
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
            let (shared, state) = (self.shared()?, State::read(state)?);
            let parts = Parts::found(shared, &state).await?;
            let follower = state.logs().map(|logs| start::follow(shared, &state.container_id, logs));
            Ok(Arc::new(ContainerTask::attach(Parts { follower, ..parts })) as Arc<dyn RunningTask>)
        })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move { task::destroy(self.shared()?, &State::read(state)?, force).await })
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok(shared) = &self.shared else { return };
            sweep::end_unknown(shared, self.handle_key(), known).await;
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

fn is_running(found: &ContainerInspectResponse) -> bool {
    found.state.as_ref().and_then(|state| state.running) == Some(true)
}
