//! Starts the server and the client that the settings ask for, waits for a signal, and shuts them down in order.

mod consul;
mod live_config;
mod node;
mod recording;
mod server;
mod task_api;
mod vault;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use ::node::figures::PublishedFigures;
use ::node::services::consul::Consul;
use ::node::{Agent, LocalNode, NodeSettings, WireServers};
use ::server::{Halted, NodeRoutes, Server};
use agent_http::NodeAgent;
use anyhow::Context;
use api::with_port;
use metrics::NodeFigures;
use monitor::{AgentConfig, Monitor};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tls::AgentTls;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::RpcSecurity;

pub(crate) use live_config::ConfigSources;
use live_config::LiveConfig;

use crate::settings::{AgentSettings, TelemetrySettings};

/// What runs beside an agent. It ends only with the reason why the agent cannot go on.
pub(crate) type Beside = Pin<Box<dyn Future<Output = anyhow::Error> + Send>>;

/// Runs the agent until a signal ends it; calls `started` when everything runs.
///
/// # Errors
/// When it cannot start, or its server fails.
pub(crate) fn run(
    settings: &AgentSettings,
    sources: ConfigSources,
    log: &Monitor,
    started: impl FnOnce(Option<&Server>) -> Beside,
) -> anyhow::Result<()> {
    let home = DataDir::make(settings)?;
    recording::check(&home.path, settings.recording.as_ref())?;
    let tls = tls(settings)?;
    let config = Arc::new(LiveConfig::new(settings.clone(), home.path.clone(), sources, tls.clone()));
    let process = ProcessContext { log, open_files: raise_open_files(), config, tls };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let end = runtime.block_on(serve(settings, &process, &home.path, started))?;
    drop((runtime, home));
    match end {
        Ending::Stopped { .. } => Ok(()),
        Ending::Restart => Err(restart()),
    }
}

/// How an agent ends without an error.
enum Ending {
    /// By a signal. `leave`: the server leaves its cluster for good.
    Stopped { leave: bool },
    /// The server asked for a restart of the process.
    Restart,
}

/// Executes this program again, under the same process id. Returns only when that fails.
fn restart() -> anyhow::Error {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return anyhow::Error::new(error).context("cannot start again"),
    };
    let error = std::process::Command::new(own).args(std::env::args_os().skip(1)).exec();
    anyhow::Error::new(error).context("cannot start again")
}

/// State of the whole process.
struct ProcessContext<'a> {
    log: &'a Monitor,
    /// The limit of open files at the start.
    open_files: Option<u64>,
    config: Arc<LiveConfig>,
    /// The certificates of this agent, if it has some.
    tls: Option<Arc<AgentTls>>,
}

fn tls(settings: &AgentSettings) -> anyhow::Result<Option<Arc<AgentTls>>> {
    if !settings.tls.is_on() {
        return Ok(None);
    }
    let loaded = AgentTls::load(&settings.tls, &settings.region, settings.server.enabled);
    Ok(Some(Arc::new(loaded.map_err(|error| anyhow::anyhow!("tls.{error}"))?)))
}

/// Raises the limit of open files to the hard limit, since every connection is a file. Returns the old limit.
fn raise_open_files() -> Option<u64> {
    let given = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: given.maximum, ..given }) {
        tracing::warn!(%error, "the number of open files stays as it is");
    }
    given.current
}

