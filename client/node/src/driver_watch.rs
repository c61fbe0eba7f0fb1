//! Follows the drivers and the devices while the agent runs.

use std::sync::Arc;

use futures_util::stream::StreamExt;

use crate::allocs::Allocs;
use crate::clock;
use crate::context::Context;
use crate::driver::registry::{apply, is_change};
use crate::driver::{Fingerprint, Health};

/// Takes over what a driver reports. While the local state cannot be written none is healthy: so the scheduler places
/// nothing here, and what runs goes on.
fn seen(context: &Context, driver: &str, mut fingerprint: Fingerprint) {
    if let Some(why) = context.store.failing()
        && fingerprint.health == Health::Healthy
    {
        fingerprint.health = Health::Unhealthy;
        fingerprint.description = format!("local state cannot be written: {why}");
    }
    if is_change(&context.node(), driver, &fingerprint) {
        tracing::info!(driver, description = fingerprint.description, "a driver has changed");
        context.change_node(|node| apply(node, driver, fingerprint, clock::now()));
        context.node_changed.notify_one();
    }
}

/// Takes over which devices there are.
fn devices_seen(context: &Context) {
    let known = context.plugins.devices.known();
    let node = context.node();
    let registered = node.node_resources.as_ref().map(|resources| &resources.devices);
    if registered.is_some_and(|devices| *devices != known) {
        tracing::info!(groups = known.len(), "the devices of this node have changed");
        context.change_node(|node| {
            if let Some(resources) = &mut node.node_resources {
                resources.devices = known;
            }
        });
        context.node_changed.notify_one();
    }
}

/// Runs until it is dropped: changed fingerprints reach the node and the servers, messages the events of their tasks.
pub async fn run(context: Arc<Context>, allocs: Arc<Allocs>) {
    let (mut fingerprints, mut events) = (context.drivers.fingerprints(), context.drivers.events());
    let mut failure = context.store.failure();
    let mut devices = context.plugins.devices.seen();
    devices_seen(&context);
    loop {
        tokio::select! {
            Some((driver, fingerprint)) = fingerprints.next() => {
                seen(&context, &driver, fingerprint);
            }
            Ok(()) = failure.changed() => {
                for (driver, fingerprint) in context.drivers.fingerprinted().await {
                    seen(&context, &driver, fingerprint);
                }
            }
            () = context.plugins.devices.changed(&mut devices) => devices_seen(&context),
            Some(event) = events.next() => allocs.add_driver_event(event),
        }
    }
}
