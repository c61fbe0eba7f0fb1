//! What all parts of one agent share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use model::document::Node;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::csi;
use crate::driver::Drivers;
use crate::host_volumes::HostVolumes;
use crate::identity::Registration;
use crate::meta::{self, Dynamic, MetaError};
use crate::network::Networks;
use crate::plugins::Plugins;
use crate::quotas::DiskQuotas;
use crate::remote::ServerQueries;
use crate::samples::Samples;
use crate::services::{Prober, Registry, Results};
use crate::settings::NodeSettings;
use crate::store::Store;
use crate::task_api::TaskApi;
use crate::templates::watches::Watches;
use crate::updates::Updates;
use crate::users::UserPool;
use crate::vault::Vaults;

#[derive(Debug)]
pub struct Context {
    pub settings: NodeSettings,
    pub drivers: Drivers,
    /// Programs that are drivers or devices.
    pub plugins: Plugins,
    pub store: Store,
    pub updates: Updates,
    /// What tasks inherit from the agent's own environment.
    pub inherited: BTreeMap<String, String>,
    /// Chance for delays; each purpose derives its own stream.
    pub seed: u64,
    /// Cancelled when the agent stops; tasks go on.
    pub shutdown: CancellationToken,
    /// The loops of all allocations; empty when the agent has stopped.
    pub tasks: TaskTracker,
    /// True once the servers have sent this node its allocations.
    pub contacted: watch::Sender<bool>,
    /// Notified when an allocation has ended, or the servers know that it has: there may be something to remove.
    pub alloc_ended: Notify,
    /// Notified when the node differs from what was registered.
    pub node_changed: Notify,
    /// The next heartbeat asks for a new identity.
    pub renew_identity: AtomicBool,
    registration: Mutex<Registration>,
    /// Tokens of default identities by allocation and task, as the servers sent them with the allocations.
    default_tokens: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    /// What the nodes of previous allocations accept from this one, by the id of the allocation that wants their data.
    migrate_tokens: Mutex<BTreeMap<String, String>>,
    /// Set once, before the first allocation; not in tests of single parts.
    pub servers: OnceLock<Arc<dyn ServerQueries>>,
    /// Set once, before the first allocation, by agents that answer HTTP.
    pub task_api: OnceLock<Arc<dyn TaskApi>>,
    /// What allocations have registered as services.
    pub services: Registry,
    /// How the checks of services went last.
    pub checks: Results,
    pub prober: Prober,
    /// By the names that jobs give them.
    pub vaults: Vaults,
    /// What templates read from the servers.
    pub watches: Watches,
    /// What allocations have instead of the network of the host.
    pub networks: Networks,
    /// Bounds what allocations store, where the operator wants that.
    pub disk_quotas: Option<Arc<DiskQuotas>>,
    /// Volumes that were made here.
    pub host_volumes: HostVolumes,
    /// Tasks that are storage plugins, and what of theirs is mounted.
    pub csi: csi::Plugins,
    /// Users that tasks have for themselves.
    pub users: UserPool,
    /// What tasks and the host used lately.
    pub samples: Samples,
    /// What happened to tasks, counted for the metrics.
    pub counters: metrics::Samples,
    node: RwLock<Arc<Node>>,
    dynamic_meta: Mutex<Dynamic>,
}

/// What makes a [`Context`], besides what starts empty.
#[derive(Debug)]
pub struct ContextParts {
    pub settings: NodeSettings,
    pub drivers: Drivers,
    pub plugins: Plugins,
    pub store: Store,
    pub inherited: BTreeMap<String, String>,
    pub seed: u64,
    pub node: Node,
    pub dynamic_meta: Dynamic,
    pub registration: Registration,
    pub vaults: Vaults,
    pub disk_quotas: Option<Arc<DiskQuotas>>,
}

