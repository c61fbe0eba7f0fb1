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

#[cfg(test)]
mod tests {
    use base::Time;
    use model::{Actor, CommandRecord, Event, RequestId};
    use state::{Delta, Moment, State};

    use super::*;

    fn fold(state: &mut State, index: u64, events: &[Event]) {
        let at = Moment { index: Index(index), time: Time::ZERO, epoch: model::EPOCH };
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        state.absorb(at, &record, events.iter(), &mut Delta::default());
    }

    fn set(
        state: &mut State,
        rules: &Autopilot,
        only_at: Option<u64>,
        index: u64,
    ) -> Result<bool, Rejection> {
        let decision = set_autopilot(&state.operator, rules, only_at.map(Index))?;
        fold(state, index, &decision.events);
        Ok(!decision.events.is_empty())
    }

    #[test]
    fn a_configuration_is_set_against_the_one_that_was_seen() {
        let mut state = State::default();
        let (first, second) = (Autopilot::default(), Autopilot { min_quorum: 3, ..Autopilot::default() });
        let late = |at| Err(Rejection::AutopilotIndexMismatch { at: Index(at) });
        assert_eq!(set(&mut state, &first, Some(1), 7), late(0));
        assert_eq!(set(&mut state, &first, Some(0), 7), Ok(true));
        assert_eq!(set(&mut state, &second, Some(0), 8), late(7));
        assert_eq!(set(&mut state, &second, Some(7), 9), Ok(true));
        assert_eq!(set(&mut state, &first, None, 10), Ok(true));
        assert_eq!(set(&mut state, &first, None, 11), Ok(false), "nothing changes, so nothing is written");
        let expected = Configured { created: Index(7), modified: Index(10), rules: first };
        assert_eq!(state.operator.autopilot, Some(expected));
    }

    #[test]
    fn the_schedulers_configuration_is_set_against_the_one_that_was_seen() {
        let mut state = State::default();
        let mut set = |rules: &SchedulerRules, only_at: Option<u64>, index| {
            let decision = set_scheduler(&state.operator, rules, only_at.map(Index))?;
            fold(&mut state, index, &decision.events);
            Ok(state
                .operator
                .scheduler
                .clone()
                .map(|configured| (configured.created.0, configured.modified.0)))
        };
        let late = |at| Err(Rejection::SchedulerIndexMismatch { at: Index(at) });
        let (first, second) =
            (SchedulerRules::default(), SchedulerRules { pause_eval_broker: true, ..Default::default() });
        assert_eq!(set(&first, Some(1), 7), late(0));
        assert_eq!(set(&first, Some(0), 7), Ok(Some((7, 7))));
        assert_eq!(set(&second, Some(0), 8), late(7));
        assert_eq!(set(&second, Some(7), 8), Ok(Some((7, 8))));
        assert_eq!(set(&second, None, 9), Ok(Some((7, 8))), "nothing changes, so nothing is written");
    }

    #[test]
    fn a_configuration_that_makes_no_sense_names_its_field() {
        let wrong = Autopilot { last_contact_threshold_ns: 0, ..Autopilot::default() };
        let text = set(&mut State::default(), &wrong, None, 1).unwrap_err().to_string();
        assert_eq!(
            text,
            "invalid autopilot configuration: LastContactThreshold: expected a duration above zero"
        );
    }
}
