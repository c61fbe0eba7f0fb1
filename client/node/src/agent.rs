//! The agent as a whole: opens everything, starts the loops, stops them.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use model::document::Node;
use tokio::task::JoinSet;

use crate::allocs::Allocs;
use crate::clock;
use crate::contact::ServerContact;
use crate::context::{Context, ContextParts};
use crate::dns::Listener;
use crate::drain::{self, ShutdownDrain};
use crate::driver::Drivers;
use crate::driver::process::Executors;
use crate::driver::registry::DriverHost;
use crate::driver_watch;
use crate::fingerprint;
use crate::heartbeat;
use crate::host_volumes;
use crate::identity::{self, NodeIdentity};
use crate::meta;
use crate::plugins::Plugins;
use crate::pull;
use crate::quotas::DiskQuotas;
use crate::remote::{AskedServers, ServerQueries};
use crate::sampling;
use crate::secret_plugins;
use crate::server::ServerClient;
use crate::services;
use crate::settings::NodeSettings;
use crate::store::{self, Store, StoreError};
use crate::task::environment;
use crate::vault;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("{what}")]
    Io { what: &'static str, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("fingerprint: {0}")]
    Fingerprint(String),
    #[error("{0}")]
    Driver(String),
    #[error("{0}")]
    Quotas(String),
}

/// A running node agent. Dropping it stops its loops at once; tasks go on either way.
#[derive(Debug)]
pub struct Agent {
    context: Arc<Context>,
    allocs: Arc<Allocs>,
    contact: Arc<ServerContact>,
    loops: JoinSet<()>,
}

/// This node as the servers can call it, for the code that connects it with them.
#[derive(Clone, Debug)]
pub struct LocalNode {
    pub context: Arc<Context>,
    pub allocs: Arc<Allocs>,
    pub contact: Arc<ServerContact>,
}

impl Agent {
    /// Starts the agent: identity, fingerprint, tasks of an earlier agent, then the loops. `connect` is
    /// called once and makes the connection to the servers; its argument answers their calls.
    ///
    /// # Errors
    /// When a directory cannot be made, the local state cannot be read, or the node cannot be described.
    pub async fn start<S: ServerClient>(
        settings: NodeSettings,
        connect: impl FnOnce(LocalNode) -> Arc<S>,
    ) -> Result<Agent, AgentError> {
        // First of all: an agent that cannot listen touches no task.
        let dns = match &settings.dns {
            Some(dns) => Some(
                Listener::bind(dns)
                    .await
                    .map_err(|source| AgentError::Io { what: "listen for questions of the DNS", source })?,
            ),
            None => None,
        };
        let context = Arc::new(open(settings).await?);
        let allocs = Arc::new(Allocs::new(Arc::clone(&context)));
        let contact = Arc::new(ServerContact::default());
        let local = LocalNode {
            context: Arc::clone(&context),
            allocs: Arc::clone(&allocs),
            contact: Arc::clone(&contact),
        };
        let server = connect(local);
        let asked = AskedServers {
            server: Arc::downgrade(&server),
            dev: context.settings.dev,
            seed: context.seed,
            contact: Arc::clone(&contact),
        };
        let remote: Arc<dyn ServerQueries> = Arc::new(asked);
        if let Some(consul) = &context.settings.consul {
            consul.signs_with(&remote);
        }
        context.servers.set(remote).expect("the agent is started once");
        allocs.restore().await?;
        let mut loops = JoinSet::new();
        loops.spawn(heartbeat::run(context.clone(), server.clone(), contact.clone()));
        loops.spawn(pull::run(context.clone(), server.clone(), allocs.clone(), contact.clone()));
        loops.spawn(services::sync::run(context.clone(), server.clone(), contact.clone()));
        loops.spawn(pull::send_updates(context.clone(), server, contact.clone()));
        loops.spawn(pull::maintain(context.clone(), allocs.clone(), contact.clone()));
        loops.spawn(services::consul::describe(context.clone()));
        for vault in context.vaults.values() {
            loops.spawn(Arc::clone(vault).run(context.clone()));
        }
        if let Some(dns) = dns {
            loops.spawn(dns.run(context.clone()));
        }
        loops.spawn(driver_watch::run(context.clone(), allocs.clone()));
        loops.spawn(store::mend(context.store.clone()));
        loops.spawn(sampling::run(context.clone(), allocs.clone()));
        Ok(Agent { context, allocs, contact, loops })
    }

    /// The node's id, as the servers know it.
    pub fn node_id(&self) -> String {
        self.context.node().id.clone()
    }

    /// True once the servers have sent this node its allocations.
    pub fn is_ready(&self) -> bool {
        *self.context.contacted.borrow()
    }

    /// This node as the servers can call it; also for the agent's own HTTP API.
    pub fn local(&self) -> LocalNode {
        LocalNode {
            context: Arc::clone(&self.context),
            allocs: Arc::clone(&self.allocs),
            contact: Arc::clone(&self.contact),
        }
    }

