//! A server among servers: how it finds the others, founds a cluster with them or waits to be added, and what the
//! leader does about those who come and go.
//!
//! `forming.rs` and [`crate::autopilot`] hold the rules, without a clock. `join.rs` looks for servers, `found.rs`
//! founds, `lead.rs` follows the autopilot while this server leads, `admin.rs` answers operators, with
//! the leader's help where that is needed (`admin_request.rs`).

mod admin;
mod admin_request;
mod forming;
mod found;
mod join;
mod lead;
mod roster;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Term, Uuid};
use control::SubmitError;
use futures_util::future::BoxFuture;
use http_gateway::ClusterError;
use metrics::Samples;
use model::Autopilot;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::autopilot::{self, Health};
use crate::gossip::{Gossip, Member};
pub use admin_request::{AdminRequest, AdminResponse};
use forming::FounderPromise;
pub use join::{AddressError, Joins, resolve};
use roster::ContactedServer;

/// What the cluster asks of consensus.
pub trait Consensus: Send + Sync + 'static {
    fn status(&self) -> Status;

    /// Founds a cluster of these voters; harmless if one is founded.
    fn bootstrap(&self, members: Vec<raft::Member>) -> BoxFuture<'_, Result<(), ConsensusError>>;

    /// Has a server catch up and vote; a member that is reached elsewhere by now gets its new address. On the
    /// leader only.
    fn add(&self, member: raft::Member, patience: Duration) -> BoxFuture<'_, Result<(), ConsensusError>>;

    /// On the leader only; removing the leader transfers first.
    fn remove(&self, number: u64) -> BoxFuture<'_, Result<(), ConsensusError>>;

    /// Returns the new leader once it leads; without a target the best one is chosen. On the leader only.
    fn transfer(&self, to: Option<u64>) -> BoxFuture<'_, Result<u64, ConsensusError>>;
}

/// Why consensus did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConsensusError(pub String);

/// Who leads and who takes part, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub own: u64,
    pub term: Term,
    pub leader: Option<u64>,
    /// A cluster was founded here, or sent its log.
    pub has_log: bool,
    /// Raft's number of the last entry, committed or not.
    pub last_entry: u64,
    /// Messages of other servers that consensus did not believe, since the start.
    pub dropped: u64,
    /// What only the leader knows of them is absent elsewhere.
    pub peers: Vec<autopilot::Peer>,
}

impl Status {
    pub fn leads(&self) -> bool {
        self.leader == Some(self.own)
    }
}

/// What became of an order.
pub type AdminResult = Result<AdminResponse, ClusterError>;

/// Carries a query to a server's RPC address.
pub trait PeerClient: Send + Sync + 'static {
    fn query(&self, address: String, query: PeerQuery)
    -> BoxFuture<'static, Result<PeerInfo, PeerCallError>>;

    /// The inner result is what that server answered.
    fn admin(
        &self,
        address: String,
        request: AdminRequest,
    ) -> BoxFuture<'static, Result<AdminResult, PeerCallError>>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerCallError(pub String);

/// "Who are you, and may I found a cluster with you?"
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeerQuery {
    /// Who asks, so that a server on a static list is known to those it asks.
    pub asker: Option<PeerInfo>,
    /// The number of the server that wants to found; 0 only asks for a description.
    pub founder: u64,
    /// Also asks how far back its history goes, which it has to look up.
    pub history: bool,
}

/// "This is who I am."
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeerInfo {
    #[serde(rename = "ID")]
    pub id: String,
    pub number: u64,
    pub name: String,
    pub region: String,
    pub datacenter: String,
    pub address: String,
    #[serde(rename = "HTTP")]
    pub http: String,
    pub version: String,
    pub expect: u32,
    pub has_log: bool,
    /// The founder is agreed to, and no other one will be for half a minute.
    pub agrees: bool,
    /// The oldest index of which it has the state; zero unless that was asked for.
    pub oldest: u64,
}

/// What the log has of how the servers work together.
pub trait ClusterFacts: Send + Sync + 'static {
    /// `None` before anybody set one.
    fn autopilot(&self) -> Option<Autopilot>;

    /// Sets it if none is set. Only the leader asks; it asks again if this fails.
    fn begin_autopilot(&self, rules: Autopilot) -> BoxFuture<'_, Result<(), SubmitError>>;

    /// The cluster's epoch.
    fn epoch(&self) -> u16;

    /// Only the leader asks, which has made sure that every server knows it.
    fn raise_epoch(&self, epoch: u16) -> BoxFuture<'_, Result<(), SubmitError>>;
}

