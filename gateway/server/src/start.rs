use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::{Index, Time, Uuid};
use control::Control;
use feed::Feed;
use history::History;
use http_gateway::AccessSettings;
use http_gateway::events;
use http_gateway::{AgentInfo, Api};
use journal::store::StoreError;
use keyring::{ServerSecret, Signer, VerifiedTokens};
use raft::RaftJournal;
use sinks::Sinks;
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::RpcSecurity;

use crate::claims;
use crate::cluster::{self, Cluster};
use crate::consensus::RaftConsensus;
use crate::dropped_history;
use crate::gossip::{self, Gossip};
use crate::gossip_keyring;
use crate::identity;
use crate::key_trees::Keeper;
use crate::log_files::LogFiles;
use crate::lost_tail::{self, LostTail};
use crate::node_connections::NodeConnections;
use crate::node_router::NodeRouter;
use crate::open_log::open_log;
use crate::peers_file::PeersFileError;
use crate::published_state::PublishedState;
use crate::region_links::RegionLinks;
use crate::release::Release;
use crate::replication::Replication;
use crate::rollouts::Rollouts;
use crate::root_keys;
use crate::rpc::{self, Rpc};
use crate::scrub::Scrub;
use crate::server_calls::ServerCalls;
use crate::server_connections::ServerConnections;
use crate::settings::{ClusterSettings, GossipSettings, Settings};
use crate::snapshot_file;

