#![warn(clippy::wildcard_enum_match_arm)]

use base::Index;
use model::event::{AutopilotConfigured, SchedulerConfigured};

use super::state::{Configured, Operator};
use crate::moment::Moment;

impl Operator {
    pub(crate) fn autopilot_configured(&mut self, at: Moment, event: &AutopilotConfigured) {
        set(&mut self.autopilot, at.index, event.rules.clone());
    }

    pub(crate) fn scheduler_configured(&mut self, at: Moment, event: &SchedulerConfigured) {
        set(&mut self.scheduler, at.index, event.rules.clone());
    }
}

fn set<R>(configured: &mut Option<Configured<R>>, now: Index, rules: R) {
    let created = configured.as_ref().map_or(now, |before| before.created);
    *configured = Some(Configured { rules, created, modified: now });
}
