//! The methods of the node RPC: decode, submit, answer. No rule about nodes or allocations is here.

mod acl;
mod alloc;
mod identity;
mod node;
mod polls;
mod routes;
mod service;
mod stats;
mod status;
mod storage;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Occurrences;
use control::{Control, Leadership, Receipt, Subject, SubmitError};
use http_gateway::{Failure, Gate, Storage};
use keyring::{IntroductionSettings, Signer, VerifiedTokens};
use listener::{Peer, Timeouts};
use metrics::Samples;
use model::{Actor, Command, NodeId, Rejection, Request};
use monitor::Monitor;
use raft::RaftJournal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use state::State;
use tokio::sync::watch;
use wire::messages::method as node_rpc;
use wire::messages::{QueryMeta, QueryOptions};
use wire::{Bytes, Connection, Handler, Opening, PeerIdentity, RemoteError, RemoteErrorKind, RpcError};

use crate::cluster::{Cluster, PeerInfo, PeerQuery};
use crate::node_router::NodeRouter;
use crate::server_calls::ServerCalls;
use crate::server_connections::{method, unwrapped, wrapped};
use polls::Polls;
pub use stats::announced;

/// Longest a read may wait for news.
const QUERY_TIME_MAX: Duration = Duration::from_secs(300);

/// Answers the node RPC of this server.
pub struct Rpc {
    pub control: Control,
    pub nodes: NodeRouter,
    pub(crate) server_calls: ServerCalls,
    pub log: Arc<RaftJournal>,
    pub cluster: Cluster,
    pub region: String,
    pub datacenter: String,
    /// Signs what nodes and tasks prove themselves with.
    pub signer: Arc<Signer>,
    /// What nodes prove themselves with, call after call.
    pub verified: VerifiedTokens,
    pub introduction: IntroductionSettings,
    /// Where nodes and servers reach this server.
    pub advertise: String,
    /// What this process logs.
    pub agent_log: Monitor,
    /// The whole HTTP API, for agents that are no servers.
    pub http: axum::Router,
    pub gate: Gate,
    pub storage: Storage,
    pub(crate) polls: Polls,
    /// Calls, as metrics.
    pub rpc_stats: Arc<Samples>,
    /// Calls of methods that are not there.
    pub unknown_calls: Occurrences,
    /// True when the server stops.
    pub stopping: watch::Receiver<bool>,
}

impl Rpc {
    /// Answers another server's query.
    async fn introduce(&self, query: &PeerQuery) -> PeerInfo {
        let answer = self.cluster.answer(query);
        if !query.history {
            return answer;
        }
        let gate = self.gate.clone();
        // It reads the index of history, which is on a disk.
        let oldest = tokio::task::spawn_blocking(move || gate.oldest()).await;
        PeerInfo { oldest: oldest.unwrap_or_default().0, ..answer }
    }
}

impl Handler for Rpc {
    async fn call(&self, connection: &Connection, method: &str, body: Bytes) -> Result<Vec<u8>, RemoteError> {
        self.server_calls.allow(connection, method)?;
        // The log's own messages are counted where they come from.
        if method == method::RAFT {
            let answer = self.log.answer(unwrapped(&body)?).await.map_err(RemoteError::other)?;
            return Ok(wrapped(&answer));
        }
        let began = Instant::now();
        let answer = self.answer(connection, method, body).await;
        stats::measure(&self.rpc_stats, method, began, answer.is_err());
        answer
    }

    async fn stream(&self, connection: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        if let Err(refused) = self.server_calls.allow(connection, method) {
            return opening.refuse(refused).await;
        }
        match method {
            node_rpc::AGENT_MONITOR | node_rpc::AGENT_MONITOR_EXPORT => {
                let allow = async |token: String| {
                    let allowed = self.gate.reads_agent(&token).await;
                    allowed.map_err(|refused| (refused.status.as_u16(), refused.text))
                };
                match method {
                    node_rpc::AGENT_MONITOR => monitor::serve(&self.agent_log, opening, allow).await,
                    _ => monitor::serve_export(&self.agent_log, opening, allow).await,
                }
            }
            node_rpc::HTTP => {
                let stream = opening.accept().await?.into_io();
                let (http, stopping) = (self.http.clone(), self.stopping.clone());
                let peer = self.peer_of(connection);
                listener::serve_stream(stream, peer, http, Timeouts::default(), stopping).await;
                Ok(())
            }
            _ => match method.strip_prefix(method::PASS) {
                Some(rest) => self.nodes.pass_stream(rest, opening).await,
                None => opening.refuse(format!("unknown rpc method: {method:?}")).await,
            },
        }
    }
}