    /// Has the servers drain the node, and waits for it.
    pub async fn drain(&self, wish: ShutdownDrain) {
        drain::before_shutdown(&self.context, &self.allocs, wish).await;
    }

    /// Stops the agent and leaves the tasks running; the next agent finds them again. In development mode
    /// everything is ended and removed instead.
    pub async fn shutdown(mut self) {
        self.loops.shutdown().await;
        if self.context.settings.dev {
            self.allocs.destroy_all().await;
            self.context.plugins.end().await;
        }
        for vault in self.context.vaults.values() {
            vault.leave().await;
        }
        self.context.shutdown.cancel();
        self.context.tasks.close();
        self.context.tasks.wait().await;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.context.shutdown.cancel();
    }
}

async fn open(mut settings: NodeSettings) -> Result<Context, AgentError> {
    let io = |what| move |source| AgentError::Io { what, source };
    let executors = settings.state_dir.join("executors");
    make(&settings.state_dir, 0o700).map_err(io("make the state directory"))?;
    make(&executors, 0o700).map_err(io("make the directory of executors"))?;
    make(&settings.alloc_dir, 0o711).map_err(io("make the directory of allocations"))?;
    // Tasks see paths below it, whatever the agent's own directory is.
    settings.alloc_dir =
        settings.alloc_dir.canonicalize().map_err(io("find the directory of allocations"))?;
    let disk_quotas = settings.ephemeral_disk_quota.then(|| DiskQuotas::open(&settings.alloc_dir));
    let disk_quotas = disk_quotas.transpose().map_err(AgentError::Quotas)?.map(Arc::new);
    // In development too: a server in the same process finds the node's id in the directory.
    let identity = NodeIdentity::load(&settings.state_dir, settings.id_of_host)
        .map_err(io("read the node's identity"))?;
    let store = match settings.ephemeral {
        true => Store::disabled(),
        false => Store::open(&settings.state_dir.join("state.db"))?,
    };
    let cgroup_parent = fingerprint::cgroup::prepare(&settings.cgroup_parent);
    let executors = Executors {
        directory: executors,
        program: settings.executor_program.clone(),
        open_files: settings.task_open_files,
        cgroup_parent: cgroup_parent.clone(),
    };
    let host = DriverHost {
        executors,
        node_id: identity.id.to_string(),
        state_dir: settings.state_dir.clone(),
        chroot_env: settings.chroot_env.clone(),
        denied_users: settings.denied_users.clone(),
    };
    let drivers = Drivers::configured(&settings.drivers, &settings.driver_filter, &settings.plugins, &host);
    let mut drivers = drivers.map_err(AgentError::Driver)?;
    let node = fingerprint::node(&settings, &identity, cgroup_parent.as_ref());
    let mut node = node.map_err(AgentError::Fingerprint)?;
    let plugins = Plugins::open(&settings, &node, &mut drivers).await.map_err(AgentError::Driver)?;
    drivers.fingerprint(&mut node, clock::now()).await;
    if let Some(resources) = &mut node.node_resources {
        resources.devices = plugins.devices.first().await;
    }
    host_volumes::fingerprint(&settings, &mut node).await;
    let wanted = |name: &str| settings.fingerprint_filter.allows(name);
    let cloud = fingerprint::cloud::find(&settings.clouds, Path::new("/"), wanted).await;
    let cloud = cloud.map_err(AgentError::Fingerprint)?;
    node.attributes.0.extend(cloud.attributes);
    node.links.0.extend(cloud.links);
    if settings.fingerprint_filter.allows("secrets_plugins") {
        node.attributes.0.extend(secret_plugins::fingerprint(&settings.common_plugin_dir).await);
    }
    if settings.intro_token.is_empty() {
        settings.intro_token =
            identity::intro_token(&settings.state_dir).map_err(io("read the introduction token"))?;
    }
    if let Some(consul) = &settings.consul {
        consul.keep_tokens_in(&store);
    }
    let vaults = vault::open(&settings.vaults, &store).map_err(AgentError::Driver)?;
    let registration = store.load_registration()?;
    let dynamic_meta = meta::restored(&settings.meta, store.load_meta()?);
    node.meta.0 = meta::effective(&settings.meta, &dynamic_meta);
    let inherited = environment::inheritable(environment_of_agent());
    let context = Context::new(ContextParts {
        settings,
        drivers,
        plugins,
        store,
        inherited,
        seed: clock::seed(),
        node,
        dynamic_meta,
        registration,
        vaults,
        disk_quotas,
    });
    let mut node = Node::clone(&context.node());
    context.host_volumes.restore(&mut node).await;
    context.change_node(|current| *current = node);
    Ok(context)
}

/// The variables of this process that are text; tasks may inherit them.
fn environment_of_agent() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn make(path: &Path, mode: u32) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)
}
