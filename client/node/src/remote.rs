//! Allocations of other nodes, as those that replace them need to know of them.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Rng;
use futures_util::future::BoxFuture;
use model::document::Allocation;
use tokio::time::sleep;

use crate::alloc::status;
use crate::clock::jitter;
use crate::heartbeat::ServerContact;
use crate::server::{ServerClient, ServerError};

const SECOND: Duration = Duration::from_secs(1);

/// Before the next call after an answer without changes: a server with a bug must not be called in a tight loop.
const NO_NEWS_PAUSE: Duration = Duration::from_millis(50);

/// What the servers know of allocations that are not on this node.
pub trait RemoteAllocs: fmt::Debug + Send + Sync {
    /// Waits until the allocation has ended, or until nobody can say any more whether it has: then its node is cut off, or
    /// the servers do not know it.
    fn end_of<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()>;
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

impl<S: ServerClient> RemoteAllocs for AskedServers<S> {
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
