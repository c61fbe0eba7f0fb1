//! What an allocation reports to the servers.

use base::Time;
use model::document::{AllocNetworkStatus, Allocation, TaskState, Timestamp};

use super::{AllocRunner, group_of, status};
use crate::clock;
use crate::task::lifecycle;

impl AllocRunner {
    /// Queues what the servers should know, if it differs from what was queued before.
    pub(super) fn report(&mut self) {
        let update = self.update();
        if self.reported.as_ref() != Some(&update) {
            let client_status = update.client_status.clone();
            self.status.send_if_modified(|status| {
                let changed = status.client_status != client_status;
                status.client_status = client_status;
                changed
            });
            self.alloc.context.updates.put(update.clone());
            self.reported = Some(update);
        }
    }

    /// Sends even what the servers have acknowledged: their state may have been restored from an older one.
    pub(super) fn report_again(&mut self) {
        let update = self.update();
        self.alloc.context.updates.put_again(update.clone());
        self.reported = Some(update);
    }

    pub(super) fn update(&mut self) -> Allocation {
        let alloc = self.alloc.alloc();
        let mut states = self.alloc.tasks.states();
        let (client_status, description) = match self.final_status {
            Some(status) if states.values().all(lifecycle::is_dead) => status,
            _ => status::of(&states),
        };
        let now = clock::now();
        if status::is_terminal(client_status) {
            for state in states.values_mut().filter(|state| state.finished_at.is_zero()) {
                // Not stored: the task may still be about to end.
                state.finished_at = self.finished_before(state, now);
            }
        }
        if client_status == "failed" && !alloc.deployment_id.is_empty() && !self.alloc.is_health_known() {
            self.alloc.set_health(false, now);
        }
        Allocation {
            id: alloc.id.clone(),
            node_id: self.alloc.context.node().id.clone(),
            task_states: states.into_iter().collect(),
            client_status: client_status.to_string(),
            client_description: description.to_string(),
            deployment_status: self.alloc.deployment_status(),
            network_status: Some(self.network_status(&alloc)),
            ..Allocation::default()
        }
    }

    /// After its end the network is gone, and the servers keep what it was.
    fn network_status(&self, alloc: &Allocation) -> AllocNetworkStatus {
        let before = self.reported.as_ref().and_then(|update| update.network_status.clone());
        let wanted = || group_of(alloc).and_then(|group| group.networks.first()?.dns.clone());
        match self.alloc.context.networks.find(&self.alloc.id).map(|network| network.status) {
            Some(status) => AllocNetworkStatus {
                interface_name: status.interface,
                address: status.address,
                address_i_pv6: status.address_v6,
                dns: status.dns.or_else(wanted),
            },
            None => AllocNetworkStatus { dns: wanted(), ..before.unwrap_or_default() },
        }
    }

    /// The end that an earlier report gave this task, so that equal reports stay equal; else now.
    fn finished_before(&self, state: &TaskState, now: Time) -> Timestamp {
        let reported = self.reported.iter().flat_map(|update| update.task_states.values());
        let same = reported.filter(|old| old.started_at == state.started_at && !old.finished_at.is_zero());
        same.map(|old| old.finished_at).next().unwrap_or(Timestamp::from(now))
    }
}
