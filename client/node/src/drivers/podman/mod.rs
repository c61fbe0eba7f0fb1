//! Tasks as containers of Podman, reached over its own API on unix sockets.
//!
//! [`settings`] is the operator's block, [`keys`] that of a task, and [`container`] what becomes of both: the one pure
//! part. [`engine`] is the connection and [`api`] what is asked; [`start`] makes a container, and what happens to it then
//! is that of all containers, in [`super::containers`]. There may be several engines, one for each user of the host.
//!
//! Each container has a monitor, which writes its output and its exit, so the engine may come and go.

mod api;
mod container;
mod engine;
mod exec;
mod fingerprint;
mod keys;
mod logs;
mod settings;
mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;

use self::engine::Engine;
use self::settings::{DEFAULT, Settings};
use super::containers::shared::EVENTS_MAX;
use super::containers::task::{self, ContainerTask, Parts};
use super::containers::{self, State, sweep};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, DriverEvent, Fingerprint, FsIsolation, GroupNetworks, Known,
    RunningTask, Schema, StartError, Started, TaskConfig, Values,
};

type Shared = containers::Shared<Engine>;

pub const BUILTIN: BuiltinDriver =
    BuiltinDriver { name: NAME, plugin_schema: settings::PLUGIN, dev_config: &[], legacy_options: &[], make };

const NAME: &str = "podman";

/// One engine.
#[derive(Debug)]
struct One {
    shared: Arc<Shared>,
    /// As it said last.
    is_rootless: AtomicBool,
    /// When it was looked at last.
    answers: AtomicBool,
    /// The directory of its containers and images, as it said last: what tells engines of one host apart.
    storage: Mutex<Option<PathBuf>>,
}

#[derive(Debug)]
struct PodmanDriver {
    /// The engine of tasks that name none first; or what is wrong with the configuration.
    engines: Result<Arc<Vec<One>>, String>,
    events: Mutex<Option<mpsc::Receiver<DriverEvent>>>,
}

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    // In common: an engine that two sockets lead to, which is found out only later, loses no container of a task.
    let tracked = Arc::default();
    let one = |settings: Settings| {
        let engine = Engine { socket: settings.path.clone(), answer_timeout: settings.answer_timeout };
        // Notes of one engine are not those of another.
        let directory = host.state_dir.join(NAME).join(&settings.socket);
        let (gc, node_id) = (settings.gc.clone(), host.node_id.clone());
        let shared =
            Shared::new(engine, settings, gc, node_id, directory, sender.clone(), Arc::clone(&tracked));
        One {
            shared,
            is_rootless: AtomicBool::new(false),
            answers: AtomicBool::new(false),
            storage: Mutex::default(),
        }
    };
    let settings = Settings::read(config, rustix::process::geteuid().as_raw());
    let engines = settings.map(|all| Arc::new(all.into_iter().map(one).collect::<Vec<One>>()));
    Some(Arc::new(PodmanDriver { engines, events: Mutex::new(Some(events)) }))
}

impl PodmanDriver {
    fn engines(&self) -> Result<&Arc<Vec<One>>, String> {
        self.engines.as_ref().map_err(|wrong| misconfigured(wrong))
    }

    /// The engine of this name; none is that of tasks that name none.
    fn engine(&self, name: &str) -> Result<&One, String> {
        let name = if name.is_empty() { DEFAULT } else { name };
        let engines = self.engines()?;
        let missing = || format!("socket \"{name}\" is not one of the plugin on this node");
        engines.iter().find(|one| one.shared.settings.socket == name).ok_or_else(missing)
    }
}

/// Says which two sockets lead to the same engine: it would be asked twice for everything, and images counted apart.
fn same_engine(engines: &[One]) -> Option<String> {
    let mut known: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for one in engines {
        let storage = one.storage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(storage) = storage else { continue };
        let name = one.shared.settings.socket.as_str();
        if let Some(other) = known.insert(storage.clone(), name) {
            let storage = storage.display();
            return Some(format!(
                "socket \"{other}\" and socket \"{name}\" lead to the same engine, that of {storage}; leave one out"
            ));
        }
    }
    None
}

fn misconfigured(wrong: &str) -> String {
    format!("plugin \"podman\": {wrong}")
}

impl Driver for PodmanDriver {
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
        GroupNetworks::Joins
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(keys::TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        match &self.engines {
            Ok(engines) => fingerprint::fingerprints(Arc::clone(engines)),
            Err(wrong) => Fingerprint::undetected(&misconfigured(wrong)).once(),
        }
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let name = config.config.text("socket").unwrap_or_default();
            let one = self.engine(name).map_err(StartError::Invalid)?;
            if let Some(wrong) = same_engine(self.engines().map_err(StartError::Invalid)?) {
                return Err(StartError::Invalid(misconfigured(&wrong)));
            }
            start::start(&one.shared, one.is_rootless.load(Ordering::Relaxed), config).await
        })
    }

    /// Fails only when the engine says that there is no such container: one that does not answer now may have it.
    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move {
            let state = State::read(state)?;
            let shared = &self.engine(&state.engine).map_err(DriverError::Failed)?.shared;
            let parts = Parts::found(shared, &state).await?;
            let follower = state.logs().map(|logs| start::follow(shared, &state.container_id, logs));
            Ok(Arc::new(ContainerTask::attach(Parts { follower, ..parts })) as Arc<dyn RunningTask>)
        })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(async move {
            let state = State::read(state)?;
            let one = self.engine(&state.engine).map_err(DriverError::Failed)?;
            task::destroy(&one.shared, &state, force).await
        })
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for one in self.engines.iter().flat_map(|engines| engines.iter()) {
                sweep::end_unknown(&one.shared, self.handle_key(), known).await;
            }
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