async fn serve(
    settings: &AgentSettings,
    process: &ProcessContext<'_>,
    home: &Path,
    started: impl FnOnce(Option<&Server>) -> Beside,
) -> anyhow::Result<Ending> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let hangup = signal(SignalKind::hangup())?;
    let (figures, routes) = (NodeFigures::default(), NodeRoutes::default());
    let server = match settings.server.enabled {
        true => {
            let settings = server::server_settings(settings, process, home, &figures, &routes)?;
            Some(Server::start(settings).await?)
        }
        false => None,
    };
    if let Some(server) = &server {
        process.config.schedules_with(server.control.clone());
    }
    let consul = consul::open(settings)?;
    let following = consul.clone().map(|consul| tokio::spawn(async move { consul.run().await }));
    let reloads = tokio::spawn(reload_at(hangup, process.config.clone()));
    let node = match settings.client.enabled {
        true => Some(NodePart::start(settings, process, home, &figures, consul.clone()).await?),
        false => None,
    };
    if let Some(node) = &node {
        routes.set(agent_http::node_routes(node.node.local()));
    }
    let beside = started(server.as_ref());
    let stopped = |leave| Ok(Ending::Stopped { leave });
    let outcome = tokio::select! {
        _ = interrupt.recv() => {
            tracing::info!("interrupted: shutting down");
            stopped(settings.leave_on_interrupt)
        }
        _ = terminate.recv() => {
            tracing::info!("terminated: shutting down");
            stopped(settings.leave_on_terminate)
        }
        halted = halted(server.as_ref()) => match halted {
            Halted { why, again: true } => {
                tracing::error!("the server stopped and restarts: {why}");
                Ok(Ending::Restart)
            }
            Halted { why, again: false } => Err(anyhow::anyhow!("the server stopped: {why}")),
        },
        why = given_up(server.as_ref()) => Err(anyhow::anyhow!("{why}")),
        why = beside => Err(why),
    };
    reloads.abort();
    let end = async {
        let drain = settings.client.drain_on_shutdown;
        if let (Ok(Ending::Stopped { leave: true }), Some(node), Some(drain)) = (&outcome, &node, drain) {
            node.node.drain(drain).await;
        }
        if let (Ok(Ending::Stopped { leave: true }), Some(server)) = (&outcome, &server) {
            server.cluster.leave().await;
        }
        if let Some(node) = node {
            node.shutdown().await;
        }
        if let Some(consul) = consul {
            following.iter().for_each(JoinHandle::abort);
            consul.leave().await;
        }
        if let Some(server) = server {
            server.shutdown().await;
        }
    };
    tokio::select! {
        () = end => {}
        _ = interrupt.recv() => tracing::warn!("interrupted again: stopping at once"),
        _ = terminate.recv() => tracing::warn!("terminated again: stopping at once"),
    }
    outcome
}

/// Reads the configuration again at each signal. What comes of it is logged where it is done.
async fn reload_at(mut hangup: Signal, config: Arc<LiveConfig>) {
    while hangup.recv().await.is_some() {
        let config = config.clone();
        let reloading = tokio::task::spawn_blocking(move || config.reload());
        if let Err(error) = reloading.await {
            tracing::error!(%error, "the configuration was not read again");
        }
    }
}

/// The node, and the HTTP API of an agent that has nothing else.
struct NodePart {
    node: Agent,
    http: Option<HttpPart>,
    /// What answers tasks; they hold it weakly.
    _api: Option<Arc<NodeAgent>>,
}

struct HttpPart {
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl NodePart {
    async fn start(
        settings: &AgentSettings,
        process: &ProcessContext<'_>,
        home: &Path,
        figures: &NodeFigures,
        consul: Option<Arc<Consul>>,
    ) -> anyhow::Result<NodePart> {
        let http = match settings.server.enabled {
            true => None,
            false => Some(listen(SocketAddr::new(settings.http_ip(), settings.ports.http))?),
        };
        let (known, mut api) = (servers(settings), None);
        let connect = |local: LocalNode| {
            let servers = WireServers::new(
                local.clone(),
                RpcSecurity::new(process.tls.clone(), &settings.region),
                known,
            );
            let agent = Arc::new(NodeAgent {
                node: local.clone(),
                servers: Arc::clone(&servers),
                config: process.config.clone(),
                figures: figures.clone(),
                prometheus: settings.prometheus_metrics,
                ui: settings.ui.enabled,
                access_control: settings.acl.enabled,
                metrics_host: (!settings.telemetry.disable_hostname).then(|| settings.name.clone()),
                response_headers: settings.response_headers.clone(),
            });
            task_api::offer(&local, &agent);
            api = Some(agent);
            servers
        };
        let node =
            Agent::start(NodeSettings { consul, ..node::node_settings(settings, process, home)? }, connect)
                .await
                .context("the node cannot start")?;
        publish(&settings.telemetry, &node, figures);
        let http = http.zip(api.clone()).map(|(listener, agent)| {
            let router = agent_http::router(agent);
            let (stop, stopping) = watch::channel(false);
            let limit = settings.limits.http();
            let connections = listener::Connections {
                handshake_timeout: settings.limits.https_handshake_timeout.to_std(),
                ..listener::Connections::new(process.tls.clone(), limit)
            };
            let serving = listener::serve(listener, router, connections, stopping);
            HttpPart { stop, serving: tokio::spawn(serving) }
        });
        Ok(NodePart { node, http, _api: api })
    }

    async fn shutdown(self) {
        if let Some(http) = self.http {
            http.stop.send_replace(true);
            // What follows a log or the stream of events has no end of its own.
            http.serving.abort();
        }
        self.node.shutdown().await;
    }
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    listener::listen(address)
        .with_context(|| format!("cannot listen on {address}: is another agent running there?"))
}

/// Lets the node's figures be read where metrics are served.
fn publish(telemetry: &TelemetrySettings, node: &Agent, figures: &NodeFigures) {
    let published = PublishedFigures {
        node: telemetry.publish_node_metrics,
        allocations: telemetry.publish_allocation_metrics,
    };
    let local = node.local();
    figures.come_from(telemetry.collection_interval.to_std(), move || {
        let local = local.clone();
        Box::pin(async move { ::node::figures::read(&local, published).await })
    });
}

/// Why the server cannot go on. Stays pending in an agent without a server.
async fn halted(server: Option<&Server>) -> Halted {
    match server {
        Some(server) => server.halted().await,
        None => std::future::pending().await,
    }
}

/// The error when no server could be joined within the allowed attempts.
async fn given_up(server: Option<&Server>) -> String {
    let Some(server) = server else { return std::future::pending().await };
    match server.cluster.given_up().wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => std::future::pending().await,
    }
}