impl Rpc {
    /// Only agents of the federation are believed where a request came from: those with a certificate, servers with a key,
    /// and where there are none those whose node has registered.
    fn peer_of(&self, connection: &Connection) -> Peer {
        let address = connection.peer().ip();
        match connection.identity() {
            PeerIdentity::Server | PeerIdentity::ForeignServer | PeerIdentity::Client => Peer::Agent(address),
            PeerIdentity::Unproven if self.nodes.connections.is_of_a_node(connection) => Peer::Agent(address),
            PeerIdentity::Unproven => Peer::Caller(address),
        }
    }

    /// # Errors
    /// 403: it is not the connection of an agent of the cluster.
    fn check_agent(&self, connection: &Connection) -> Result<(), RemoteError> {
        match self.peer_of(connection) {
            Peer::Agent(_) if connection.identity() != PeerIdentity::ForeignServer => Ok(()),
            _ => Err(RemoteError::permission_denied()),
        }
    }

    /// Answers one call of the table, or of the routes of the HTTP API.
    async fn answer(
        &self,
        connection: &Connection,
        method: &str,
        body: Bytes,
    ) -> Result<Vec<u8>, RemoteError> {
        match method {
            node_rpc::STATUS_PING => answer(&body, status::ping).await,
            node_rpc::STATUS_LEADER => answer(&body, |request| status::leader(self, request)).await,
            node_rpc::STATUS_PEERS => answer(&body, |request| status::peers(self, request)).await,
            node_rpc::NODE_REGISTER => {
                answer(&body, |request| node::register(self, connection, request)).await
            }
            node_rpc::NODE_UPDATE_STATUS => {
                answer(&body, |request| node::update_status(self, connection, request)).await
            }
            node_rpc::NODE_GET_CLIENT_ALLOCS => {
                answer(&body, |request| node::client_allocs(self, connection, request)).await
            }
            node_rpc::NODE_GET_NODE => answer(&body, |request| node::get(self, request)).await,
            node_rpc::NODE_UPDATE_ALLOC => answer(&body, |request| node::update_alloc(self, request)).await,
            node_rpc::NODE_EMIT_EVENTS => answer(&body, |request| node::emit_events(self, request)).await,
            node_rpc::NODE_UPDATE_ELIGIBILITY => {
                answer(&body, |request| node::update_eligibility(self, connection, request)).await
            }
            node_rpc::NODE_UPDATE_DRAIN => {
                answer(&body, |request| node::update_drain(self, connection, request)).await
            }
            node_rpc::ALLOC_GET_ALLOCS => answer(&body, |request| alloc::get_many(self, request)).await,
            node_rpc::ALLOC_GET_ALLOC => answer(&body, |request| alloc::get(self, request)).await,
            method::HAS_NODE => {
                answer(&body, async |node: String| {
                    let node: NodeId = node.parse().map_err(RemoteError::other)?;
                    Ok(self.nodes.connections.find(node).is_some())
                })
                .await
            }
            method::PEER_INFO => answer(&body, async |query| Ok(self.introduce(&query).await)).await,
            method::ROLLOUT => {
                answer(&body, async |query| Ok(federation::rollouts::progress(&self.control.state(), &query)))
                    .await
            }
            method::ADMIN => answer(&body, async |request| Ok(self.cluster.execute(request).await)).await,
            method::LEADER => answer(&body, async |call| Ok(self.control.answer(call).await)).await,
            node_rpc::ACL_WHO_AM_I => answer(&body, |request| status::who_am_i(self, request)).await,
            node_rpc::ACL_RESOLVE_TOKEN => {
                answer(&body, |request| acl::resolve_token(self, connection, request)).await
            }
            node_rpc::ACL_GET_POLICIES => {
                answer(&body, |request| acl::get_policies(self, connection, request)).await
            }
            node_rpc::ACL_GET_CLAIM_POLICIES => {
                answer(&body, |request| acl::get_claim_policies(self, connection, request)).await
            }
            node_rpc::ACL_GET_ROLES_BY_ID => {
                answer(&body, |request| acl::get_roles_by_id(self, connection, request)).await
            }
            node_rpc::SERVICE_UPSERT => answer(&body, |request| service::upsert(self, request)).await,
            node_rpc::SERVICE_DELETE_BY_ID => match service::delete(self, &body).await {
                Some(answer) => answer,
                None => self.route(connection, method, &body).await,
            },
            "CSIVolume.Get" => answer(&body, |request| storage::get(self, request)).await,
            node_rpc::CSI_VOLUME_CLAIM => answer(&body, |request| storage::claim(self, request)).await,
            node_rpc::CSI_VOLUME_UNPUBLISH => {
                answer(&body, |request| storage::unpublish(self, request)).await
            }
            node_rpc::CSI_VOLUME_EXPANDED => answer(&body, |request| storage::expanded(self, request)).await,
            node_rpc::SERVICE_DELETE_BY_NODE_ID => {
                answer(&body, |request| service::delete_of_node(self, request)).await
            }
            node_rpc::ALLOC_SIGN_IDENTITIES => {
                answer(&body, |request| alloc::sign_identities(self, request)).await
            }
            _ => match method.strip_prefix(method::PASS) {
                Some(rest) => self.nodes.pass(rest, &body).await,
                None => self.route(connection, method, &body).await,
            },
        }
    }
}

