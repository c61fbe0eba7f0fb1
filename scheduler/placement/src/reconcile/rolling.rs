//! The pace of a destructive update of a sysbatch job, which has no deployment.
//!
//! A new allocation is settled when it is terminal, or has been running unchanged for the group's `min_healthy_time`.
//! At most `max_parallel` may be unsettled; the rest waits for a follow-up evaluation.

use base::{Duration, Time};
use model::ClientStatus;
use model::document::TaskGroup;
use state::alloc::Alloc;

use super::PassContext;
use super::deployment::{max_parallel, update_block};

/// The defaults that job canonicalisation fills in.
const MIN_HEALTHY_TIME: Duration = Duration::from_secs(10);
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

/// How long an allocation usually takes from being placed to running. It makes no sense to look sooner.
const START: Duration = Duration::from_secs(5);

/// What an update may do in this pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateAllowance {
    /// Allocations that may be replaced now.
    pub allowance: usize,
    /// If some have to wait: when to look again.
    pub again: NextCheck,
}

/// When to look at an update again. Never, if nothing changed within the progress deadline or nothing can be placed:
/// then the update continues with the next evaluation of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextCheck {
    /// The next unsettled one may have settled.
    pub settled: Option<Time>,
    /// What this pass places may have settled, if anything is placed.
    pub placed: Option<Time>,
}

impl NextCheck {
    pub fn or(self, other: NextCheck) -> NextCheck {
        let sooner = |one: Option<Time>, other: Option<Time>| one.into_iter().chain(other).min();
        NextCheck { settled: sooner(self.settled, other.settled), placed: sooner(self.placed, other.placed) }
    }

    /// The time, once it is known whether the pass placed anything.
    pub fn at(self, placed: bool) -> Option<Time> {
        self.settled.into_iter().chain(self.placed.filter(|_| placed)).min()
    }
}

impl UpdateAllowance {
    const FREE: UpdateAllowance =
        UpdateAllowance { allowance: usize::MAX, again: NextCheck { settled: None, placed: None } };
}

/// How many allocations may be replaced now. `members` are those that stay in the group, of any version.
pub fn allowance<'a>(
    cx: &PassContext,
    group: &TaskGroup,
    members: impl Iterator<Item = &'a Alloc>,
) -> UpdateAllowance {
    let Some(update) = update_block(&cx.job.current().job, group) else { return UpdateAllowance::FREE };
    let Some(parallel) = max_parallel(update) else { return UpdateAllowance::FREE };
    let span = |span: Option<model::document::Duration>, default| span.map_or(default, |span| span.0);
    let healthy = span(update.min_healthy_time, MIN_HEALTHY_TIME);
    let patience = span(update.progress_deadline, PROGRESS_DEADLINE);
    let patience = if patience <= Duration::ZERO { PROGRESS_DEADLINE } else { patience };
    let from_start = cx.now.plus(Duration(healthy.0.saturating_add(START.0)));
    let mut again = NextCheck::default();
    let mut newest = Time::ZERO;
    let mut unsettled = 0;
    for alloc in members.filter(|alloc| cx.is_current(&alloc.version)) {
        let settles = alloc.modify_time.plus(healthy);
        let runs = alloc.client == ClientStatus::Running;
        if runs && settles <= cx.now {
            continue;
        }
        unsettled += 1;
        newest = newest.max(alloc.create_time);
        let expected = if runs { settles } else { from_start };
        again = again.or(NextCheck { settled: Some(expected), placed: None });
    }
    let allowance = parallel.saturating_sub(unsettled);
    if allowance > 0 {
        again.placed = Some(from_start);
    } else if newest.plus(patience) <= cx.now {
        again.settled = None;
    }
    UpdateAllowance { allowance, again }
}
