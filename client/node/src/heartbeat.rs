//! Registers the node and sends its heartbeats.

use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use tokio::time::{Instant, sleep, sleep_until};

use crate::clock::jitter;
use crate::contact::{Beat, ServerContact};
use crate::context::Context;
use crate::server::{Lease, ServerClient, ServerError};

const SECOND: Duration = Duration::from_secs(1);

/// How long after the TTL a heartbeat is so late that the node may have been down meanwhile.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// The first heartbeat is sent within this time, spread so that nodes that start together do not send together.
const FIRST_BEAT_WITHIN: Duration = Duration::from_secs(10);

/// A changed node is registered again after this time, and up to as much more.
const CHANGE_WAIT: Duration = Duration::from_secs(5);

/// Heartbeats after an outage that come soon and not after the TTL: the servers have the node ready only with the
/// heartbeat that follows its report.
const SOON_AFTER_OUTAGE: u32 = 5;

/// The situation in which a heartbeat failed.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    pub dev: bool,
    pub no_leader: bool,
    /// Time since the last success, and the TTL granted then.
    pub since: Option<(Duration, Duration)>,
}

/// How long to wait after a failed heartbeat: soon while the TTL is just over, and ever less urgently, up to
/// half a minute, the longer the servers have not received anything.
pub fn wait_after_miss(missed: Missed, rng: &mut Rng) -> Duration {
    let soon = |rng: &mut Rng| SECOND + jitter(rng, SECOND);
    if missed.dev {
        return SECOND;
    }
    let Some((silent, ttl)) = missed.since.filter(|_| !missed.no_leader) else {
        return 15 * SECOND + jitter(rng, 15 * SECOND);
    };
    let overdue = silent.saturating_sub(ttl);
    if !overdue.is_zero() && overdue <= 30 * SECOND {
        return soon(rng);
    }
    let left = if overdue.is_zero() { ttl - silent } else { overdue };
    match jitter(rng, left) {
        short if short < SECOND => soon(rng),
        long if long > 30 * SECOND => 25 * SECOND + jitter(rng, 5 * SECOND),
        span => span,
    }
}

fn wait_after_failed_registration(dev: bool, error: &ServerError, rng: &mut Rng) -> Duration {
    match error {
        _ if dev => SECOND,
        ServerError::Unreachable(_) => SECOND + jitter(rng, SECOND),
        _ => 15 * SECOND + jitter(rng, 15 * SECOND),
    }
}

/// Runs until it is dropped.
pub async fn run<S: ServerClient>(context: Arc<Context>, server: Arc<S>, contact: Arc<ServerContact>) {
    let mut rng = Rng::stream(context.seed, "heartbeat");
    let dev = context.settings.dev;
    loop {
        let lease = register(&context, &*server, &mut rng).await;
        record_contact(&context, &contact, &lease);
        contact.forgotten.send_replace(());
        let mut ttl = lease.ttl;
        // A first heartbeat after the TTL would have the node marked as down before it was ever ready.
        let mut wait = if dev { Duration::ZERO } else { jitter(&mut rng, FIRST_BEAT_WITHIN.min(ttl / 2)) };
        let mut register_at = None;
        let mut soon: u32 = 0;
        let mut beaten = false;
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = contact.beat.notified() => {}
                () = contact.register_again.notified() => break,
                () = changed(&context, &mut register_at, &mut rng) => break,
            }
            let node_id = context.node().id.clone();
            wait = match server.update_status(&node_id).await {
                Ok(lease) => {
                    record_contact(&context, &contact, &lease);
                    beaten = true;
                    ttl = lease.ttl;
                    let after_outage = soon > 0;
                    soon = soon.saturating_sub(1);
                    if after_outage { (SECOND + jitter(&mut rng, SECOND)).min(ttl) } else { ttl }
                }
                Err(ServerError::NodeUnknown(text)) => {
                    tracing::warn!(text, "the servers do not know this node; registering again");
                    if !beaten {
                        // Registered, and not known all the same: servers that differ must not be called in a loop.
                        let error = ServerError::NodeUnknown(text);
                        sleep(wait_after_failed_registration(dev, &error, &mut rng)).await;
                    }
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, "a heartbeat failed");
                    contact.failed();
                    soon = SOON_AFTER_OUTAGE;
                    let since = contact.last_beat.borrow().map(|beat| (beat.at.elapsed(), beat.ttl));
                    let no_leader = error == ServerError::NoLeader;
                    wait_after_miss(Missed { dev, no_leader, since }, &mut rng)
                }
            };
        }
    }
}

/// Returns when changes of the node must be registered: several share one registration. Safe to cancel.
async fn changed(context: &Context, register_at: &mut Option<Instant>, rng: &mut Rng) {
    if register_at.is_none() {
        context.node_changed.notified().await;
        let dev = context.settings.dev;
        let wait = if dev { Duration::ZERO } else { CHANGE_WAIT + jitter(rng, CHANGE_WAIT) };
        *register_at = Some(Instant::now() + wait);
    }
    if let Some(at) = *register_at {
        sleep_until(at).await;
    }
}

async fn register<S: ServerClient>(context: &Context, server: &S, rng: &mut Rng) -> Lease {
    loop {
        let node = context.node();
        match server.register(&node).await {
            Ok(lease) => {
                tracing::info!(node = node.id, "registered");
                return lease;
            }
            Err(error) => {
                tracing::warn!(%error, "registration failed");
                sleep(wait_after_failed_registration(context.settings.dev, &error, rng)).await;
            }
        }
    }
}

fn record_contact(context: &Context, contact: &ServerContact, lease: &Lease) {
    let changed = !lease.eligibility.is_empty() && lease.eligibility != context.node().scheduling_eligibility;
    if changed {
        context.change_node(|node| node.scheduling_eligibility = lease.eligibility.clone());
    }
    let now = Instant::now();
    let before = contact.last_beat.send_replace(Some(Beat { at: now, ttl: lease.ttl }));
    if before.is_some_and(|before| now > before.at + before.ttl + LATE_AFTER) {
        contact.forgotten.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_after_a_miss_fits_how_late_it_is() {
        let secs = |n| Duration::from_secs(n);
        let missed = |since: Option<(u64, u64)>| Missed {
            dev: false,
            no_leader: false,
            since: since.map(|(silent, ttl)| (secs(silent), secs(ttl))),
        };
        let leaderless = Missed { no_leader: true, ..missed(Some((5, 10))) };
        let cases = [
            (Missed { dev: true, ..missed(None) }, 1, 1),
            (missed(None), 15, 30),
            (leaderless, 15, 30),
            (missed(Some((12, 10))), 1, 2),
            (missed(Some((5, 20))), 1, 15),
            (missed(Some((1000, 10))), 1, 30),
        ];
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            for (missed, least, most) in cases {
                let wait = wait_after_miss(missed, &mut rng);
                assert!((secs(least)..=secs(most)).contains(&wait), "{missed:?}: {wait:?}");
            }
        }
    }
}
