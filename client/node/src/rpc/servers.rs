//! Calls to the servers, over one connection to one of them.

mod templates;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Rng;
use model::document::{Allocation, DrainStrategy, Map, Node};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep};
use wire::messages::{
    AllocIdentitiesRequest, AllocIdentitiesResponse, AllocSpecificRequest, AllocUpdateRequest,
    AllocsGetRequest, AllocsGetResponse, AuthenticatedIdentity, CsiVolumeClaimRequest,
    CsiVolumeClaimResponse, CsiVolumeExpandedRequest, CsiVolumeUnpublishRequest, CsiVolumeUnpublishResponse,
    Empty, GenericResponse, NodeChangeResponse, NodeClientAllocsResponse, NodeRegisterRequest,
    NodeSpecificRequest, NodeUpdateDrainRequest, NodeUpdateResponse, NodeUpdateStatusRequest, PlacedAlloc,
    QueryOptions, ServiceDeleteRequest, ServiceRegistration, ServiceUpsertRequest, SingleAllocResponse,
    SingleNodeResponse, WhoAmIResponse, WorkloadIdentityRequest, WriteRequest, method,
};
use wire::{Connection, Frames, Limits, RemoteError, RemoteErrorKind, RpcError, RpcSecurity};

use super::Endpoints;
use crate::LocalNode;
use crate::clock::{self, jitter};
use crate::context::Context;
use crate::drain::{self, ShutdownDrain};
use crate::identity::Registration;
use crate::server::{Assigned, Lease, ServerClient, ServerError, TemplateRead};

/// How long a server may take to accept a connection.
const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// How long a server may take to answer a call that does not block.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The same for a call during which servers ask a plugin: those of plugins may take two minutes.
const ATTACHED_WITHIN: Duration = Duration::from_secs(150);

/// How long one call is retried during an election.
const HOLD: Duration = Duration::from_secs(5);

/// How long a blocking query may wait for a change; the server adds up to a sixteenth.
const NEWS_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Most server addresses that are remembered; a cluster has a handful.
const SERVERS_MAX: usize = 64;

/// The servers of the region. The head of the list is used until it fails.
pub struct WireServers {
    region: String,
    node_id: String,
    secret: String,
    security: RpcSecurity,
    endpoints: Arc<Endpoints>,
    configured: Vec<String>,
    list: Mutex<VecDeque<String>>,
    connection: AsyncMutex<Option<Connection>>,
    context: Arc<Context>,
    rng: Mutex<Rng>,
}

impl WireServers {
    /// `servers` are `host:port` texts; they are used in a random order. Nothing is connected yet.
    pub fn new(local: LocalNode, security: RpcSecurity, servers: Vec<String>) -> Arc<WireServers> {
        let node = local.context.node();
        let mut rng = Rng::stream(clock::seed(), "servers");
        let mut shuffled: Vec<(u64, String)> =
            servers.iter().map(|server| (rng.next(), server.clone())).collect();
        shuffled.sort();
        Arc::new(WireServers {
            region: local.context.settings.region.clone(),
            node_id: node.id.clone(),
            secret: node.secret_id.clone(),
            security,
            context: Arc::clone(&local.context),
            endpoints: Arc::new(Endpoints::new(local)),
            configured: servers,
            list: Mutex::new(shuffled.into_iter().map(|(_, server)| server).collect()),
            connection: AsyncMutex::new(None),
            rng: Mutex::new(rng),
        })
    }

    /// Where servers are looked for, the one in use first.
    pub fn known(&self) -> Vec<String> {
        self.with_list(|list| list.iter().cloned().collect())
    }

    /// Looks for servers at these addresses from now on, until the next answer to a heartbeat names those there are.
    ///
    /// # Errors
    /// One of them is not reached; nothing changes then.
    pub async fn replace(&self, servers: Vec<String>) -> Result<(), ServerError> {
        for server in &servers {
            let reached = self.dial(server).await;
            let unreachable = |error| ServerError::Unreachable(format!("{server}: {error}"));
            reached.map_err(unreachable)?.close();
        }
        self.with_list(|list| *list = servers.into_iter().take(SERVERS_MAX).collect());
        if let Some(used) = self.connection.lock().await.take() {
            used.close();
        }
        Ok(())
    }

