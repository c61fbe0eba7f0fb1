//! Decisions of the scheduler that are made again from the log, and compared with what stands there.
//!
//! [`past`] is what of the log may be looked at, [`recorded`] a decision as the log has it, [`round`] the plans that came
//! before it in its round, [`regression`] the decisions of a part of the log, one after the other.

mod past;
mod recorded;
mod regression;
mod round;

pub(crate) use past::Past;
pub(crate) use recorded::{Recorded, decisions, plan_of};
pub(crate) use regression::{Regression, regression};
pub(crate) use round::plan_ahead;

use base::Index;
use model::EvalId;
use placement::Outcome;

/// Whether the decision comes out as the log has it in the batch at this index; `None` when the log does not say.
pub(crate) fn as_logged(
    past: Past<'_>,
    at: Index,
    eval: EvalId,
    seed: u64,
    outcome: &Outcome,
) -> Option<bool> {
    let batch = past.batch(at).ok()??.decode().ok()?;
    let logged =
        decisions(&batch).into_iter().find(|decision| decision.eval == eval && decision.seed == seed);
    match logged {
        Some(logged) => Some(logged.is_settled_by(past, &outcome.settlement)),
        None => outcome.settlement.plan.is_empty().then_some(true),
    }
}
