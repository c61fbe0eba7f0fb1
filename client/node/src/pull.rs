//! Fetches the allocations of this node from the servers, and sends them its updates.

use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::allocs::Allocs;
use crate::clock::jitter;
use crate::contact::{Seen, ServerContact};
use crate::context::Context;
use crate::server::{ServerClient, ServerError};

/// How often updates are looked at.
const UPDATE_EVERY: Duration = Duration::from_millis(200);

/// Allocations fetched in one call; with their jobs they may be large.
const FETCH_MAX: usize = 128;

/// Before the next call after an answer without changes: a server with a bug must not be called in a tight loop.
const NO_NEWS_PAUSE: Duration = Duration::from_millis(50);

const SECOND: Duration = Duration::from_secs(1);

/// Pulls until it is dropped.
pub async fn run<S: ServerClient>(
    context: Arc<Context>,
    server: Arc<S>,
    allocs: Arc<Allocs>,
    contact: Arc<ServerContact>,
) {
    let mut rng = Rng::stream(context.seed, "pull");
    let (mut min_index, mut seen) = (0, Seen::default());
    wait_for_registration(&contact).await;
    loop {
        let pulled = pull(&context, &*server, &allocs, min_index).await;
        if pulled.is_ok() {
            contact.succeeded(&mut seen);
        }
        match pulled {
            Ok(Pulled::Applied(index)) => {
                min_index = index;
                context.contacted.send_replace(true);
                allocs.make_room().await;
            }
            Ok(Pulled::Nothing) => sleep(NO_NEWS_PAUSE).await,
            // A server knows of allocations that it cannot send yet.
            Ok(Pulled::Incomplete) => sleep(2 * SECOND + jitter(&mut rng, 2 * SECOND)).await,
            Err(error) => {
                tracing::warn!(%error, "allocations were not pulled");
                contact.failed();
                if matches!(error, ServerError::NodeUnknown(_)) {
                    contact.register_again.notify_one();
                }
                let wait =
                    if context.settings.dev { SECOND } else { 30 * SECOND + jitter(&mut rng, 30 * SECOND) };
                contact.next_success(wait).await;
            }
        }
    }
}

async fn wait_for_registration(contact: &ServerContact) {
    // The sender lives as long as the contact, so the wait cannot fail.
    contact.last_beat.subscribe().wait_for(Option::is_some).await.ok();
}

enum Pulled {
    Applied(u64),
    /// The wait of the server was over before anything changed.
    Nothing,
    /// Some assigned allocations were not available yet.
    Incomplete,
}

async fn pull<S: ServerClient>(
    context: &Context,
    server: &S,
    allocs: &Allocs,
    min_index: u64,
) -> Result<Pulled, ServerError> {
    let node = context.node();
    // The first answer decides what is destroyed, so it must not come from a server that lags behind.
    let stale = min_index > 0;
    let assigned = server.client_allocs(&node, min_index, stale).await?;
    if assigned.index <= min_index {
        return Ok(Pulled::Nothing);
    }
    context.put_migrate_tokens(assigned.migrate_tokens);
    let wanted = allocs.to_fetch(&assigned.allocs);
    let mut fetched = Vec::new();
    for some in wanted.chunks(FETCH_MAX) {
        // The answer must be as new as the newest of these; to ask for more would wait for the next change.
        let newest = some.iter().filter_map(|id| assigned.allocs.get(id)).max().copied().unwrap_or(1);
        let (found, _) = server.allocs(some.to_vec(), newest.saturating_sub(1)).await?;
        if found.len() < some.len() {
            return Ok(Pulled::Incomplete);
        }
        for placed in found {
            context.put_default_tokens(&placed.alloc.id, placed.signed_identities.0);
            fetched.push(placed.alloc);
        }
    }
    allocs.apply(&assigned.allocs, fetched).await;
    Ok(Pulled::Applied(assigned.index))
}

/// Sends updates until it is dropped. Nothing is sent before the first pull: until then the servers may know
/// better what this node should run.
pub async fn send_updates<S: ServerClient>(
    context: Arc<Context>,
    server: Arc<S>,
    contact: Arc<ServerContact>,
) {
    let mut rng = Rng::stream(context.seed, "updates");
    let mut seen = Seen::default();
    context.contacted.subscribe().wait_for(|contacted| *contacted).await.ok();
    let mut ticks = interval(UPDATE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let batch = context.updates.take();
        if batch.is_empty() {
            continue;
        }
        match server.update_allocs(batch.clone()).await {
            Ok(()) => {
                context.updates.acknowledge(batch);
                context.alloc_ended.notify_one();
                contact.succeeded(&mut seen);
            }
            Err(error) => {
                tracing::warn!(%error, allocs = batch.len(), "updates were not accepted; they will be sent again");
                context.updates.put_back(batch);
                contact.failed();
                let wait =
                    if context.settings.dev { SECOND } else { 5 * SECOND + jitter(&mut rng, 5 * SECOND) };
                // Servers refuse reports of a node that has yet to send its heartbeat.
                contact.next_success(wait).await;
            }
        }
    }
}

/// Runs until it is dropped: garbage collects when the node is full, at intervals and whenever an allocation has ended, and ends what must not run without servers.
pub async fn maintain(context: Arc<Context>, allocs: Arc<Allocs>, contact: Arc<ServerContact>) {
    let started = Instant::now();
    let mut collected = started;
    let mut ticks = interval(SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = context.alloc_ended.notified() => {
                allocs.make_room().await;
                continue;
            }
        }
        let last_ok = contact.last_beat.borrow().map_or(started, |beat| beat.at);
        allocs.stop_disconnected(last_ok.elapsed().into()).await;
        if collected.elapsed() >= context.settings.gc.interval {
            collected = Instant::now();
            allocs.make_room().await;
        }
    }
}