/// How often things are looked at. Shorter reacts sooner.
#[derive(Clone, Debug)]
pub struct Timings {
    /// Whether a cluster can be founded, and servers on the static list.
    pub discovery: Duration,
    /// Health of the servers.
    pub health: Duration,
    /// How long ago they answered, as a metric.
    pub contact: Duration,
    /// One step of the autopilot.
    pub step: Duration,
    /// How long every server has to know the next epoch before the cluster's is raised: as long the older release can be
    /// gone back to.
    pub settle: Duration,
    /// How long a new server may take to catch up before the next one has its turn.
    pub catch_up: Duration,
}

impl Default for Timings {
    fn default() -> Timings {
        Timings {
            discovery: Duration::from_secs(1),
            health: Duration::from_secs(2),
            contact: Duration::from_millis(500),
            // Nomad takes 10 seconds. A step is one change, so a few servers would take a minute.
            step: Duration::from_secs(2),
            settle: Duration::from_secs(600),
            catch_up: Duration::from_secs(120),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub own: Member,
    pub joins: Joins,
    /// `HOST:PORT` of servers' RPC that are asked directly, without gossip.
    pub peers: Vec<String>,
    /// What the autopilot begins with.
    pub autopilot: Autopilot,
    /// The leader raises the epoch by itself.
    pub raise_epoch: bool,
    pub timings: Timings,
}

/// A server among servers. A clone is another handle; dropping the last one ends the loops.
#[derive(Clone)]
pub struct Cluster(Arc<Handle>);

struct Handle {
    inner: Arc<Inner>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

struct Inner {
    settings: Settings,
    consensus: Arc<dyn Consensus>,
    peers: Arc<dyn PeerClient>,
    facts: Arc<dyn ClusterFacts>,
    gossip: Option<Gossip>,
    began: Instant,
    /// Servers on the static list, and those that asked this one. Bounded by [`roster::ANSWERED_MAX`].
    answered: Mutex<BTreeMap<Uuid, ContactedServer>>,
    promise: Mutex<FounderPromise>,
    /// As of the last look, while this server leads.
    health: Mutex<Option<Health>>,
    /// How long ago the others answered, as the leader saw it.
    contacts: Samples,
    /// Why looking for servers was given up.
    given_up: watch::Sender<Option<String>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        for task in self.loops.lock().drain(..) {
            task.abort();
        }
    }
}

impl Cluster {
    /// Begins to look for servers.
    pub fn start(
        settings: Settings,
        consensus: Arc<dyn Consensus>,
        peers: Arc<dyn PeerClient>,
        facts: Arc<dyn ClusterFacts>,
        gossip: Option<Gossip>,
    ) -> Cluster {
        let inner = Arc::new(Inner {
            settings,
            consensus,
            peers,
            facts,
            gossip,
            began: Instant::now(),
            answered: Mutex::default(),
            promise: Mutex::default(),
            health: Mutex::default(),
            contacts: Samples::default(),
            given_up: watch::Sender::new(None),
        });
        let loops = vec![
            tokio::spawn(join::look_for_servers(inner.clone())),
            tokio::spawn(join::ask_the_list(inner.clone())),
            tokio::spawn(found::found(inner.clone())),
            tokio::spawn(lead::watch(inner.clone())),
            tokio::spawn(lead::measure(inner.clone())),
            tokio::spawn(lead::lead(inner.clone())),
            tokio::spawn(lead::raise(inner.clone())),
        ];
        Cluster(Arc::new(Handle { inner, loops: Mutex::new(loops) }))
    }

    /// Answers another server's query.
    pub fn answer(&self, query: &PeerQuery) -> PeerInfo {
        self.0.inner.answer(query)
    }

    /// RPC addresses of the live servers of another region, the one to ask first at the front.
    pub(crate) fn servers_of(&self, region: &str) -> Vec<String> {
        self.0.inner.servers_of(region)
    }

    /// Ends with the sentence for the operator if no server could be joined as often as was allowed.
    pub fn given_up(&self) -> watch::Receiver<Option<String>> {
        self.0.inner.given_up.subscribe()
    }

    /// Leaves for good: another server leads, this server no longer votes, and the others do not take it for a
    /// failure. Takes some seconds at most, whatever happens.
    pub async fn leave(&self) {
        self.0.inner.leave().await;
    }
}