/// Decodes a request, has it worked on, encodes the answer.
async fn answer<Req, Resp, Work, Answering>(body: &[u8], work: Work) -> Result<Vec<u8>, RemoteError>
where
    Req: DeserializeOwned,
    Resp: Serialize,
    Work: FnOnce(Req) -> Answering,
    Answering: Future<Output = Result<Resp, RemoteError>>,
{
    let request = msgpack::from_slice(body).map_err(|error| format!("cannot decode the request: {error}"))?;
    let response = work(request).await?;
    msgpack::to_vec(&response).map_err(|error| format!("cannot encode the answer: {error}").into())
}

/// Why a command was not executed, as nodes read it.
fn denied(failure: Failure) -> RemoteError {
    RemoteError::new(RemoteErrorKind::Status(failure.status.as_u16()), failure.text)
}

fn refused(error: SubmitError) -> RemoteError {
    let kind = match &error {
        SubmitError::Rejected(Rejection::NodeUnknown(_) | Rejection::NodeSecretMismatch(_)) => {
            RemoteErrorKind::NodeUnknown
        }
        SubmitError::NotLeading => RemoteErrorKind::NoLeader,
        _ => RemoteErrorKind::Other,
    };
    RemoteError::new(kind, error)
}

impl Rpc {
    /// Has a node's command decided.
    /// Done in the name of the node if it is the one who asks, else in that of whoever presents the token.
    async fn submit_for(
        &self,
        connection: &Connection,
        node: &str,
        token: &str,
        command: impl FnOnce(NodeId) -> Command,
    ) -> Result<Receipt, RemoteError> {
        match self.authenticate(&self.state(), node, token) {
            Ok((node, _)) => self.submit(node, command(node)).await,
            Err(refused) if token.is_empty() => Err(refused),
            Err(_) => {
                let node = node.parse().map_err(|_| "missing or malformed node ID")?;
                let address = Some(connection.peer().ip().to_canonical());
                self.gate.submit(token, address, command(node)).await.map_err(denied)
            }
        }
    }

    async fn submit(&self, node: NodeId, command: Command) -> Result<Receipt, RemoteError> {
        let request = Request::unnamed(Actor::Node(node), command);
        self.control.submit(request).await.map_err(refused)
    }

    /// Says who calls something that is not there, and how often that happens.
    fn unknown_method(&self, connection: &Connection, method: &str) -> RemoteError {
        if let Some(count) = self.unknown_calls.add() {
            tracing::warn!(peer = %connection.peer(), method, count, "a call of an unknown method");
        }
        format!("rpc: can't find method {method}").into()
    }

    async fn route(
        &self,
        connection: &Connection,
        method: &str,
        body: &[u8],
    ) -> Result<Vec<u8>, RemoteError> {
        match routes::answer(&self.http, connection.peer(), method, body).await {
            Some(answer) => answer,
            None => Err(self.unknown_method(connection, method)),
        }
    }

    /// The published state. It includes every batch for which there is a receipt.
    fn state(&self) -> std::sync::Arc<State> {
        self.control.state()
    }

    /// Works on each newly published state that concerns the subject, until the answer is newer than the caller's or time
    /// is up.
    async fn wait_for_change<T>(
        &self,
        query: &QueryOptions,
        subject: Subject,
        mut read: impl FnMut(&State) -> Result<(u64, T), RemoteError>,
    ) -> Result<(QueryMeta, T), RemoteError> {
        stats::waiting_read(&self.rpc_stats);
        let mut news = self.control.changes_of(subject);
        let wait = match query.max_query_time.to_std() {
            Duration::ZERO => QUERY_TIME_MAX,
            wait => wait.min(QUERY_TIME_MAX),
        };
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let (index, found) = read(&self.state())?;
            let known = query.min_query_index;
            let over = known == 0 || index > known;
            if over || tokio::time::timeout_at(deadline, news.changed()).await.is_err() {
                return Ok((self.query_meta(index), found));
            }
        }
    }

    /// Where the leader is reached, empty while there is none, and all servers of this cluster, this one at least.
    fn addresses(&self) -> (String, Vec<String>) {
        let status = self.log.status();
        let leader = status.members.iter().find(|member| Some(member.node) == status.leader);
        let leader = leader.map(|member| member.address.clone()).unwrap_or_default();
        let mut addresses: Vec<String> = status.members.into_iter().map(|member| member.address).collect();
        if addresses.is_empty() {
            addresses.push(self.advertise.clone());
        }
        (leader, addresses)
    }

    fn knows_leader(&self) -> bool {
        self.control.leadership_now() != Leadership::Unknown
    }

    fn query_meta(&self, index: u64) -> QueryMeta {
        QueryMeta { index: index.max(1), known_leader: self.knows_leader(), ..QueryMeta::default() }
    }
}
