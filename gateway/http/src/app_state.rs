use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use api::Consistency;
use audit::Audit;
use base::{Index, Time, Uuid};
use control::{Control, Receipt, SubmitError};
use delivery::Reports;
use history::History;
use ipnet::IpNet;
use keyring::{IntroductionSettings, Signer};
use login::Providers;
use metrics::{NodeFigures, Samples};
use model::{Actor, Command, NodeId, Request};
use monitor::{AgentConfig, Monitor};
use tokio::sync::Semaphore;

use crate::access::{self, AccessSettings, Attempts, Resolver};
use crate::blocking::{FORKS_MAX, OPENINGS_MAX, RENDERS_MAX, WAITING_READS_MAX};
use crate::cluster_admin::{ClusterAdmin, HistoryFiles, Snapshots};
use crate::error::Failure;
use crate::events::Acks;
use crate::forks::KeptForks;
use crate::node_rpc::{NodeRoutes, NodeRpc};
use crate::regions::{RegionError, Regions};
use crate::rendering::LARGE_LISTS_MAX;
use crate::request::Write;
use feed::Feed;

/// The release of Nomad that the answers follow, as clients compare it.
pub const NOMAD_VERSION: &str = "2.0.0";

/// Everything that the routes use.
pub struct Api {
    pub control: Control,
    /// The way to nodes that are connected.
    pub node_rpc: Arc<dyn NodeRpc>,
    /// The other servers, and the raft cluster.
    pub cluster: Arc<dyn ClusterAdmin>,
    /// The way to the servers of other regions.
    pub regions: Arc<dyn Regions>,
    pub snapshots: Arc<dyn Snapshots>,
    pub history_files: Arc<dyn HistoryFiles>,
    pub agent: AgentInfo,
    /// Most allocations that a job may ask for while this server leads.
    pub job_count_max: i64,
    /// What is added to jobs that are registered.
    pub identities: jobspec::ImpliedIdentities,
    /// What all event streams share. The owner of the server closes it before the end.
    pub events: Feed,
    pub history: Arc<History>,
    /// What this process logs.
    pub log: Monitor,
    /// Where requests are recorded, if they are.
    pub audit: Option<Arc<Audit>>,
    /// Signs introduction tokens.
    pub signer: Arc<Signer>,
    pub introduction: IntroductionSettings,
    /// Calls of the node RPC, as metrics.
    pub rpc_stats: Arc<Samples>,
    /// The metrics of the node that this agent runs besides the server.
    pub node_figures: NodeFigures,
    /// What that node answers itself.
    pub node_routes: NodeRoutes,
    /// How it goes with sinks of the event stream that this server sends to.
    pub sinks: Reports,
    /// The same, as metrics.
    pub sink_samples: Arc<Samples>,
}

/// What the agent says about itself.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    pub name: String,
    pub region: String,
    /// Another region that decides for this one too; empty without one.
    pub authoritative_region: String,
    pub datacenter: String,
    /// This server, as batches name it.
    pub server: Uuid,
    /// The node this agent runs besides the server, if it does.
    pub node: Option<NodeId>,
    /// `HOST:PORT` that others reach this agent at.
    pub http_addr: String,
    /// `HOST:PORT` that nodes and servers reach this agent at.
    pub rpc_addr: String,
    /// Our own release; [`NOMAD_VERSION`] is what the fields of Nomad's API say.
    pub version: String,
    pub started: Time,
    pub config: Arc<dyn AgentConfig>,
    pub access: AccessSettings,
    /// Addresses that carry the requests of many callers: failed logins are not counted for them.
    pub proxies: Vec<IpNet>,
    /// What the host looks like may be shown, environment included.
    pub debug: bool,
    /// Metrics are also given in the text form of Prometheus.
    pub prometheus: bool,
    /// Metrics say which agent they come from.
    pub metrics_host: bool,
    /// The web page is served.
    pub ui: bool,
    /// In place of our own.
    pub ui_folder: Option<ui::Folder>,
    /// Headers that the operator wants on every answer.
    pub response_headers: BTreeMap<String, String>,
}

/// The shared state of all routes; a clone is a pointer copy.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Inner>);

pub(crate) struct Inner {
    api: Api,
    pub(crate) waiting_reads: Semaphore,
    pub(crate) renders: Arc<Semaphore>,
    pub(crate) large_lists: Arc<Semaphore>,
    pub(crate) openings: Arc<Semaphore>,
    pub(crate) forks: Arc<Semaphore>,
    /// Forks that can be read, until their time is over.
    pub(crate) kept_forks: Arc<KeptForks>,
    pub(crate) history_reads: Arc<Semaphore>,
    pub(crate) request_stats: Samples,
    pub(crate) resolver: Resolver,
    /// Who has failed to prove that lately.
    pub(crate) attempts: Attempts,
    /// Where people prove who they are.
    pub(crate) providers: Providers,
    /// How far readers of cursors say that they have come.
    pub(crate) acks: Acks,
}

impl AppState {
    pub(crate) fn new(api: Api) -> AppState {
        let waiting_reads = Semaphore::new(WAITING_READS_MAX);
        let (renders, request_stats) = (Arc::new(Semaphore::new(RENDERS_MAX)), Samples::default());
        let now = Instant::now();
        request_stats.announce("sojourn.http.requests_total", now);
        request_stats.announce("sojourn.http.request_time", now);
        AppState(Arc::new(Inner {
            api,
            waiting_reads,
            renders,
            large_lists: Arc::new(Semaphore::new(LARGE_LISTS_MAX)),
            openings: Arc::new(Semaphore::new(OPENINGS_MAX)),
            forks: Arc::new(Semaphore::new(FORKS_MAX)),
            kept_forks: Arc::default(),
            history_reads: Arc::new(Semaphore::new(1)),
            request_stats,
            resolver: Resolver::default(),
            attempts: Attempts::default(),
            providers: Providers::default(),
            acks: Acks::default(),
        }))
    }

    /// Submits a command in the name of the caller, who has to have the right to it.
    ///
    /// # Errors
    /// 403, the rejection, or why the outcome is not known.
    pub(crate) async fn submit(&self, write: &Write, command: Command) -> Result<Receipt, Failure> {
        Ok(self.submitted(write, command).await??)
    }

    /// The same, for who answers rejections itself.
    ///
    /// # Errors
    /// 403.
    pub(crate) async fn submitted(
        &self,
        write: &Write,
        command: Command,
    ) -> Result<Result<Receipt, SubmitError>, Failure> {
        if access::names_unknown(&self.control.state(), &command) {
            // It may be new, in a namespace that is not the caller's.
            self.fresh(Consistency::Confirmed, Index::ZERO).await?;
        }
        access::check(&write.access, &self.control.state(), &command)?;
        let request = Request {
            said: write.said,
            ..Request::named(write.request, Actor::Caller(write.caller.clone()), command)
        };
        Ok(self.control.submit(request).await)
    }

    /// What is about another region has been sent there before.
    ///
    /// # Errors
    /// `No path to region` for any region but this one; none means this one.
    pub(crate) fn check_region(&self, region: &str) -> Result<(), Failure> {
        if region.is_empty() || region == self.agent.region {
            return Ok(());
        }
        Err(RegionError::Unknown.into())
    }
}

impl Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// For what is shown, never for what is decided.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
