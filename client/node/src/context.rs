//! What all parts of one agent share.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use model::document::Node;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::driver::Drivers;
use crate::settings::Settings;
use crate::store::Store;
use crate::updates::Updates;

#[derive(Debug)]
pub struct Context {
    pub settings: Settings,
    pub drivers: Drivers,
    pub store: Store,
    pub updates: Updates,
    /// What tasks inherit from the agent's own environment.
    pub inherited: BTreeMap<String, String>,
    /// Chance for delays; each purpose derives its own stream.
    pub seed: u64,
    /// Cancelled when the agent stops; tasks go on.
    pub shutdown: CancellationToken,
    /// The loops of all allocations; empty once the agent has let go of them.
    pub tasks: TaskTracker,
    /// True once the servers have told us our allocations.
    pub contacted: watch::Sender<bool>,
    node: RwLock<Arc<Node>>,
}

/// What makes a [`Context`], besides what starts empty.
#[derive(Debug)]
pub struct Parts {
    pub settings: Settings,
    pub drivers: Drivers,
    pub store: Store,
    pub inherited: BTreeMap<String, String>,
    pub seed: u64,
    pub node: Node,
}

impl Context {
    pub fn new(parts: Parts) -> Context {
        Context {
            updates: Updates::new(parts.store.clone()),
            settings: parts.settings,
            drivers: parts.drivers,
            store: parts.store,
            inherited: parts.inherited,
            seed: parts.seed,
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
            contacted: watch::Sender::new(false),
            node: RwLock::new(Arc::new(parts.node)),
        }
    }

    /// The node as it was last registered.
    pub fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn change_node(&self, change: impl FnOnce(&mut Node)) {
        let mut node = self.node.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut node));
    }
}