    /// Opens a streaming call to the server in use.
    ///
    /// # Errors
    /// None is reached, or it refuses.
    pub async fn open_stream(&self, method: &str) -> Result<Frames, ServerError> {
        let connection = self.connect().await?;
        match connection.open_stream(method, ANSWER_WITHIN).await {
            Ok(frames) => Ok(frames),
            Err(RpcError::Remote(error)) => Err(error_of(error)),
            Err(error) => {
                self.fail(&connection).await;
                Err(ServerError::Unreachable(error.to_string()))
            }
        }
    }

    /// Whose token that is, by the name that logs may have: a workload, a token of access control, or a node. `None` for a
    /// token that is worth nothing.
    ///
    /// # Errors
    /// No server was reached.
    pub async fn holder_of(&self, token: &str) -> Result<Option<String>, ServerError> {
        let query = QueryOptions {
            region: self.region.clone(),
            allow_stale: true,
            auth_token: token.to_string(),
            ..QueryOptions::default()
        };
        let answer: Result<WhoAmIResponse, _> = self.call(method::ACL_WHO_AM_I, &query, ANSWER_WITHIN).await;
        match answer {
            Ok(answer) => Ok(holder(answer.identity)),
            Err(ServerError::Denied(_) | ServerError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self) -> WriteRequest {
        WriteRequest { region: self.region.clone(), auth_token: self.token(), ..WriteRequest::default() }
    }

    /// What proves to the servers who calls: what they have signed, or else the secret, if they know it; before that the
    /// introduction token, or nothing.
    fn token(&self) -> String {
        let Registration { registered, identity } = self.context.registration();
        match (registered, identity.is_empty()) {
            (false, _) => self.context.settings.intro_token.clone(),
            (true, true) => self.secret.clone(),
            (true, false) => identity,
        }
    }

    /// A token of this node was refused: its node was purged, or the servers are others. True when the token is given up
    /// for that; then the node has to register as one that they do not know.
    fn give_up(&self, token: &str) -> bool {
        let current = self.context.registration().registered && self.token() == token;
        if current {
            tracing::warn!("the servers refuse the token of this node; registering anew without it");
            self.context.change_registration(|registration| *registration = Registration::default());
        }
        current
    }

    /// What a refused token means for calls that only a registered node makes.
    fn unless_refused<T>(&self, token: &str, answer: Result<T, ServerError>) -> Result<T, ServerError> {
        match answer {
            Err(ServerError::Denied(text)) => {
                self.give_up(token);
                Err(ServerError::NodeUnknown(text))
            }
            other => other,
        }
    }

    async fn register_once(
        &self,
        node: &Node,
        write: WriteRequest,
    ) -> Result<NodeUpdateResponse, ServerError> {
        let request = NodeRegisterRequest { node: node.clone(), write, ..Default::default() };
        self.call(method::NODE_REGISTER, &request, ANSWER_WITHIN).await
    }

    fn query(&self, min_query_index: u64, allow_stale: bool) -> QueryOptions {
        QueryOptions {
            region: self.region.clone(),
            min_query_index,
            max_query_time: base::Duration::from(NEWS_WITHIN).into(),
            allow_stale,
            auth_token: self.token(),
            ..QueryOptions::default()
        }
    }

    /// One call, retried during an election.
    async fn call<Q, A>(&self, method: &str, request: &Q, within: Duration) -> Result<A, ServerError>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let give_up = Instant::now() + HOLD;
        loop {
            let error = match self.call_once(method, request, within).await {
                Err(ServerError::NoLeader) if Instant::now() < give_up => ServerError::NoLeader,
                answered => return answered,
            };
            tracing::debug!(method, %error, "asking again");
            let pause = jitter(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner), HOLD / 16);
            sleep(pause).await;
        }
    }

