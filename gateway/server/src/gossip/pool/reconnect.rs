use std::net::SocketAddr;

use super::{Pool, Standing};

/// Failed servers that are greeted at a time.
const GREETED_MAX: usize = 8;

impl Pool {
    /// SWIM stops asking who lives once nobody is left, and a message from one that is back does not have it begin again:
    /// looking at whom it knows does.
    pub(super) fn resume(&mut self) {
        self.swim_with(|swim, effects| swim.apply_many(std::iter::empty(), false, effects));
    }

    /// SWIM asks those that failed whether they are back, but not while it knows nobody else: two servers, each alone in its
    /// region, that were cut off from each other would stay so.
    pub(super) fn greet_failed_when_alone(&mut self) {
        let own = self.own().id;
        let mut others = self.sightings.values().filter(|seen| seen.member.id != own);
        if others.any(|seen| seen.standing.is_live()) || self.now < self.reconnected + self.timings.retry {
            return;
        }
        self.reconnected = self.now;
        let failed = self.sightings.values().filter(|seen| seen.standing == Standing::Failed);
        // The ones that failed last are the likeliest to be back.
        let mut failed: Vec<_> = failed.map(|seen| (seen.since, seen.member.serf)).collect();
        failed.sort();
        let addresses: Vec<SocketAddr> =
            failed.into_iter().rev().map(|(_, address)| address).take(GREETED_MAX).collect();
        for address in addresses {
            if self.may_greet() {
                self.greet(address, 0);
            }
        }
    }
}
