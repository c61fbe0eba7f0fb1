//! Passes requests on to servers of other regions, and to others of this one, over streams of the node RPC as nodes do.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use federation::rollouts::RolloutQuery;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_gateway::{ClusterAdmin, REGION, RegionError, Regions};
use model::DeploymentStatus;
use tokio::sync::Semaphore;
use wire::messages::method;
use wire::{Frames, PeerIdentity, RpcError};

use crate::cluster::Cluster;
use crate::server_connections::{ServerConnections, method as server_method};

/// Requests that may be on their way to other regions at the same time, blocking reads and streams among them. One more is
/// answered 429. A connection carries twice as many streams.
const REQUESTS_MAX: usize = 256;

/// The same for reads of what this server no longer has, to other servers of this region. What is above it is answered with where to
/// ask.
const READS_MAX: usize = 64;

/// Servers of a region that are asked before a request fails.
const SERVERS_MAX: usize = 3;

/// How long a server may take to say that it will answer.
const OPEN_MAX: Duration = Duration::from_secs(3);

/// Whose secrets a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secrecy {
    /// Those of a caller, who chose how to send them here.
    Callers,
    /// Those of this server, or of others.
    Needed,
}

/// The way to other regions.
pub(crate) struct RegionLinks {
    cluster: Cluster,
    servers: ServerConnections,
    slots: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl RegionLinks {
    pub(crate) fn new(cluster: Cluster, servers: ServerConnections) -> RegionLinks {
        let slots = |most| Arc::new(Semaphore::new(most));
        RegionLinks { cluster, servers, slots: slots(REQUESTS_MAX), reads: slots(READS_MAX) }
    }

    /// As [`Regions::forward`], for a request or an answer with a secret: only over a connection by which the servers have proved
    /// to each other who they are, or that does not leave this host.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn ask_secretly(&self, region: &str, request: Request) -> Result<Response, RegionError> {
        self.send(region, request, Secrecy::Needed).await
    }

    async fn send(
        &self,
        region: &str,
        mut request: Request,
        secrecy: Secrecy,
    ) -> Result<Response, RegionError> {
        let slot = self.slots.clone().try_acquire_owned();
        let slot = Arc::new(slot.map_err(|_| RegionError::Busy(REQUESTS_MAX))?);
        let named = HeaderValue::from_str(region).map_err(|_| RegionError::Unknown)?;
        let stream = self.open(region, secrecy).await?.into_io();
        request.headers_mut().insert(REGION, named);
        let answer = listener::pass_on(stream, request, slot).await;
        answer.map_err(|error| RegionError::NoAnswer(error.to_string()))
    }

    /// A stream to a server of this region, on which it answers a request.
    async fn read_at(&self, server: &str, request: Request) -> Result<Response, RegionError> {
        let slot = self.reads.clone().try_acquire_owned();
        let slot = Arc::new(slot.map_err(|_| RegionError::Busy(READS_MAX))?);
        let unreachable = |error: RpcError| RegionError::Unreachable(format!("{server}: {error}"));
        let connection = self.servers.connection(server).await.map_err(unreachable)?;
        let stream = connection.open_stream(method::HTTP, OPEN_MAX).await.map_err(unreachable)?;
        let answer = listener::pass_on(stream.into_io(), request, slot).await;
        answer.map_err(|error| RegionError::NoAnswer(error.to_string()))
    }

    /// How far a region is with a job that it has in common with this one; nothing, if it was not registered there.
    ///
    /// # Errors
    /// No server of it answers.
    pub(crate) async fn rollout(
        &self,
        region: &str,
        query: &RolloutQuery,
    ) -> Result<Option<DeploymentStatus>, RegionError> {
        let body = msgpack::to_vec(query).map_err(|error| RegionError::NoAnswer(error.to_string()))?;
        let body = &body;
        let ask = |address: String| async move {
            let connection = self.servers.connection_to(region, &address).await?;
            connection.call_raw(server_method::ROLLOUT, body, OPEN_MAX).await
        };
        let answer = self.first_of(region, ask).await?;
        msgpack::from_slice(&answer).map_err(|error| RegionError::NoAnswer(error.to_string()))
    }

    /// A stream to some server of a region. Whoever answers there lives, so nothing is lost by trying the next one.
    async fn open(&self, region: &str, secrecy: Secrecy) -> Result<Frames, RegionError> {
        self.first_of(region, |address: String| async move { self.open_at(region, &address, secrecy).await })
            .await
    }

    /// What the first server of a region says that can be asked.
    async fn first_of<T, F>(&self, region: &str, ask: impl Fn(String) -> F) -> Result<T, RegionError>
    where
        F: Future<Output = Result<T, RpcError>>,
    {
        let mut failure = RegionError::Unknown;
        for address in self.cluster.servers_of(region).into_iter().take(SERVERS_MAX) {
            match ask(address.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::debug!(region, address, %error, "a server of another region cannot be asked");
                    failure = RegionError::Unreachable(format!("{address}: {error}"));
                }
            }
        }
        Err(failure)
    }

    async fn open_at(&self, region: &str, address: &str, secrecy: Secrecy) -> Result<Frames, RpcError> {
        let connection = self.servers.connection_to(region, address).await?;
        let is_secret = connection.identity() == PeerIdentity::ForeignServer
            || connection.peer().ip().to_canonical().is_loopback();
        if secrecy == Secrecy::Needed && !is_secret {
            return Err(RpcError::Protocol(
                "it proves nothing: set server.encrypt or tls.rpc in all regions",
            ));
        }
        let opened = connection.open_stream(method::HTTP, OPEN_MAX).await;
        if opened.as_ref().is_err_and(|error| matches!(error, RpcError::Timeout { .. })) {
            // Whoever is next does not wait for it again.
            connection.close();
        }
        opened
    }
}

impl Regions for RegionLinks {
    fn are_several(&self) -> bool {
        self.cluster.regions().len() > 1
    }

    fn has_path(&self, region: &str) -> bool {
        !self.cluster.servers_of(region).is_empty()
    }

    fn forward<'a>(
        &'a self,
        region: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Response, RegionError>> {
        self.send(region, request, Secrecy::Callers).boxed()
    }

    fn forward_to<'a>(
        &'a self,
        server: &'a str,
        request: Request,
    ) -> BoxFuture<'a, Result<Response, RegionError>> {
        self.read_at(server, request).boxed()
    }
}