    async fn call_once<Q, A>(&self, method: &str, request: &Q, within: Duration) -> Result<A, ServerError>
    where
        Q: Serialize + Sync,
        A: DeserializeOwned,
    {
        let connection = self.connect().await?;
        match connection.call(method, request, within).await {
            Ok(answer) => Ok(answer),
            Err(RpcError::Remote(error)) => Err(error_of(error)),
            Err(error) => {
                self.fail(&connection).await;
                Err(ServerError::Unreachable(error.to_string()))
            }
        }
    }

    /// The open connection, or a new one to the head of the list.
    async fn connect(&self) -> Result<Connection, ServerError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        *held = None;
        let server = self.with_list(|list| list.front().cloned());
        let server = server.ok_or_else(|| ServerError::Unreachable("no servers are known".to_string()))?;
        match self.dial(&server).await {
            Ok(connection) => {
                *held = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                self.demote(&server);
                Err(ServerError::Unreachable(format!("{server}: {error}")))
            }
        }
    }

    async fn dial(&self, server: &str) -> Result<Connection, RpcError> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(server).await?.collect();
        let unknown = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
        let mut last = RpcError::Io(unknown());
        for address in addresses {
            let endpoints = Arc::clone(&self.endpoints);
            match wire::dial(address, &self.security, endpoints, Limits::NODE, DIAL_WITHIN).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Drops a connection that failed, and moves its server to the tail.
    async fn fail(&self, connection: &Connection) {
        let mut held = self.connection.lock().await;
        if held.as_ref().is_some_and(|held| held.is_same(connection)) {
            connection.close();
            *held = None;
            if let Some(server) = self.with_list(|list| list.front().cloned()) {
                self.demote(&server);
            }
        }
    }

    fn with_list<T>(&self, change: impl FnOnce(&mut VecDeque<String>) -> T) -> T {
        change(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves a failed head to the tail. The configured servers join the list again then: what the cluster
    /// advertises may not be reachable from here.
    fn demote(&self, server: &str) {
        self.with_list(|list| {
            if list.front().is_some_and(|head| head == server) {
                list.rotate_left(1);
            }
            for configured in &self.configured {
                if !list.contains(configured) && list.len() < SERVERS_MAX {
                    list.push_back(configured.clone());
                }
            }
        });
    }

    /// Takes the list of servers from an answer; the one in use stays the head.
    fn remember_servers(&self, answer: &NodeUpdateResponse) {
        let advertised = answer.servers.iter().map(|server| &server.rpc_advertise_addr);
        let advertised: Vec<&String> = advertised.filter(|addr| !addr.is_empty()).take(SERVERS_MAX).collect();
        if advertised.is_empty() {
            return;
        }
        self.with_list(|list| {
            let head = list.pop_front();
            list.clear();
            list.extend(head.clone());
            list.extend(advertised.into_iter().filter(|addr| Some(*addr) != head.as_ref()).cloned());
        });
    }

    fn lease(&self, answer: &NodeUpdateResponse) -> Lease {
        self.context.change_registration(|registration| {
            registration.registered = true;
            if let Some(identity) = answer.signed_identity.as_ref().filter(|token| !token.is_empty()) {
                registration.identity.clone_from(identity);
            }
        });
        self.remember_servers(answer);
        Lease {
            ttl: answer.heartbeat_ttl.to_std().max(Duration::from_secs(1)),
            eligibility: answer.scheduling_eligibility.clone(),
        }
    }
}

/// What an error of the servers means; Nomad's node RPC distinguishes them by these texts only.
fn error_of(error: RemoteError) -> ServerError {
    match error.kind {
        RemoteErrorKind::NodeUnknown => ServerError::NodeUnknown(error.message),
        RemoteErrorKind::NoLeader => ServerError::NoLeader,
        RemoteErrorKind::PermissionDenied => ServerError::Denied(error.message),
        _ => ServerError::Refused(error.message),
    }
}

impl ServerClient for WireServers {
    async fn register(&self, node: &Node) -> Result<Lease, ServerError> {
        let write = self.write();
        let token = write.auth_token.clone();
        let answer = match self.register_once(node, write).await {
            Err(ServerError::Denied(_)) if self.give_up(&token) => {
                self.register_once(node, self.write()).await
            }
            answered => answered,
        };
        // An introduction token lives for minutes. Where it has expired, servers that do not insist on one take none.
        let answer = match answer {
            Err(ServerError::Denied(text)) if !self.token().is_empty() => {
                tracing::warn!(text, "the introduction token is refused; registering without one");
                let write = WriteRequest { auth_token: String::new(), ..self.write() };
                self.register_once(node, write).await
            }
            answered => answered,
        };
        Ok(self.lease(&answer?))
    }

    async fn update_status(&self, node_id: &str) -> Result<Lease, ServerError> {
        let force_identity_renewal = self.context.renew_identity.swap(false, Ordering::Relaxed);
        let request = NodeUpdateStatusRequest {
            node_id: node_id.to_string(),
            status: "ready".to_string(),
            updated_at: clock::now().secs(),
            force_identity_renewal,
            write: self.write(),
            ..Default::default()
        };
        let answer = self.call(method::NODE_UPDATE_STATUS, &request, ANSWER_WITHIN).await;
        if answer.is_err() {
            self.context.renew_identity.fetch_or(force_identity_renewal, Ordering::Relaxed);
        }
        Ok(self.lease(&self.unless_refused(&request.write.auth_token, answer)?))
    }

    async fn client_allocs(&self, node: &Node, min_index: u64, stale: bool) -> Result<Assigned, ServerError> {
        let request = NodeSpecificRequest {
            node_id: node.id.clone(),
            secret_id: node.secret_id.clone(),
            query: self.query(min_index, stale),
        };
        let within = NEWS_WITHIN + NEWS_WITHIN / 16 + ANSWER_WITHIN;
        let answer = self.call(method::NODE_GET_CLIENT_ALLOCS, &request, within).await;
        let answer: NodeClientAllocsResponse = self.unless_refused(&request.query.auth_token, answer)?;
        Ok(Assigned {
            allocs: answer.allocs.0,
            migrate_tokens: answer.migrate_tokens.0,
            index: answer.meta.index,
        })
    }

    async fn allocs(&self, ids: Vec<String>, min_index: u64) -> Result<(Vec<PlacedAlloc>, u64), ServerError> {
        let request = AllocsGetRequest { alloc_ids: ids.into(), query: self.query(min_index, true) };
        let within = NEWS_WITHIN + NEWS_WITHIN / 16 + ANSWER_WITHIN;
        let answer: AllocsGetResponse = self.call(method::ALLOC_GET_ALLOCS, &request, within).await?;
        // Nomad's servers put only this node's own allocations there; others would be a mix-up.
        let is_own =
            |placed: &PlacedAlloc| placed.alloc.node_id.is_empty() || placed.alloc.node_id == self.node_id;
        Ok((answer.allocs.0.into_iter().filter(is_own).collect(), answer.meta.index))
    }

    async fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        min_index: u64,
    ) -> Result<AllocIdentitiesResponse, ServerError> {
        let request =
            AllocIdentitiesRequest { identities: wanted.into(), query: self.query(min_index, false) };
        let within = NEWS_WITHIN + NEWS_WITHIN / 16 + ANSWER_WITHIN;
        self.call(method::ALLOC_SIGN_IDENTITIES, &request, within).await
    }

    async fn alloc(&self, id: &str, min_index: u64) -> Result<(Option<Allocation>, u64), ServerError> {
        let request = AllocSpecificRequest { alloc_id: id.to_string(), query: self.query(min_index, true) };
        let within = NEWS_WITHIN + NEWS_WITHIN / 16 + ANSWER_WITHIN;
        let answer: SingleAllocResponse = self.call(method::ALLOC_GET_ALLOC, &request, within).await?;
        Ok((answer.alloc.map(|placed| placed.alloc), answer.meta.index))
    }

    async fn node(&self, id: &str) -> Result<Option<Node>, ServerError> {
        let request = NodeSpecificRequest {
            node_id: id.to_string(),
            query: self.query(0, true),
            ..NodeSpecificRequest::default()
        };
        let answer: SingleNodeResponse = self.call(method::NODE_GET_NODE, &request, ANSWER_WITHIN).await?;
        Ok(answer.node)
    }

    async fn drain(&self, node_id: &str, wish: ShutdownDrain) -> Result<(), ServerError> {
        let force_deadline = clock::now().plus(wish.deadline.into());
        let strategy = DrainStrategy {
            // A negative deadline is one that is over.
            deadline: match wish.force {
                true => model::document::Duration::from_secs(-1),
                false => base::Duration::from(wish.deadline).into(),
            },
            ignore_system_jobs: wish.ignore_system_jobs,
            force_deadline: force_deadline.into(),
            ..DrainStrategy::default()
        };
        let request = NodeUpdateDrainRequest {
            node_id: node_id.to_string(),
            drain_strategy: Some(strategy),
            meta: Map([("message".to_string(), drain::MESSAGE.to_string())].into()),
            updated_at: clock::now().secs(),
            write: self.write(),
            ..NodeUpdateDrainRequest::default()
        };
        let _: NodeChangeResponse = self.call(method::NODE_UPDATE_DRAIN, &request, ANSWER_WITHIN).await?;
        Ok(())
    }

    async fn update_allocs(&self, updates: Vec<Allocation>) -> Result<(), ServerError> {
        let request =
            AllocUpdateRequest { alloc: updates.into(), evals: Default::default(), write: self.write() };
        let _: GenericResponse = self.call(method::NODE_UPDATE_ALLOC, &request, ANSWER_WITHIN).await?;
        Ok(())
    }

    async fn register_services(&self, services: Vec<ServiceRegistration>) -> Result<(), ServerError> {
        let request = ServiceUpsertRequest { services: services.into(), write: self.write() };
        let _: GenericResponse = self.call(method::SERVICE_UPSERT, &request, ANSWER_WITHIN).await?;
        Ok(())
    }

    async fn remove_service(&self, namespace: &str, id: &str) -> Result<(), ServerError> {
        let write = WriteRequest { namespace: namespace.to_string(), ..self.write() };
        let request = ServiceDeleteRequest { id: id.to_string(), write };
        let _: GenericResponse = self.call(method::SERVICE_DELETE_BY_ID, &request, ANSWER_WITHIN).await?;
        Ok(())
    }

    async fn claim_volume(
        &self,
        mut request: CsiVolumeClaimRequest,
    ) -> Result<CsiVolumeClaimResponse, ServerError> {
        request.write = WriteRequest { namespace: request.write.namespace, ..self.write() };
        // A controller attaches a disk meanwhile.
        self.call(method::CSI_VOLUME_CLAIM, &request, ATTACHED_WITHIN).await
    }

    async fn volume_expanded(&self, mut request: CsiVolumeExpandedRequest) -> Result<(), ServerError> {
        request.write = WriteRequest { namespace: request.write.namespace, ..self.write() };
        let _: Empty = self.call(method::CSI_VOLUME_EXPANDED, &request, ANSWER_WITHIN).await?;
        Ok(())
    }

    async fn unpublish_volume(&self, mut request: CsiVolumeUnpublishRequest) -> Result<(), ServerError> {
        request.write = WriteRequest { namespace: request.write.namespace, ..self.write() };
        let _: CsiVolumeUnpublishResponse =
            self.call(method::CSI_VOLUME_UNPUBLISH, &request, ATTACHED_WITHIN).await?;
        Ok(())
    }

    async fn read(&self, read: &TemplateRead) -> Result<(Option<Value>, u64), ServerError> {
        templates::read(self, read).await
    }
}

/// Servers name somebody for every token; for one that they do not know that is nobody in particular.
fn holder(identity: AuthenticatedIdentity) -> Option<String> {
    if let Some(claims) = identity.claims {
        return Some(claims.allocation_id);
    }
    if let Some(token) = identity.acl_token {
        return Some(token.accessor_id).filter(|accessor| accessor != "anonymous");
    }
    Some(identity.client_id).filter(|node| !node.is_empty())
}
