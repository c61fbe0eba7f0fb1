use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::{Time, Uuid};
use control::Control;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use history::History;
use http_gateway::events::Feed;
use http_gateway::{AgentInfo, Api};
use model::{Autopilot, NodeId};
use raft::RaftJournal;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::{self, Cluster};
use crate::gossip;
use crate::link::Link;
use crate::lone::Lone;
use crate::rpc::Rpc;
use crate::servers::Servers;
use crate::sessions::Sessions;
use crate::snapshot_file;

/// How long open answers may take to end when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// This server's number among the voters. A single server is a cluster of one.
const RAFT_NODE: u64 = 1;

#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub region: String,
    pub datacenter: String,
    /// Holds everything the server keeps.
    pub data_dir: PathBuf,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    /// `HOST:PORT` that others are told; unset means the bound address.
    pub advertise_http: Option<String>,
    pub advertise_rpc: Option<String>,
    /// The node this agent runs besides the server, if it does.
    pub node: Option<NodeId>,
    pub heartbeats: HeartbeatSettings,
    pub broker: BrokerSettings,
    pub workers: usize,
    pub segment_bytes: u64,
    /// Our release.
    pub version: String,
    /// The configuration as `agent/self` shows it, without secrets.
    pub config: Map<String, Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot use the data directory {path}")]
    Data { path: PathBuf, source: io::Error },
    #[error("cannot open the log")]
    Log(#[from] raft::OpenError),
    #[error("cannot open the history index")]
    History(#[from] history::HistoryError),
    #[error("cannot listen on {address}: is another agent running there?")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A running server.
pub struct Server {
    pub control: Control,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    log: Arc<RaftJournal>,
    events: Feed,
    history: Arc<History>,
    stop: watch::Sender<bool>,
    http_task: JoinHandle<()>,
    rpc_task: JoinHandle<()>,
}

impl Server {
    /// Opens the log, folds it, and begins to listen. The server answers before it leads; what needs a leader
    /// waits for that.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub async fn start(settings: Settings) -> Result<Server, StartError> {
        let http = listen(settings.http).await?;
        let rpc = listen(settings.rpc).await?;
        let dir = settings.data_dir.join("server");
        let server = server_id(&dir).map_err(|source| StartError::Data { path: dir.clone(), source })?;
        let starting = control::prepare(control_settings(&settings, server));
        let log = raft::Settings {
            dir: dir.join("log"),
            node: RAFT_NODE,
            address: advertised(settings.advertise_rpc.as_ref(), &rpc),
            segment_bytes: settings.segment_bytes,
            retention: raft::RETENTION,
            tail: raft::TAIL,
            found: raft::Found::Alone,
            timings: raft::Timings::default(),
            seed: seed(),
        };
        let runtime = tokio::runtime::Handle::current();
        let servers = Servers::default();
        let log = RaftJournal::open(log, Arc::new(raft::NoPeers), starting.inbox.clone(), &runtime).await?;
        let control = starting.start(log.clone(), Arc::new(servers.clone()), &runtime);
        let history = History::open(Some(dir.join("history")), log.clone())?;
        let sessions = Sessions::default();
        let events = Feed::new(control.clone());
        let (stop, stopping) = watch::channel(false);
        let addresses = (bound(&http), bound(&rpc));
        let lone = Arc::new(Lone { log: log.clone(), control: control.clone() });
        let cluster = cluster(&settings, server, (&http, &rpc), &lone);
        let api = Api {
            control: control.clone(),
            cluster: Arc::new(cluster),
            snapshots: Arc::new(snapshot_file::Files(lone)),
            node_link: Arc::new(Link { sessions: sessions.clone() }),
            events: events.clone(),
            history: history.clone(),
            agent: agent_info(&settings, server, (&http, &rpc)),
        };
        let handler = Rpc {
            control: control.clone(),
            sessions,
            datacenter: settings.datacenter,
            advertise: addresses.1,
        };
        let rpc_task = tokio::spawn(wire::serve(rpc, Arc::new(handler), wire::Limits::SERVER));
        let http_task = tokio::spawn(serve_http(http, http_gateway::router(api), stopping));
        Ok(Server {
            control,
            http: addresses.0,
            rpc: addresses.1,
            log,
            events,
            history,
            stop,
            http_task,
            rpc_task,
        })
    }

    /// Waits until the server cannot go on, and says why.
    pub async fn halted(&self) -> String {
        let mut halted = self.control.halted();
        match halted.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the sequencer is gone".to_string(),
        }
    }

    /// Ends open answers, stops the loops and closes the log.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        self.events.close();
        self.rpc_task.abort();
        let http = self.http_task.abort_handle();
        if tokio::time::timeout(DRAIN_MAX, self.http_task).await.is_err() {
            http.abort();
        }
        let (control, history) = (self.control, self.history);
        let stopped = tokio::task::spawn_blocking(move || {
            control.shutdown();
            history.shutdown();
        });
        if stopped.await.is_err() {
            tracing::error!("the loops did not stop cleanly");
        }
        self.log.shutdown().await;
    }
}

