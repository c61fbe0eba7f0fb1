//! What the agent knows about its contact with the servers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

#[derive(Debug, Default)]
pub struct ServerContact {
    /// The last heartbeat that was answered; `None` before the first registration.
    pub last_beat: watch::Sender<Option<Beat>>,
    /// Notified when another call was answered that the servers do not know this node.
    pub register_again: Notify,
    /// Notified when a call succeeds for the first time after an outage: the servers wait for a heartbeat then.
    pub beat: Notify,
    /// Changes when the servers may have forgotten the services of this node: it was registered anew, or was silent for so long
    /// that they took it for down.
    pub forgotten: watch::Sender<()>,
    outages: Mutex<Outages>,
}

/// A registration or heartbeat that the servers answered.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    pub at: Instant,
    /// How long the node may be silent from then on.
    pub ttl: Duration,
}

#[derive(Debug, Default)]
struct Outages {
    /// The last call of all failed.
    failing: bool,
    count: u64,
}

/// The outages that one kind of call has got over.
#[derive(Debug, Default)]
pub struct Seen(u64);

impl ServerContact {
    fn outages(&self) -> MutexGuard<'_, Outages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most `wait`: the next successful heartbeat or registration ends it, because then the servers are back.
    pub async fn next_success(&self, wait: Duration) {
        let mut last_beat = self.last_beat.subscribe();
        last_beat.mark_unchanged();
        tokio::select! {
            () = sleep(wait) => {}
            _ = last_beat.changed() => {}
        }
    }

    /// Has a heartbeat sent now, and waits until it is answered, or for `wait`.
    pub async fn beat_now(&self, wait: Duration) {
        self.beat.notify_one();
        self.next_success(wait).await;
    }

    /// A call has failed.
    pub fn failed(&self) {
        let mut outages = self.outages();
        if !std::mem::replace(&mut outages.failing, true) {
            outages.count += 1;
        }
    }

    /// A call has succeeded. After an outage the first one of each kind has a heartbeat sent at once: the servers have a
    /// node ready only with the heartbeat that follows its reports, and may take it for lost until then.
    pub fn succeeded(&self, seen: &mut Seen) {
        let mut outages = self.outages();
        outages.failing = false;
        if std::mem::replace(&mut seen.0, outages.count) != outages.count {
            self.beat.notify_one();
        }
    }
}