/// How long open answers may take to end when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How long to wait before the leader is asked again for the state, after it did not send it.
const REFETCH_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot use the data directory {path}")]
    Data { path: PathBuf, source: io::Error },
    #[error("cannot open the log")]
    Log(#[from] raft::OpenError),
    #[error("cannot follow {path}")]
    Peers { path: PathBuf, source: PeersFileError },
    /// A lone server goes no further by itself: part of what it acknowledged is gone.
    #[error(
        "the log in {path} is damaged, and there is no other server to fetch it from: it is left as it is. \
         Put back a copy of the directory, or look what can be kept with: sojourn operator log repair {path}"
    )]
    Damaged { path: PathBuf, source: StoreError },
    /// As [`StartError::Damaged`], and nothing is left that could be repaired.
    #[error(
        "the log in {path} ends with batch {kept}, and its history has seen batch {seen}: what was acknowledged after batch \
         {kept} is lost, and there is no other server to fetch it from. Put back a copy of the directory, or accept the \
         loss with: sojourn operator log repair -accept-loss {path}", kept = lost.kept, seen = lost.seen
    )]
    LostTail { path: PathBuf, lost: LostTail },
    #[error("cannot read the log in the background")]
    Scrub(#[source] io::Error),
    #[error("history.archive: {0}")]
    Archive(String),
    #[error("cannot gossip")]
    Gossip(#[from] gossip::GossipError),
    #[error("cannot open the history index")]
    History(#[from] history::HistoryError),
    #[error("cannot listen on {address}: is another agent running there?")]
    Listen { address: SocketAddr, source: io::Error },
}

/// Why a server cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halted {
    pub why: String,
    /// Started again it can: it puts its log aside, and has others to fetch everything from.
    pub again: bool,
}

/// A running server.
pub struct Server {
    pub control: Control,
    pub cluster: Cluster,
    pub history: Arc<History>,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    log: Arc<RaftJournal>,
    /// `None` if it shall not be read again.
    scrub: Option<Scrub>,
    has_others: bool,
    events: Feed,
    stop: watch::Sender<bool>,
    http_task: JoinHandle<()>,
    /// What else goes on for as long as the server runs.
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the log, folds it, and begins to listen. The server answers before it leads; what needs a leader
    /// waits for that.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running.
    pub async fn start(settings: Settings) -> Result<Server, StartError> {
        let http = listen(settings.http)?;
        let rpc = listen(settings.rpc)?;
        let dir = settings.data_dir.join("server");
        let data = |source| StartError::Data { path: dir.clone(), source };
        let server = identity::server_id(&dir).map_err(data)?;
        let secret = identity::server_secret(&dir).map_err(data)?;
        let secret = ServerSecret::new(server, &secret).map_err(|why| data(io::Error::other(why)))?;
        let signer = Arc::new(Signer::new(secret).with_issuer(settings.oidc_issuer.clone()));
        let key_trees = Keeper::open_files(&dir, &signer).map_err(data)?;
        let first_index = identity::first_index(&dir).map_err(data)?;
        let starting = control::prepare(control_settings(&settings, server, first_index));
        let security = RpcSecurity::new(settings.tls.clone(), &settings.region);
        let keyring =
            gossip_keyring::open(settings.cluster.gossip.as_ref(), &dir, &security).map_err(data)?;
        let (runtime, servers) = (Handle::current(), ServerConnections::new(security.clone()));
        let address = advertised(settings.advertise_rpc.as_ref(), &rpc);
        let log = open_log(&settings, &dir, address, &servers, &starting.inbox).await?;
        servers.lookup_by(Box::new({
            let log = Arc::downgrade(&log);
            move |number| {
                let members = log.upgrade()?.status().members;
                members.into_iter().find(|member| member.node == number).map(|member| member.address)
            }
        }));
        let control = starting.start(log.clone(), Arc::new(servers.clone()), &runtime);
        tokio::spawn(refetch(control.clone(), log.clone()));
        let joining = Joining { server, keyring, security: security.clone() };
        let cluster = cluster(&settings, joining, (&http, &rpc), &log, &control, &servers).await?;
        let states = http_gateway::events::states(control.clone());
        let dir_of_history = Some(lost_tail::history_dir(&dir));
        let history = History::open(dir_of_history, log.clone(), states, settings.history.memory)?;
        let connections = NodeConnections::default();
        let version = settings.version.clone();
        let states = Arc::new(PublishedState { control: control.clone(), log: log.clone(), version });
        let nodes = NodeRouter { connections, servers: servers.clone(), log: Arc::downgrade(&log) };
        let events = events::feed(control.clone());
        let (stop, stopping) = watch::channel(false);
        let addresses = (bound(&http), bound(&rpc));
        let advertise = advertised(settings.advertise_rpc.as_ref(), &rpc);
        let (scrub, has_others) = (scrub(&settings, log.clone())?, settings.cluster.has_others());
        let rpc_stats = rpc::announced();
        let figures = sinks::Figures::default();
        let regions = Arc::new(RegionLinks::new(cluster.clone(), servers.clone()));
        let replication = Replication {
            control: control.clone(),
            links: regions.clone(),
            signer: signer.clone(),
            settings: settings.followed(),
        };
        let rollouts =
            Rollouts { control: control.clone(), links: regions.clone(), region: settings.region.clone() };
        let api = Api {
            control: control.clone(),
            node_rpc: Arc::new(nodes.clone()),
            cluster: Arc::new(cluster.clone()),
            regions: regions.clone(),
            snapshots: Arc::new(snapshot_file::SnapshotFiles(states)),
            history_files: Arc::new(LogFiles(log.clone())),
            events: events.clone(),
            history: history.clone(),
            log: settings.log.clone(),
            audit: settings.audit.clone(),
            signer: signer.clone(),
            introduction: settings.introduction.clone(),
            rpc_stats: rpc_stats.clone(),
            node_figures: settings.node_figures.clone(),
            node_routes: settings.node_routes.clone(),
            sinks: figures.reports.clone(),
            sink_samples: figures.samples.clone(),
            job_count_max: settings.job_count_max,
            identities: settings.identities.clone(),
            agent: agent_info(&settings, &dir, server, (&http, &rpc)),
        };
        let limits = settings.limits;
        let (router, gate) = http_gateway::router(api);
        let handler = Rpc {
            control: control.clone(),
            nodes,
            server_calls: ServerCalls::new(security.clone()),
            log: log.clone(),
            cluster: cluster.clone(),
            region: settings.region,
            datacenter: settings.datacenter,
            signer: signer.clone(),
            verified: VerifiedTokens::default(),
            introduction: settings.introduction,
            advertise,
            agent_log: settings.log,
            http: router.clone(),
            storage: gate.storage(),
            gate,
            polls: Default::default(),
            rpc_stats,
            unknown_calls: Default::default(),
            stopping: stopping.clone(),
        };
        let sinks = Sinks {
            control: control.clone(),
            events: events.clone(),
            history: history.clone(),
            signer: signer.clone(),
            directory: dir.join("sinks"),
            addresses: settings.sink_addresses,
            figures,
        };
        let keeper = Keeper {
            control: control.clone(),
            signer: signer.clone(),
            files: key_trees,
            cluster: Arc::new(cluster.clone()),
        };
        let tasks = vec![
            tokio::spawn(sinks.keep()),
            tokio::spawn(replication.keep()),
            tokio::spawn(rollouts.keep()),
            tokio::spawn(keeper.keep()),
            tokio::spawn(root_keys::keep(control.clone(), signer, settings.root_keys.clone())),
            tokio::spawn(claims::keep(control.clone(), handler.storage.clone())),
            tokio::spawn(dropped_history::keep(
                control.clone(),
                log.clone(),
                settings.name.clone(),
                settings.history.archive.is_some(),
            )),
            tokio::spawn(wire::serve(rpc, security, Arc::new(handler), limits.rpc)),
        ];
        let http_task = tokio::spawn(listener::serve(
            http,
            router,
            listener::Connections {
                handshake_timeout: limits.https_handshake,
                ..listener::Connections::new(settings.tls, limits.http)
            },
            stopping,
        ));
        Ok(Server {
            control,
            cluster,
            http: addresses.0,
            rpc: addresses.1,
            log,
            scrub,
            has_others,
            events,
            history,
            stop,
            http_task,
            tasks,
        })
    }

    /// Waits until the server cannot go on, and returns why.
    pub async fn halted(&self) -> Halted {
        let mut halted = self.control.halted();
        let stopped = async {
            match halted.wait_for(Option::is_some).await {
                Ok(why) => why.clone().unwrap_or_default(),
                Err(_) => "the sequencer is gone".to_string(),
            }
        };
        let damaged = async {
            match &self.scrub {
                Some(scrub) => scrub.damage().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = stopped => Halted { why, again: false },
            why = damaged => Halted { why, again: self.has_others },
        }
    }

    /// Ends open answers, stops the loops and closes the log.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        self.events.close();
        self.tasks.iter().for_each(JoinHandle::abort);
        let http = self.http_task.abort_handle();
        if tokio::time::timeout(DRAIN_MAX, self.http_task).await.is_err() {
            http.abort();
        }
        let (control, history, scrub) = (self.control, self.history, self.scrub);
        let stopped = tokio::task::spawn_blocking(move || {
            if let Some(scrub) = scrub {
                scrub.stop();
            }
            control.shutdown();
            history.shutdown();
        });
        if stopped.await.is_err() {
            tracing::error!("the loops did not stop cleanly");
        }
        self.log.shutdown().await;
    }
}

fn control_settings(settings: &Settings, server: Uuid, first_index: Index) -> control::Settings {
    control::Settings {
        first_index,
        job_count_max: settings.job_count_max,
        notes: Some(settings.data_dir.join("server")),
        server,
        heartbeats: settings.heartbeats.clone(),
        garbage: settings.garbage.clone(),
        scheduler: settings.scheduler.clone(),
        broker: settings.broker.clone(),
        workers: settings.workers,
        rpc_hold: base::Duration::from_secs(5),
    }
}

/// Holds the index of the first token while it may be made again, in the data directory of a server.
const ACL_RESET_FILE: &str = "acl-bootstrap-reset";

fn agent_info(
    settings: &Settings,
    dir: &Path,
    server: Uuid,
    (http, rpc): (&TcpListener, &TcpListener),
) -> AgentInfo {
    AgentInfo {
        name: settings.name.clone(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        server,
        node: settings.node,
        http_addr: advertised(settings.advertise_http.as_ref(), http),
        rpc_addr: advertised(settings.advertise_rpc.as_ref(), rpc),
        version: settings.version.clone(),
        started: Time::ZERO.plus(since_1970().into()),
        config: settings.config.clone(),
        authoritative_region: settings.followed().authoritative_region,
        access: AccessSettings { reset_file: Some(dir.join(ACL_RESET_FILE)), ..settings.access.clone() },
        proxies: settings.limits.http.proxies.clone(),
        debug: settings.debug,
        prometheus: settings.prometheus,
        metrics_host: settings.metrics_host,
        ui: settings.ui,
        ui_folder: settings.ui_folder.clone(),
        response_headers: settings.response_headers.clone(),
    }
}

// Every read that may wait has its connection, and there are as many for everything else.
const _: () = assert!(listener::CONNECTIONS_MAX >= 2 * http_gateway::WAITING_READS_MAX);

fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    listener::listen(address).map_err(|source| StartError::Listen { address, source })
}

fn bound(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}

fn advertised(wanted: Option<&String>, listener: &TcpListener) -> String {
    wanted.cloned().unwrap_or_else(|| bound(listener).to_string())
}

/// Reads the log again in the background, if that is wanted.
fn scrub(settings: &Settings, log: Arc<RaftJournal>) -> Result<Option<Scrub>, StartError> {
    let Some(every) = settings.scrub_every else { return Ok(None) };
    let (path, has_others) = (settings.data_dir.clone(), settings.cluster.has_others());
    let report = move |source: StoreError| {
        if let Err(error) = identity::suspect(&path.join("server"), &source.to_string()) {
            tracing::error!(%error, "the damage of the log cannot be noted: a start may pass it by");
        }
        match has_others {
            true => format!("{source}: it is put aside, and this server gets everything from the others"),
            false => {
                let damaged = StartError::Damaged { path, source };
                damaged.source().map_or_else(String::new, |source| format!("{source}: "))
                    + &damaged.to_string()
            }
        }
    };
    Scrub::start(log, every, report).map(Some).map_err(StartError::Scrub)
}

/// Gets the cluster's state whenever this server's own turns out to be another one.
async fn refetch(control: Control, log: Arc<RaftJournal>) {
    let mut diverged = control.diverged();
    while diverged.wait_for(Option::is_some).await.is_ok() {
        if let Err(why) = fetch_anew(&control, &log).await {
            tracing::warn!(why, "this server does not have the cluster's state yet: asking again");
        }
        // Until what was sent is folded, or it is time to ask again.
        let _either = tokio::time::timeout(REFETCH_AGAIN, diverged.wait_for(Option::is_none)).await;
    }
}

/// Gets the state from a leader whose state is the cluster's, as it is now.
async fn fetch_anew(control: &Control, log: &RaftJournal) -> Result<(), String> {
    let status = log.status();
    if status.leader == Some(status.node) {
        log.transfer(None).await.map_err(|error| error.to_string())?;
    }
    control.have_leader_keep_image().await?;
    log.refetch().await.map_err(|error| error.to_string())
}

/// What a server shows of itself to others.
struct Joining {
    server: Uuid,
    keyring: gossip::Keyring,
    security: RpcSecurity,
}

/// Begins to look for other servers.
async fn cluster(
    settings: &Settings,
    Joining { server, keyring, security }: Joining,
    (http, rpc): (&TcpListener, &TcpListener),
    log: &Arc<RaftJournal>,
    control: &Control,
    servers: &ServerConnections,
) -> Result<Cluster, StartError> {
    let ClusterSettings { bootstrap_expect, gossip, joins, peers, autopilot, raise_epoch, .. } =
        settings.cluster.clone();
    let socket = match &gossip {
        None => None,
        Some(GossipSettings { address, .. }) => {
            let listen = |source| StartError::Listen { address: *address, source };
            Some(UdpSocket::bind(address).await.map_err(listen)?)
        }
    };
    let status = log.status();
    let port = socket.as_ref().and_then(|socket| socket.local_addr().ok()).map_or(0, |bound| bound.port());
    let mut serf = gossip.as_ref().map_or_else(|| bound(rpc), |gossip| gossip.advertise);
    if gossip.is_some() && serf.port() == 0 {
        serf.set_port(port);
    }
    let own = gossip::Member {
        id: server,
        generation: since_1970().as_millis().try_into().unwrap_or(u64::MAX),
        number: status.node,
        name: settings.name.clone(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        serf,
        rpc: advertised(settings.advertise_rpc.as_ref(), rpc),
        http: advertised(settings.advertise_http.as_ref(), http),
        version: Release::own(&settings.version),
        bootstrap_expect,
        has_log: status.has_log,
        parting: gossip::Parting::Staying,
    };
    let gossip = match (gossip, socket) {
        (Some(_), Some(socket)) => {
            let data = |source| StartError::Data { path: settings.data_dir.clone(), source };
            let save = gossip_keyring::keeper(settings.data_dir.join("server"), security);
            let seed = identity::seed().map_err(data)?;
            let timings = gossip::Timings::default();
            let gossip_settings = gossip::Settings { own: own.clone(), keyring, timings, seed };
            Some(Gossip::start(gossip_settings, save, socket)?)
        }
        _ => None,
    };
    let timings = cluster::Timings::default();
    let looks = cluster::Settings { own, joins, peers, autopilot, raise_epoch, timings };
    let consensus = Arc::new(RaftConsensus(log.clone()));
    Ok(Cluster::start(looks, consensus, Arc::new(servers.clone()), Arc::new(control.clone()), gossip))
}

pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
