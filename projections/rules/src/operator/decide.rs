use base::{Index, Time};
use model::event::{AutopilotConfigured, EpochRaised, Event, HistoryDropped, SchedulerConfigured};
use model::{Autopilot, EPOCH, Rejection, SchedulerRules};
use state::State;
use state::operator::{Configured, Operator};

use crate::decision::Decision;

/// Lets the cluster write what came with an epoch. Whoever asks has made sure that every server knows it.
///
/// # Errors
/// [`Rejection::EpochUnknown`].
pub(crate) fn raise_epoch(now: u16, epoch: u16) -> Result<Decision, Rejection> {
    match epoch {
        _ if epoch > EPOCH => Err(Rejection::EpochUnknown(epoch)),
        _ if epoch <= now => Ok(Decision::nothing()),
        _ => Ok(EpochRaised { epoch }.into()),
    }
}

/// Writes down from which batch on a server has history. Said again it changes nothing. It may be an older one than before: an archive
/// that was away is back.
pub(crate) fn note_dropped_history(
    state: &State,
    server: &str,
    oldest: Index,
    time: Time,
) -> Result<Decision, Rejection> {
    if state.dropped_history.get(server).is_some_and(|known| known.oldest == oldest) {
        return Ok(Decision::nothing());
    }
    Ok(HistoryDropped { server: server.to_string(), oldest, time }.into())
}

/// Rejects what servers of an older release, which may still be in the cluster, would not understand. What a leader does by
/// itself has to ask for the state's epoch before.
///
/// # Errors
/// [`Rejection::EpochTooLow`].
pub(crate) fn check_epoch(epoch: u16, events: &[Event]) -> Result<(), Rejection> {
    let newest = events.iter().map(Event::since).max().unwrap_or(epoch);
    if newest > epoch { Err(Rejection::EpochTooLow { needed: newest, epoch }) } else { Ok(()) }
}

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