/// The data directory. That of a development agent is temporary and removed with it.
struct DataDir {
    path: PathBuf,
    temporary: bool,
}

impl DataDir {
    fn make(settings: &AgentSettings) -> anyhow::Result<DataDir> {
        let (path, temporary) = match &settings.data_dir {
            Some(path) => (path.clone(), false),
            None => (std::env::temp_dir().join(format!("sojourn-dev-{}", std::process::id())), true),
        };
        // Tasks that run as other users must reach their directories below it.
        let made = std::fs::DirBuilder::new().mode(0o711).recursive(!temporary).create(&path);
        made.with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(DataDir { path, temporary })
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        // What a volume holds that is still mounted must not be removed with it.
        let unmounted = ::node::layout::unmount_below(&self.path, |_| true);
        if let Err(error) = unmounted.and_then(|()| std::fs::remove_dir_all(&self.path)) {
            tracing::warn!(path = %self.path.display(), %error, "the temporary directory stays behind");
        }
    }
}

/// The servers of the node: the configured ones, or the one in this process.
fn servers(settings: &AgentSettings) -> Vec<String> {
    let given = &settings.client.servers;
    if given.is_empty() {
        let ip = settings.rpc_ip();
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        return vec![SocketAddr::new(ip, settings.ports.rpc).to_string()];
    }
    given.iter().map(|server| with_port(server, 4647)).collect()
}

/// The address that is advertised for a port of this agent.
fn advertised(given: Option<&str>, ip: IpAddr, port: u16) -> anyhow::Result<String> {
    match given {
        Some(given) => Ok(with_port(given, port)),
        None if ip.is_unspecified() => Ok(SocketAddr::new(outward_ip()?, port).to_string()),
        None => Ok(SocketAddr::new(ip, port).to_string()),
    }
}

/// The address of this host that leads outward. Connecting a UDP socket picks it and sends nothing.
fn outward_ip() -> anyhow::Result<IpAddr> {
    let outside = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 9));
    let find = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(outside)?;
        socket.local_addr()
    };
    Ok(find().context("this host has no outward address: set advertise or bind_addr")?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_uses_the_server_of_its_own_process() {
        let mut settings = AgentSettings::dev();
        assert_eq!(servers(&settings), ["127.0.0.1:4647"]);
        settings.bind_addr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert_eq!(servers(&settings), ["127.0.0.1:4647"]);
        settings.client.servers = vec!["a".to_string(), "b:1".to_string()];
        assert_eq!(servers(&settings), ["a:4647", "b:1"]);
    }

    #[test]
    fn the_directory_of_a_development_agent_goes_with_it() {
        let home = DataDir::make(&AgentSettings::dev()).unwrap();
        let path = home.path.clone();
        assert!(path.is_dir());
        drop(home);
        assert!(!path.exists());
    }
}