async fn serve_http(listener: TcpListener, router: axum::Router, mut stopping: watch::Receiver<bool>) {
    let stopped = async move {
        // A dropped sender is a server that is gone.
        let _gone = stopping.wait_for(|stop| *stop).await;
    };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
        tracing::error!(%error, "the HTTP server ended");
    }
}

fn control_settings(settings: &Settings, server: Uuid) -> control::Settings {
    control::Settings {
        server,
        heartbeats: settings.heartbeats.clone(),
        broker: settings.broker.clone(),
        workers: settings.workers,
        rpc_hold: base::Duration::from_secs(5),
    }
}

fn agent_info(settings: &Settings, server: Uuid, (http, rpc): (&TcpListener, &TcpListener)) -> AgentInfo {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    AgentInfo {
        name: settings.name.clone(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        server,
        node: settings.node,
        http_addr: advertised(settings.advertise_http.as_ref(), http),
        rpc_addr: advertised(settings.advertise_rpc.as_ref(), rpc),
        version: settings.version.clone(),
        started: Time::ZERO.plus(since.into()),
        config: settings.config.clone(),
        prometheus: true,
    }
}

fn cluster(
    settings: &Settings,
    id: Uuid,
    (http, rpc): (&TcpListener, &TcpListener),
    lone: &Arc<Lone>,
) -> Cluster {
    let own = gossip::Member {
        id,
        generation: 1,
        number: RAFT_NODE,
        name: settings.name.clone(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        serf: bound(rpc),
        rpc: advertised(settings.advertise_rpc.as_ref(), rpc),
        http: advertised(settings.advertise_http.as_ref(), http),
        version: settings.version.clone(),
        bootstrap_expect: 1,
        has_log: true,
        parting: gossip::Parting::Staying,
    };
    let settings = cluster::Settings {
        own,
        joins: cluster::Joins::default(),
        peers: Vec::new(),
        autopilot: Autopilot::default(),
        timings: cluster::Timings::default(),
    };
    Cluster::start(settings, lone.clone(), lone.clone(), lone.clone(), None)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

fn bound(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}

fn advertised(wanted: Option<&String>, listener: &TcpListener) -> String {
    wanted.cloned().unwrap_or_else(|| bound(listener).to_string())
}

/// What the log's chance starts from.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    u64::from_le_bytes(bytes)
}

/// The server's own id: drawn once, then kept beside its log.
fn server_id(dir: &Path) -> io::Result<Uuid> {
    std::fs::create_dir_all(dir)?;
    let path = dir.join("server-id");
    match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            let id = Uuid::from_random(bytes);
            let draft = dir.join("server-id.new");
            std::fs::write(&draft, format!("{id}\n"))?;
            std::fs::File::open(&draft)?.sync_all()?;
            std::fs::rename(&draft, &path)?;
            Ok(id)
        }
        Err(error) => Err(error),
    }
}
