//! How all tasks of an allocation are ended, in order.

use super::{AllocRunner, Step};
use crate::task::events::KillReason;
use crate::task::lifecycle::{self, Stage};
use crate::task::requests::Kill;

/// The order to stop all tasks.
#[derive(Debug)]
pub(super) struct Stopping {
    kill: Kill,
    /// The hooks have done what comes before the first signal.
    pub prekill_done: bool,
    /// Poststop tasks are stopped too, or never start.
    poststop_too: bool,
}

impl AllocRunner {
    /// Orders the end of all tasks, once: the first reason counts. A later order can still make it urgent.
    pub(super) fn stop(&mut self, reason: KillReason, at_once: bool) {
        let at_once = at_once || self.alloc.alloc().desired_transition.no_shutdown_delay == Some(true);
        let Some(stopping) = &mut self.stopping else {
            let kill = Kill { reason, at_once };
            self.stop_orders.send_replace(Some(kill.clone()));
            self.stopping = Some(Stopping { kill, prekill_done: false, poststop_too: false });
            self.run_step(|hooks, alloc| async move {
                hooks.prekill(&alloc).await;
                Step::Prekill
            });
            return;
        };
        if at_once && !stopping.kill.at_once {
            stopping.kill.at_once = true;
            self.stop_orders.send_replace(Some(stopping.kill.clone()));
            for channels in self.channels.values() {
                channels.kill.send_if_modified(|kill| match kill {
                    Some(kill) => !std::mem::replace(&mut kill.at_once, true),
                    None => false,
                });
            }
        }
    }

    pub(super) fn stop_poststop_too(&mut self) {
        self.stopping.iter_mut().for_each(|stopping| stopping.poststop_too = true);
    }

    /// Orders the next tasks in line to end, once the hooks are ready for it.
    pub(super) fn order_stops(&mut self) {
        let Some(stopping) = self.stopping.as_ref().filter(|stopping| stopping.prekill_done) else { return };
        let mut names = lifecycle::next_to_stop(&self.alloc.roles, &self.alloc.tasks.states());
        if stopping.poststop_too {
            let poststop = self.alloc.roles.iter().filter(|(_, role)| role.stage == Stage::Poststop);
            names.extend(poststop.map(|(name, _)| name.clone()));
        }
        for name in names {
            self.order_kill(&name, &stopping.kill);
        }
    }

    pub(super) fn order_kill(&self, name: &str, kill: &Kill) {
        if let Some(channels) = self.channels.get(name) {
            channels.kill.send_if_modified(|order| {
                let first = order.is_none();
                if first {
                    *order = Some(kill.clone());
                }
                first
            });
        }
    }
}
