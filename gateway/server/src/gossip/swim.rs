//! Foca, as it is set up here: its settings, its chance, and what it wants done.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, Uuid};
use foca::{Config, Foca, NoCustomBroadcast, Notification, PeriodicParams, Timer};
use parking_lot::Mutex;

use super::member::{Codec, Identity};
use super::pool::{MEMBERS_MAX, Timings};
use super::seal::CONTENT_MAX;

pub(super) type Swim = Foca<Identity, Codec<Box<dyn FnMut(Uuid) -> bool + Send>>, Chance, NoCustomBroadcast>;

/// Whether a server is known already, or there is room for one more.
pub(super) fn room(roll: Arc<Mutex<BTreeSet<Uuid>>>) -> Box<dyn FnMut(Uuid) -> bool + Send> {
    Box::new(move |id| {
        let mut roll = roll.lock();
        roll.contains(&id) || (roll.len() < MEMBERS_MAX && roll.insert(id))
    })
}

pub(super) fn config(timings: &Timings) -> Config {
    let few = NonZeroUsize::new(3).expect("three is not zero");
    let one = NonZeroUsize::MIN;
    Config {
        probe_period: timings.probe,
        probe_rtt: timings.round_trip,
        num_indirect_probes: few,
        max_transmissions: NonZeroU8::new(10).expect("ten is not zero"),
        suspect_to_down_after: timings.suspicion,
        // Forgetting is done by the sweep: a timer for each death would outlive a member that flaps.
        remove_down_after: None,
        max_packet_size: NonZeroUsize::new(CONTENT_MAX - 1).expect("there is room for content"),
        notify_down_members: true,
        periodic_announce: Some(PeriodicParams { frequency: timings.retry * 3, num_members: one }),
        periodic_announce_to_down_members: Some(PeriodicParams {
            frequency: timings.retry,
            num_members: few,
        }),
        periodic_gossip: Some(PeriodicParams { frequency: timings.spread, num_members: few }),
    }
}

/// What SWIM wants done.
#[derive(Default)]
pub struct Effects {
    pub now: Duration,
    pub packets: Vec<(SocketAddr, Vec<u8>)>,
    /// By when they are due and in which order they were set. SWIM has a handful at a time, and one for each
    /// server under suspicion.
    pub timers: BTreeMap<(Duration, u64), Timer<Identity>>,
    set: u64,
    pub changed: bool,
}

impl foca::Runtime<Identity> for &mut Effects {
    fn notify(&mut self, notification: Notification<'_, Identity>) {
        // Whatever it is, the list may have changed.
        let _ = notification;
        self.changed = true;
    }

    fn send_to(&mut self, to: Identity, data: &[u8]) {
        self.packets.push((to.0.serf, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Identity>, after: Duration) {
        self.set += 1;
        self.timers.insert((self.now + after, self.set), event);
    }
}

/// Our stream of chance, in the form that foca takes it.
pub(super) struct Chance(pub Rng);

impl rand_core::TryRng for Chance {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok((self.0.next() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.next())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
