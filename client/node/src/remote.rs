//! What allocations ask of the servers: how those on other nodes are, to be signed for, and what templates read.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Rng;
use futures_util::future::BoxFuture;
use model::document::{Allocation, Node};
use serde_json::Value;
use tokio::time::sleep;
use wire::messages::{
    AllocIdentitiesResponse, CsiVolumeClaimRequest, CsiVolumeClaimResponse, CsiVolumeExpandedRequest,
    CsiVolumeUnpublishRequest, WorkloadIdentityRequest,
};

use crate::alloc::status;
use crate::clock::jitter;
use crate::contact::ServerContact;
use crate::drain::ShutdownDrain;
use crate::server::{ServerClient, ServerError, TemplateRead};

const SECOND: Duration = Duration::from_secs(1);

/// Before the next call after an answer without changes: a server with a bug must not be called in a tight loop.
const NO_NEWS_PAUSE: Duration = Duration::from_millis(50);

/// The servers, as the hooks of allocations and tasks use them.
pub trait ServerQueries: fmt::Debug + Send + Sync {
    /// Waits until the allocation has ended, or until nobody can say any more whether it has: then its node is cut off, or
    /// the servers do not know it.
    fn end_of<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;

    /// The node that an allocation was placed on.
    ///
    /// # Errors
    /// In words: the servers know neither, or were not reached.
    fn node_of<'a>(&'a self, alloc: &'a str) -> BoxFuture<'a, Result<Node, String>>;

    /// Tokens for identities of allocations on this node that were placed after `min_index`.
    ///
    /// # Errors
    /// The servers', or none was reached. What cannot be signed is in the answer, each with a reason.
    fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        min_index: u64,
    ) -> BoxFuture<'_, Result<AllocIdentitiesResponse, ServerError>>;

    /// Has this node drained.
    ///
    /// # Errors
    /// The servers', or none was reached.
    fn drain<'a>(&'a self, node_id: &'a str, wish: ShutdownDrain) -> BoxFuture<'a, Result<(), ServerError>>;

    /// Whether this node is being drained; a node that the servers do not know is not.
    ///
    /// # Errors
    /// As above.
    fn is_draining<'a>(&'a self, node_id: &'a str) -> BoxFuture<'a, Result<bool, ServerError>>;

    /// See [`ServerClient::claim_volume`].
    ///
    /// # Errors
    /// The servers', or none was reached.
    fn claim_volume(
        &self,
        request: CsiVolumeClaimRequest,
    ) -> BoxFuture<'_, Result<CsiVolumeClaimResponse, ServerError>>;

    /// See [`ServerClient::volume_expanded`].
    ///
    /// # Errors
    /// As above.
    fn volume_expanded(&self, request: CsiVolumeExpandedRequest) -> BoxFuture<'_, Result<(), ServerError>>;

    /// See [`ServerClient::unpublish_volume`].
    ///
    /// # Errors
    /// As above.
    fn unpublish_volume(&self, request: CsiVolumeUnpublishRequest) -> BoxFuture<'_, Result<(), ServerError>>;

    /// See [`ServerClient::read`].
    ///
    /// # Errors
    /// The servers', or none was reached.
    fn read<'a>(&'a self, read: &'a TemplateRead)
    -> BoxFuture<'a, Result<(Option<Value>, u64), ServerError>>;
}

/// Asks the servers.
pub struct AskedServers<S> {
    /// Weak: what calls the servers holds the node, which holds this.
    pub server: Weak<S>,
    pub dev: bool,
    pub seed: u64,
    pub contact: Arc<ServerContact>,
}

impl<S> fmt::Debug for AskedServers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskedServers")
    }
}

impl<S: ServerClient> ServerQueries for AskedServers<S> {
    fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        min_index: u64,
    ) -> BoxFuture<'_, Result<AllocIdentitiesResponse, ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.sign_identities(wanted, min_index).await
        })
    }

    fn claim_volume(
        &self,
        request: CsiVolumeClaimRequest,
    ) -> BoxFuture<'_, Result<CsiVolumeClaimResponse, ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.claim_volume(request).await
        })
    }

    fn volume_expanded(&self, request: CsiVolumeExpandedRequest) -> BoxFuture<'_, Result<(), ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.volume_expanded(request).await
        })
    }

    fn unpublish_volume(&self, request: CsiVolumeUnpublishRequest) -> BoxFuture<'_, Result<(), ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.unpublish_volume(request).await
        })
    }

    fn drain<'a>(&'a self, node_id: &'a str, wish: ShutdownDrain) -> BoxFuture<'a, Result<(), ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.drain(node_id, wish).await
        })
    }

    fn is_draining<'a>(&'a self, node_id: &'a str) -> BoxFuture<'a, Result<bool, ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            let node = server.node(node_id).await?;
            Ok(node.is_some_and(|node| node.drain_strategy.is_some()))
        })
    }

    fn node_of<'a>(&'a self, alloc: &'a str) -> BoxFuture<'a, Result<Node, String>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            let (found, _) = server.alloc(alloc, 0).await.map_err(|error| error.to_string())?;
            let found = found.ok_or_else(|| format!("the servers know no allocation {alloc}"))?;
            let node = server.node(&found.node_id).await.map_err(|error| error.to_string())?;
            node.ok_or_else(|| format!("the servers know no node {}", found.node_id))
        })
    }

    fn read<'a>(
        &'a self,
        read: &'a TemplateRead,
    ) -> BoxFuture<'a, Result<(Option<Value>, u64), ServerError>> {
        Box::pin(async move {
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            server.read(read).await
        })
    }

    fn end_of<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut rng = Rng::stream(self.seed, id);
            let mut min_index = 0;
            // Without servers the agent has stopped, and nothing is started any more.
            let Some(server) = self.server.upgrade() else { return std::future::pending().await };
            loop {
                match server.alloc(id, min_index).await {
                    Ok((found, _)) if found.as_ref().is_none_or(has_ended) => return,
                    Ok((_, index)) if index <= min_index => sleep(NO_NEWS_PAUSE).await,
                    Ok((_, index)) => min_index = index,
                    Err(ServerError::Denied(text)) => {
                        tracing::warn!(
                            alloc = id,
                            text,
                            "the end of a previous allocation is not waited for"
                        );
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(alloc = id, %error, "a previous allocation was not found out about");
                        let wait =
                            if self.dev { SECOND } else { 30 * SECOND + jitter(&mut rng, 30 * SECOND) };
                        self.contact.next_success(wait).await;
                    }
                }
            }
        })
    }
}

/// As far as it can be known: an allocation of a node that is cut off may run on, and its replacement is there for that.
fn has_ended(alloc: &Allocation) -> bool {
    status::is_terminal(&alloc.client_status) || alloc.client_status == "unknown"
}
