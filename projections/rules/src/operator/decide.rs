use base::Index;
use model::event::{AutopilotConfigured, SchedulerConfigured};
use model::{Autopilot, Rejection, SchedulerRules};
use state::operator::{Configured, Operator};

use crate::decision::Decision;

/// Sets the autopilot's configuration: `only_at` its modify index, zero while there is none.
///
/// # Errors
/// [`Rejection::AutopilotInvalid`]; [`Rejection::AutopilotIndexMismatch`] when it was changed meanwhile.
pub fn set_autopilot(
    operator: &Operator,
    rules: &Autopilot,
    only_at: Option<Index>,
) -> Result<Decision, Rejection> {
    if let Some((field, expected)) = rules.unfit() {
        return Err(Rejection::AutopilotInvalid { field: field.into(), expected: expected.into() });
    }
    let before = operator.autopilot.as_ref();
    let at = Configured::index(before);
    if only_at.is_some_and(|wanted| wanted != at) {
        return Err(Rejection::AutopilotIndexMismatch { at });
    }
    if before.is_some_and(|before| before.rules == *rules) {
        return Ok(Decision::nothing());
    }
    Ok(AutopilotConfigured { rules: rules.clone() }.into())
}

/// Sets how the scheduler works: `only_at` the configuration's modify index, zero while there is none.
///
/// # Errors
/// [`Rejection::SchedulerIndexMismatch`] when it was changed meanwhile.
pub fn set_scheduler(
    operator: &Operator,
    rules: &SchedulerRules,
    only_at: Option<Index>,
) -> Result<Decision, Rejection> {
    let before = operator.scheduler.as_ref();
    let at = Configured::index(before);
    if only_at.is_some_and(|wanted| wanted != at) {
        return Err(Rejection::SchedulerIndexMismatch { at });
    }
    let sampled = before.is_some_and(|before| before.rules.sampled);
    Ok(configure(operator, SchedulerRules { sampled, ..rules.clone() }))
}

/// Sets whether nodes are sampled. The rest stays as it is.
pub fn set_sampling(operator: &Operator, sampled: bool) -> Decision {
    let rules = operator.scheduler.as_ref().map_or_else(SchedulerRules::default, |now| now.rules.clone());
    configure(operator, SchedulerRules { sampled, ..rules })
}

fn configure(operator: &Operator, rules: SchedulerRules) -> Decision {
    if operator.scheduler.as_ref().is_some_and(|before| before.rules == rules) {
        return Decision::nothing();
    }
    SchedulerConfigured { rules }.into()
}
