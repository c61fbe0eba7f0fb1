//! An agent and its servers over the real wire, as tests of single calls want them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use node::server::{ServerClient, ServerError};
use node::{Agent, NodeSettings, WireServers};
use serde::Serialize;
use wire::messages::{
    AllocSpecificRequest, AllocUpdateRequest, AllocsGetRequest, AllocsGetResponse, GenericResponse,
    NodeClientAllocsResponse, NodeRegisterRequest, NodeSpecificRequest, NodeUpdateResponse,
    NodeUpdateStatusRequest, PlacedAlloc, QueryMeta, SingleAllocResponse, StreamFrameWrapper, method,
};
use wire::{Connection, Handler, Limits, Opening, RemoteError, RemoteErrorKind, RpcError, RpcSecurity};

use super::{Base, FakeServers, eventually, settings};

pub const SOON: Duration = Duration::from_secs(60);

/// The servers of [`support`], behind a socket.
pub struct Listening {
    servers: Arc<FakeServers>,
    /// The connection that a node used last.
    node: Mutex<Option<Connection>>,
    /// The secrets with which calls came.
    pub tokens: Mutex<Vec<String>>,
    /// What the servers sign for the node from now on; empty for nothing.
    pub identity: Mutex<String>,
    /// A heartbeat has asked for a new identity.
    pub renewals: AtomicBool,
    /// Tokens that are permitted nothing.
    pub refused: Mutex<Vec<String>>,
}

fn refused(error: ServerError) -> RemoteError {
    match error {
        ServerError::NodeUnknown(text) => RemoteError::new(RemoteErrorKind::NodeUnknown, text),
        ServerError::NoLeader => RemoteError::new(RemoteErrorKind::NoLeader, "No cluster leader"),
        other => RemoteError::other(other),
    }
}

fn encode(answer: &impl Serialize) -> Result<Vec<u8>, RemoteError> {
    msgpack::to_vec(answer).map_err(RemoteError::other)
}

impl Listening {
    fn lease(&self, connection: &Connection, lease: node::server::Lease) -> Result<Vec<u8>, RemoteError> {
        *self.node.lock().unwrap() = Some(connection.clone());
        let heartbeat_ttl = base::Duration::from(lease.ttl).into();
        let signed_identity = Some(self.identity.lock().unwrap().clone()).filter(|token| !token.is_empty());
        encode(&NodeUpdateResponse { heartbeat_ttl, signed_identity, ..NodeUpdateResponse::default() })
    }

    /// Notes the token of a call.
    fn check(&self, token: String) -> Result<(), RemoteError> {
        let refused = self.refused.lock().unwrap().contains(&token);
        self.tokens.lock().unwrap().push(token);
        if refused { Err(RemoteError::permission_denied()) } else { Ok(()) }
    }

    /// Waits until a call has come with this token.
    pub fn await_token(&self, token: &str) {
        eventually(&format!("a call with {token:?}"), || {
            self.tokens.lock().unwrap().iter().any(|known| known == token).then_some(())
        });
    }
}

