//! Ends an allocation that has run for as long as its group allows.

use base::Time;

use super::{AllocContext, AllocHook, Check, StopOrder, group_of};
use crate::task::events::KillReason;
use crate::task::lifecycle::is_dead;

const DESCRIPTION: &str = "allocation exceeded max_run_duration";

/// Without a state of its own: the time is counted from the creation of the allocation, so a restart of the agent
/// does not prolong it.
#[derive(Debug)]
pub struct MaxRunDuration;

impl AllocHook for MaxRunDuration {
    fn name(&self) -> &'static str {
        "max_run_duration"
    }

    fn check(&self, alloc: &AllocContext, now: Time) -> Check {
        let newest = alloc.alloc();
        let longest =
            group_of(&newest).and_then(|group| group.max_run_duration).filter(|longest| longest.0.0 > 0);
        let Some(longest) = longest else { return Check::default() };
        if alloc.tasks.states().values().all(is_dead) {
            return Check::default();
        }
        let end = Time(newest.create_time).plus(longest.0);
        if now < end {
            return Check { again_at: Some(end), stop: None };
        }
        let reason = KillReason::Because(DESCRIPTION.to_string());
        Check { again_at: None, stop: Some(StopOrder { reason, status: ("complete", DESCRIPTION) }) }
    }
}
