//! The settings of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use audit::Audit;
use control::GarbageSettings;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use delivery::AddressRules;
use http_gateway::{AccessSettings, NodeRoutes, PageFolder};
use keyring::{IntroductionSettings, RootKeySettings};
use listener::AddressLimit;
use metrics::NodeFigures;
use model::event::ObjectKinds;
use model::{Autopilot, NodeId, SchedulerRules};
use monitor::{AgentConfig, Monitor};
use raft::{Retention, Tail};
use tls::AgentTls;

use crate::cluster::Joins;
use crate::gossip;

#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub region: String,
    pub datacenter: String,
    /// Holds everything the server keeps.
    pub data_dir: PathBuf,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    /// `HOST:PORT` that is advertised to others; unset means the bound address.
    pub advertise_http: Option<String>,
    pub advertise_rpc: Option<String>,
    /// The node this agent runs besides the server, if it does.
    pub node: Option<NodeId>,
    pub heartbeats: HeartbeatSettings,
    pub garbage: GarbageSettings,
    /// Which nodes may register for the first time.
    pub introduction: IntroductionSettings,
    pub access: AccessSettings,
    /// When root keys are replaced and removed.
    pub root_keys: RootKeySettings,
    /// The address under which others find the public keys of the cluster; the same on all servers, which sign the same.
    pub oidc_issuer: Option<String>,
    /// How the scheduler of a new cluster works; later changes are in the log.
    pub scheduler: SchedulerRules,
    pub broker: BrokerSettings,
    /// Most allocations that a job may ask for.
    pub job_count_max: i64,
    /// What is added to jobs that are registered.
    pub identities: http_gateway::ImpliedIdentities,
    pub workers: usize,
    pub segment_bytes: u64,
    /// How often the whole log is read again to find damage; `None` never does.
    pub scrub_every: Option<Duration>,
    pub history: HistorySettings,
    pub cluster: ClusterSettings,
    pub federation: FederationSettings,
    /// Certificates, if there are some.
    pub tls: Option<Arc<AgentTls>>,
    /// Our release.
    pub version: String,
    pub config: Arc<dyn AgentConfig>,
    /// What this process logs, for those who follow it.
    pub log: Monitor,
    /// Where requests are recorded, if they are.
    pub audit: Option<Arc<Audit>>,
    pub limits: Limits,
    /// What the host looks like may be shown over HTTP.
    pub debug: bool,
    /// Metrics are also given in the text form of Prometheus.
    pub prometheus: bool,
    /// Metrics say which agent they come from.
    pub metrics_host: bool,
    /// The web page is served.
    pub ui: bool,
    /// In place of our own.
    pub ui_folder: Option<PageFolder>,
    /// The metrics of the node in the same process, once there is one.
    pub node_figures: NodeFigures,
    /// What that node answers itself over HTTP.
    pub node_routes: NodeRoutes,
    /// Which addresses sinks of the event stream may send to.
    pub sink_addresses: AddressRules,
    /// Put on every answer of the HTTP API.
    pub response_headers: BTreeMap<String, String>,
}

impl Settings {
    /// What another region decides for this one. Without access control each region decides for itself, and so does the one
    /// that decides for the others.
    pub(crate) fn followed(&self) -> FederationSettings {
        let decides = self.federation.authoritative_region == self.region;
        if decides || !self.access.enabled { FederationSettings::default() } else { self.federation.clone() }
    }
}

/// Bytes that kept facts may take by default.
pub const KEEP_MAX_BYTES: u64 = 1 << 30;

/// How much of the past is kept, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    /// Bytes that states of the past may take, about.
    pub memory: usize,
    /// Of the log.
    pub retention: Retention,
    /// Where segments go that the log does not keep.
    pub archive: Option<Archive>,
    /// Kinds of facts that stay when the rest of history goes, and the bytes that they may take.
    pub keep: ObjectKinds,
    pub keep_max_bytes: u64,
    /// What stays for followers that are a little behind; [`raft::TAIL`] but for tests.
    pub tail: Tail,
}

/// Where segments go that the log does not keep, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub place: ArchivePlace,
    /// Of its files; without it the place is the limit.
    pub max_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePlace {
    /// Made if it is not there; used by one process at a time.
    Folder(PathBuf),
    /// Each server has a part of it, by its own id.
    Bucket(Box<bucket::Settings>),
}

impl Archive {
    pub fn in_folder(path: impl Into<PathBuf>, max_bytes: Option<u64>) -> Archive {
        Archive { place: ArchivePlace::Folder(path.into()), max_bytes }
    }
}

impl Default for HistorySettings {
    fn default() -> HistorySettings {
        HistorySettings {
            memory: history::MEMORY,
            retention: raft::RETENTION,
            archive: None,
            keep: ObjectKinds::NONE,
            keep_max_bytes: KEEP_MAX_BYTES,
            tail: raft::TAIL,
        }
    }
}

/// What this region has of another one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FederationSettings {
    /// The region that decides for all of them; empty where each decides for itself.
    pub authoritative_region: String,
    /// A management token of that region, with which its decisions are read; empty where they are not.
    pub replication_token: String,
}

impl FederationSettings {
    /// There is something to follow.
    pub(crate) fn follows(&self) -> bool {
        !self.authoritative_region.is_empty() && !self.replication_token.is_empty()
    }
}

/// The token is not printed.
impl fmt::Debug for FederationSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "authoritative region {:?}", self.authoritative_region)
    }
}

/// What one address may take of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// HTTP connections at the same time.
    pub http: AddressLimit,
    /// How long the TLS handshake of an HTTP connection may take.
    pub https_handshake: Duration,
    pub rpc: wire::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        let https_handshake = listener::HANDSHAKE_TIMEOUT;
        Limits { http: AddressLimit::default(), https_handshake, rpc: wire::Limits::SERVER }
    }
}

/// How this server finds others.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Servers that found a cluster together; 1 founds alone, 0 waits to be added.
    pub bootstrap_expect: u32,
    pub gossip: Option<GossipSettings>,
    pub joins: Joins,
    /// `HOST:PORT` of servers' RPC that are asked directly, without gossip.
    pub peers: Vec<String>,
    /// What the autopilot begins with.
    pub autopilot: Autopilot,
    /// The leader raises the cluster's epoch by itself.
    pub raise_epoch: bool,
    /// How servers find out that a leader is gone.
    pub timings: raft::Timings,
}

#[derive(Clone, Debug)]
pub struct GossipSettings {
    pub address: SocketAddr,
    /// What is advertised to others; the port 0 stands for the one that was bound.
    pub advertise: SocketAddr,
    /// What the keyring of a server begins with; later the keyring in its data directory counts.
    pub key: Option<gossip::Key>,
}

impl ClusterSettings {
    /// A server that founds a cluster of itself and talks to no other.
    pub fn alone() -> ClusterSettings {
        ClusterSettings {
            bootstrap_expect: 1,
            gossip: None,
            joins: Joins::default(),
            peers: Vec::new(),
            autopilot: Autopilot::default(),
            raise_epoch: true,
            timings: raft::Timings::default(),
        }
    }

    /// There are others that have what this one may lose. Addresses to join say nothing of that: they may be those of other
    /// regions, and a server that founds alone would found anew without its log.
    pub(crate) fn has_others(&self) -> bool {
        self.bootstrap_expect != 1 || !self.peers.is_empty()
    }
}