impl Handler for Listening {
    async fn call(&self, connection: &Connection, method: &str, body: Bytes) -> Result<Vec<u8>, RemoteError> {
        let servers = &self.servers;
        match method {
            method::NODE_REGISTER => {
                let request: NodeRegisterRequest = msgpack::from_slice(&body).unwrap();
                self.check(request.write.auth_token)?;
                self.lease(connection, servers.register(&request.node).await.map_err(refused)?)
            }
            method::NODE_UPDATE_STATUS => {
                let request: NodeUpdateStatusRequest = msgpack::from_slice(&body).unwrap();
                assert_eq!(request.status, "ready");
                self.renewals.fetch_or(request.force_identity_renewal, Ordering::Relaxed);
                self.check(request.write.auth_token)?;
                self.lease(connection, servers.update_status(&request.node_id).await.map_err(refused)?)
            }
            method::NODE_GET_CLIENT_ALLOCS => {
                let request: NodeSpecificRequest = msgpack::from_slice(&body).unwrap();
                let (min, stale) = (request.query.min_query_index, request.query.allow_stale);
                let found = servers.client_allocs(&Default::default(), min, stale).await.map_err(refused)?;
                encode(&NodeClientAllocsResponse {
                    allocs: found.allocs.into(),
                    meta: QueryMeta { index: found.index, ..QueryMeta::default() },
                    ..NodeClientAllocsResponse::default()
                })
            }
            method::ALLOC_GET_ALLOCS => {
                let request: AllocsGetRequest = msgpack::from_slice(&body).unwrap();
                let (allocs, index) = servers.allocs(request.alloc_ids.0, 0).await.map_err(refused)?;
                encode(&AllocsGetResponse {
                    allocs: allocs.into(),
                    meta: QueryMeta { index, ..QueryMeta::default() },
                })
            }
            method::ALLOC_GET_ALLOC => {
                let request: AllocSpecificRequest = msgpack::from_slice(&body).unwrap();
                let min_index = request.query.min_query_index;
                let (found, index) = servers.alloc(&request.alloc_id, min_index).await.map_err(refused)?;
                encode(&SingleAllocResponse {
                    alloc: found.map(|alloc| PlacedAlloc { alloc, ..PlacedAlloc::default() }),
                    meta: QueryMeta { index, ..QueryMeta::default() },
                })
            }
            method::NODE_UPDATE_ALLOC => {
                let request: AllocUpdateRequest = msgpack::from_slice(&body).unwrap();
                servers.update_allocs(request.alloc.0).await.map_err(refused)?;
                encode(&GenericResponse::default())
            }
            other => Err(format!("rpc: can't find method {other}").into()),
        }
    }

    async fn stream(&self, _: &Connection, _: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse("no streams here").await
    }
}

pub struct Running {
    pub base: Base,
    pub servers: Arc<FakeServers>,
    pub listening: Arc<Listening>,
    addresses: Vec<String>,
    pub agent: Agent,
}

/// An agent that knows its servers by one address that nobody listens on and one that is right.
pub async fn running() -> Running {
    running_with(|_| {}).await
}

pub async fn running_with(change: impl FnOnce(&mut NodeSettings)) -> Running {
    let (base, servers) = (Base::new(), FakeServers::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let listening = Arc::new(Listening {
        servers: servers.clone(),
        node: Mutex::default(),
        tokens: Mutex::default(),
        identity: Mutex::default(),
        renewals: AtomicBool::default(),
        refused: Mutex::default(),
    });
    tokio::spawn(wire::serve(listener, RpcSecurity::default(), listening.clone(), Limits::SERVER));
    let addresses = vec!["127.0.0.1:1".to_string(), address.to_string()];
    let mut settings = settings(base.path());
    change(&mut settings);
    let known = addresses.clone();
    let agent =
        Agent::start(settings, |local| WireServers::new(local, RpcSecurity::default(), known)).await.unwrap();
    Running { base, servers, listening, addresses, agent }
}

impl Running {
    /// The next agent of the same node. The servers change in between.
    pub async fn restarted(self, change: impl FnOnce(&Listening)) -> Running {
        self.agent.shutdown().await;
        let connection = self.listening.node.lock().unwrap().take();
        connection.expect("the node had registered").close();
        change(&self.listening);
        // The local state is free when the last call of the old agent has noticed that.
        let start = async || loop {
            let (settings, known) = (settings(self.base.path()), self.addresses.clone());
            match Agent::start(settings, |local| WireServers::new(local, RpcSecurity::default(), known)).await
            {
                Ok(agent) => return agent,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let agent = tokio::time::timeout(SOON, start()).await.expect("the local state is free");
        Running { agent, ..self }
    }

    pub async fn connection(&self) -> Connection {
        eventually("a connection", || self.listening.node.lock().unwrap().clone())
    }

    /// The payloads of a streaming call until it ends, and its error.
    pub async fn payloads<T: Serialize>(
        &self,
        method: &str,
        request: &T,
    ) -> (Vec<Vec<u8>>, Option<(i64, String)>) {
        let mut frames = self.connection().await.open_stream(method, SOON).await.unwrap();
        frames.send(request).await.unwrap();
        let (mut payloads, mut failure) = (Vec::new(), None);
        while let Some(wrapper) = frames.receive::<StreamFrameWrapper>().await.unwrap() {
            match wrapper.error {
                Some(error) => failure = Some((error.code.unwrap(), error.message)),
                // The first says that there is something to read from.
                None if wrapper.payload.0.is_empty() => {}
                None => payloads.push(wrapper.payload.0),
            }
        }
        (payloads, failure)
    }
}
