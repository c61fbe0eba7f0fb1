//! A node that is silent for much longer than it may be is not ready any more, under a leader that has led for long
//! enough to know: a dead node is noticed within a bounded time, also after a fail-over.

use std::collections::BTreeMap;

use base::{Duration, Time};
use model::{Event, NodeId, NodeStatus};

use crate::fact::{Check, Fact};
use crate::witness::Witness;

/// The longest time to live is a fail-over's, 30 s; a leader may be paused for 15 s; and room.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct SilenceIsNoticed {
    /// Since when each server counts, by its own clock.
    counts_since: BTreeMap<usize, Time>,
    leader: Option<usize>,
    /// Of the newest batch.
    newest: Time,
    /// The last heartbeat of each node that the leader has counted.
    heard: BTreeMap<NodeId, Time>,
}

impl Check for SilenceIsNoticed {
    fn sentence(&self) -> &'static str {
        "a silent node is not ready for long"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            // A server counts anew when it begins to lead, just before it says so.
            Fact::CountsAnew { server, at } => {
                self.counts_since.insert(*server, *at);
            }
            Fact::ClockMoved { server, .. } if self.leader == Some(*server) => {
                // Times of batches, which never go back, do not follow its clock for a while.
                self.leader = None;
            }
            Fact::Leads { server, .. } => {
                self.leader = Some(*server);
                self.heard.clear();
            }
            Fact::Restarted { server } if self.leader == Some(*server) => self.leader = None,
            Fact::Heard { server, node, at, .. } if self.leader == Some(*server) => {
                self.heard.insert(*node, *at);
            }
            Fact::Committed(batch) => {
                // A node that comes back is counted by its leader only once its report is committed.
                let reported = batch.events.iter().filter_map(|logged| reported_by(&logged.event));
                self.heard.extend(reported.map(|node| (node, batch.time)));
                let is_own = batch.time > self.newest;
                self.newest = batch.time;
                // A leader whose clock is behind the log takes the time of the batch before: nothing is known of its own.
                let Some(server) = self.leader.filter(|_| is_own) else { return Ok(()) };
                let since = self.counts_since.get(&server).copied().unwrap_or(batch.time);
                return self.nobody_is_overdue(server, since, batch.time, witness);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The node, if the event follows from what it sent.
fn reported_by(event: &Event) -> Option<NodeId> {
    match event {
        Event::NodeRegistered(e) => Some(e.node),
        Event::NodeUpdated(e) => Some(e.node),
        Event::NodeStatusChanged(e) if !e.to.is_silent() => Some(e.node),
        _ => None,
    }
}

impl SilenceIsNoticed {
    fn nobody_is_overdue(
        &self,
        server: usize,
        since: Time,
        now: Time,
        witness: &Witness,
    ) -> Result<(), String> {
        let nodes = &witness.state.nodes;
        for row in nodes.rows().filter(|row| !nodes.hot(*row).gone) {
            let node = nodes.cold(row).id;
            let last = self.heard.get(&node).copied().unwrap_or(since);
            let overdue = last.plus(NOTICED_WITHIN) < now;
            if overdue && nodes.hot(row).status == NodeStatus::Ready {
                let silent = now.since(last).as_millis();
                return Err(format!(
                    "{node} is ready, and server {server} counted nothing of it for {silent} ms"
                ));
            }
        }
        Ok(())
    }
}
