use model::event::AutopilotConfigured;

use super::state::{Configured, Operator};
use crate::Moment;

impl Operator {
    pub(crate) fn autopilot_configured(&mut self, at: Moment, event: &AutopilotConfigured) {
        let created = self.autopilot.as_ref().map_or(at.index, |before| before.created);
        self.autopilot = Some(Configured { rules: event.rules.clone(), created, modified: at.index });
    }
}
