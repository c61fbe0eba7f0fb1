//! What all tasks of one engine share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::Engine;
use super::images::Images;
use super::settings::Gc;
use crate::driver::DriverEvent;

/// Messages about tasks that wait to be taken; what comes beyond is dropped.
pub const EVENTS_MAX: usize = 256;

/// By name or id of a container, how many have to do with it.
pub type Counts = Arc<Mutex<HashMap<String, usize>>>;

#[derive(Debug)]
pub struct Shared<E: Engine> {
    pub settings: E::Settings,
    pub gc: Gc,
    pub engine: Arc<E>,
    pub images: Arc<Images<E>>,
    pub node_id: String,
    /// Where is noted how far the output of each container was written.
    pub directory: PathBuf,
    /// The engine has answered once.
    pub seen: AtomicBool,
    /// What removes containers that nobody knows has been started.
    pub sweeping: AtomicBool,
    events: mpsc::Sender<DriverEvent>,
    /// Names and ids of containers that this agent has to do with, on all engines of the driver.
    tracked: Counts,
    /// Those that have networks of groups, by name.
    networks: Mutex<HashMap<String, Tracked>>,
}

/// Containers that are not to be taken for forgotten ones, as long as this is held.
#[derive(Debug)]
pub struct Tracked {
    keys: Vec<String>,
    all: Counts,
}

impl<E: Engine> Shared<E> {
    pub fn new(
        engine: E,
        settings: E::Settings,
        gc: Gc,
        node_id: String,
        directory: PathBuf,
        events: mpsc::Sender<DriverEvent>,
        tracked: Counts,
    ) -> Arc<Shared<E>> {
        let engine = Arc::new(engine);
        let keep = gc.image.then_some(gc.image_delay);
        Arc::new(Shared {
            images: Images::new(Arc::clone(&engine), keep),
            settings,
            gc,
            engine,
            node_id,
            directory,
            seen: AtomicBool::new(false),
            sweeping: AtomicBool::new(false),
            events,
            tracked,
            networks: Mutex::default(),
        })
    }

    pub fn say(&self, event: DriverEvent) {
        if self.events.try_send(event).is_err() {
            tracing::debug!("a message about a task was dropped");
        }
    }

    /// Where is noted how far the output of a container was written.
    pub fn note(&self, container: &str) -> PathBuf {
        self.directory.join(format!("{container}.logs"))
    }

    pub fn track(&self, key: &str) -> Tracked {
        let mut tracked = Tracked { keys: Vec::new(), all: Arc::clone(&self.tracked) };
        tracked.add(key);
        tracked
    }

    /// The container of a network is wanted until [`Shared::release_network`].
    pub fn hold_network(&self, name: &str) {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        networks.entry(name.to_string()).or_insert_with(|| self.track(name));
    }

    pub fn release_network(&self, name: &str) {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    pub fn is_tracked(&self, key: &str) -> bool {
        self.tracked.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }
}

impl Tracked {
    pub fn add(&mut self, key: &str) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(key.to_string()).or_default() += 1;
        self.keys.push(key.to_string());
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            let count = all.get_mut(key).expect("a key is there as long as somebody tracks it");
            *count -= 1;
            if *count == 0 {
                all.remove(key);
            }
        }
    }
}
