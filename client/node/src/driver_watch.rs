//! Follows the drivers while the agent runs.

use std::sync::Arc;

use futures_util::stream::StreamExt;

use crate::allocs::Allocs;
use crate::clock;
use crate::context::Context;
use crate::driver::registry::{apply, is_change};

/// Runs until it is dropped: changed fingerprints reach the node and the servers, messages the events of their tasks.
pub async fn run(context: Arc<Context>, allocs: Arc<Allocs>) {
    let (mut fingerprints, mut events) = (context.drivers.fingerprints(), context.drivers.events());
    loop {
        tokio::select! {
            Some((driver, fingerprint)) = fingerprints.next() => {
                if is_change(&context.node(), driver, &fingerprint) {
                    tracing::info!(driver, description = fingerprint.description, "a driver has changed");
                    context.change_node(|node| apply(node, driver, fingerprint, clock::now()));
                    context.node_changed.notify_one();
                }
            }
            Some(event) = events.next() => allocs.add_driver_event(event),
            else => return,
        }
    }
}
