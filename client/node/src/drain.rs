//! An agent that leaves has its node drained first: its allocations are replaced elsewhere before they end here.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::allocs::Allocs;
use crate::context::Context;

/// What the servers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownDrain {
    /// After which the servers end what is left.
    pub deadline: Duration,
    /// All of it at once.
    pub force: bool,
    /// Allocations of system jobs stay until the others are gone, and then too.
    pub ignore_system_jobs: bool,
}

/// How often it is looked whether the drain is over.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long after its deadline a drain is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a drain was begun, for those who look at the node.
pub const MESSAGE: &str = "shutting down";

/// Returns when the servers say that the drain is over, or after its deadline. Whoever cannot be told of it keeps nobody from
/// leaving.
pub async fn before_shutdown(context: &Context, allocs: &Arc<Allocs>, wish: ShutdownDrain) {
    let Some(servers) = context.servers.get() else { return };
    let node_id = context.node().id.clone();
    tracing::info!(deadline = ?wish.deadline, force = wish.force, "draining the node before the agent stops");
    if let Err(error) = servers.drain(&node_id, wish).await {
        tracing::error!(%error, "the node is not drained: the servers did not take it");
        return;
    }
    let end = Instant::now() + wish.deadline + PATIENCE;
    while Instant::now() < end {
        match servers.is_draining(&node_id).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::info!("the node is drained");
                return;
            }
            // Who does not hear from the servers sees for itself whether anything runs.
            Err(error) => {
                tracing::warn!(%error, "the servers do not say how far the drain is");
                if allocs.all().iter().all(|(_, handle)| handle.is_done()) {
                    return;
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
    tracing::warn!("the node was not drained in time");
}
