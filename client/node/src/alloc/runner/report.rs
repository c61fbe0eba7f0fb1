//! What an allocation tells the servers about itself.

use std::sync::Arc;

use base::Time;
use model::document::{AllocNetworkStatus, Allocation, TaskState, Timestamp};

use super::{AllocRunner, group, status};
use crate::alloc::health::Verdict;
use crate::clock;
use crate::task::events::{self, KillReason};
use crate::task::lifecycle;

impl AllocRunner {
    pub(super) fn with_deployment(&self, alloc: &Allocation) -> Allocation {
        let deployment_status = self.deployment.clone();
        Allocation { deployment_status, ..alloc.clone() }
    }

    /// Decides on the health; until it is certain returns when to look again.
    pub(super) fn judge(&mut self, now: Time) -> Option<Time> {
        let watch = self.health.as_ref()?;
        if self.stopping.as_ref().is_some_and(|stopping| stopping.kill.reason == KillReason::Stopped) {
            self.health = None;
            return None;
        }
        let healthy = match watch.judge(&self.roles, &self.tasks.states(), now) {
            Verdict::Open(at) => return Some(at),
            Verdict::Healthy => true,
            Verdict::Unhealthy(blamed) => {
                for (task, reason) in blamed {
                    self.tasks.add_event(&task, events::alloc_unhealthy(&reason));
                }
                false
            }
        };
        self.health = None;
        self.set_health(healthy, now);
        None
    }

    fn set_health(&mut self, healthy: bool, now: Time) {
        let mut known = self.deployment.clone().unwrap_or_default();
        known.healthy = Some(healthy);
        known.timestamp = Timestamp::from(now);
        self.context.store.put_deployment(&self.alloc.borrow().id, &known);
        self.deployment = Some(known);
    }

    /// Queues what the servers should know, if it differs from what was queued before.
    pub(super) fn report(&mut self) {
        let update = self.update();
        if self.reported.as_ref() != Some(&update) {
            let client_status = update.client_status.clone();
            self.facts.send_if_modified(|facts| {
                let changed = facts.client_status != client_status;
                facts.client_status = client_status;
                changed
            });
            self.context.updates.put(update.clone());
            self.reported = Some(update);
        }
    }

    pub(super) fn update(&mut self) -> Allocation {
        let alloc = Arc::clone(&self.alloc.borrow());
        let mut states = self.tasks.states();
        let (client_status, description) = match self.verdict {
            Some(verdict) if states.values().all(lifecycle::is_dead) => verdict,
            _ => status::of(&states),
        };
        let now = clock::now();
        if status::is_terminal(client_status) {
            for state in states.values_mut().filter(|state| state.finished_at.is_zero()) {
                // Not written down: the task may still be about to end.
                state.finished_at = self.finished_before(state, now);
            }
        }
        let unjudged = self.deployment.as_ref().is_none_or(|status| status.healthy.is_none());
        if client_status == "failed" && !alloc.deployment_id.is_empty() && unjudged {
            self.health = None;
            self.set_health(false, now);
        }
        Allocation {
            id: alloc.id.clone(),
            node_id: self.context.node().id.clone(),
            task_states: states.into_iter().collect(),
            client_status: client_status.to_string(),
            client_description: description.to_string(),
            deployment_status: self.deployment.clone(),
            network_status: Some(AllocNetworkStatus {
                dns: group(&alloc).and_then(|group| group.networks.first()?.dns.clone()),
                ..AllocNetworkStatus::default()
            }),
            ..Allocation::default()
        }
    }

    /// The end that an earlier report gave this task, so that equal reports stay equal; else now.
    fn finished_before(&self, state: &TaskState, now: Time) -> Timestamp {
        let reported = self.reported.iter().flat_map(|update| update.task_states.values());
        let same = reported.filter(|old| old.started_at == state.started_at && !old.finished_at.is_zero());
        same.map(|old| old.finished_at).next().unwrap_or(Timestamp::from(now))
    }
}