impl Context {
    pub fn new(parts: ContextParts) -> Context {
        Context {
            updates: Updates::new(parts.store.clone()),
            services: Registry::new(parts.store.clone()),
            checks: Results::new(parts.store.clone()),
            prober: Prober::default(),
            vaults: parts.vaults,
            disk_quotas: parts.disk_quotas,
            watches: Watches::default(),
            networks: Networks::open(
                parts.settings.network.clone(),
                parts.settings.state_dir.join("networks"),
            ),
            csi: csi::Plugins::default(),
            host_volumes: HostVolumes::new(&parts.settings, parts.store.clone()),
            users: UserPool::new(parts.settings.dynamic_users.clone(), parts.seed),
            settings: parts.settings,
            drivers: parts.drivers,
            plugins: parts.plugins,
            store: parts.store,
            inherited: parts.inherited,
            seed: parts.seed,
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
            contacted: watch::Sender::new(false),
            alloc_ended: Notify::new(),
            node_changed: Notify::new(),
            renew_identity: AtomicBool::new(false),
            registration: Mutex::new(parts.registration),
            default_tokens: Mutex::default(),
            migrate_tokens: Mutex::default(),
            servers: OnceLock::new(),
            task_api: OnceLock::new(),
            samples: Samples::default(),
            counters: metrics::Samples::default(),
            node: RwLock::new(Arc::new(parts.node)),
            dynamic_meta: Mutex::new(parts.dynamic_meta),
        }
    }

    /// The node as it was last registered.
    pub fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the servers have given this node.
    pub fn registration(&self) -> Registration {
        self.registration.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes that, and stores it if it differs.
    pub fn change_registration(&self, change: impl FnOnce(&mut Registration)) {
        let mut registration = self.registration.lock().unwrap_or_else(PoisonError::into_inner);
        let before = registration.clone();
        change(&mut registration);
        if *registration != before {
            self.store.put_registration(&registration);
        }
    }

    pub fn put_default_tokens(&self, alloc_id: &str, tokens: BTreeMap<String, String>) {
        if !tokens.is_empty() {
            self.default_tokens().insert(alloc_id.to_string(), tokens);
        }
    }

    pub fn default_token(&self, alloc_id: &str, task: &str) -> Option<String> {
        self.default_tokens().get(alloc_id)?.get(task).cloned()
    }

    fn default_tokens(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, String>>> {
        self.default_tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces them all: the servers send all of them each time.
    pub fn put_migrate_tokens(&self, tokens: BTreeMap<String, String>) {
        *self.migrate_tokens.lock().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    pub fn migrate_token(&self, alloc_id: &str) -> Option<String> {
        self.migrate_tokens.lock().unwrap_or_else(PoisonError::into_inner).get(alloc_id).cloned()
    }

    /// What of the node's metadata was changed since it was configured.
    pub fn dynamic_meta(&self) -> MutexGuard<'_, Dynamic> {
        self.dynamic_meta.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the node's metadata, stores that, and has the node registered again.
    ///
    /// # Errors
    /// When there are no changes, or a job could not refer to a key.
    pub fn change_meta(&self, changes: Dynamic) -> Result<(), MetaError> {
        {
            let mut dynamic = self.dynamic_meta();
            meta::change(&self.settings.meta, &mut dynamic, changes)?;
            self.store.put_meta(&dynamic);
            let meta = meta::effective(&self.settings.meta, &dynamic);
            self.change_node(|node| node.meta.0 = meta);
        }
        self.node_changed.notify_one();
        Ok(())
    }

    /// Removes what is stored and waits to be sent of an allocation that the servers no longer list.
    pub fn forget_alloc(&self, id: &str) {
        self.store.forget(id);
        self.updates.forget(id);
        self.services.forget(id);
        self.checks.forget(id);
        self.users.forget(id);
        if let Some(consul) = &self.settings.consul {
            consul.forget(id);
        }
        self.default_tokens().remove(id);
    }

    pub fn change_node(&self, change: impl FnOnce(&mut Node)) {
        let mut node = self.node.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut node));
    }
}
