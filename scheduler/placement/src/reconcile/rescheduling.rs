//! Which allocations are rescheduled, now or later.

use std::collections::BTreeSet;

use base::{Duration, Time};
use model::{AllocId, ClientStatus, Trigger};
use state::alloc::Alloc;

use super::PassContext;
use super::alloc_set::AllocSet;
use super::classify::{NodeCondition, node_condition, replaces};
use crate::reschedule::{self, WINDOW, successors};

/// The tolerance for clocks that differ: what is due this soon is due now.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// A set of allocations, divided by when they are rescheduled.
#[derive(Debug, Default)]
pub struct Rescheduling<'a> {
    pub untainted: AllocSet<'a>,
    pub now: AllocSet<'a>,
    pub later: Vec<(Time, &'a Alloc)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// It was replaced, or a new allocation takes its place: it does not count.
    Skip,
    Stays,
    Candidate(Option<Time>),
}

impl<'a> Rescheduling<'a> {
    /// For allocations on connected nodes, and for unknown ones whose node stays disconnected.
    pub fn of(cx: &PassContext<'a>, set: &AllocSet<'a>, leaving: &Leaving) -> Rescheduling<'a> {
        Rescheduling::split(cx, set, |alloc| {
            if is_superseded(cx, alloc, leaving) {
                Decision::Skip
            } else if alloc.client == ClientStatus::Unknown && !alloc.is_stopping() {
                of_unknown(cx, alloc, leaving)
            } else if cx.job.current().kind.is_batch() {
                of_batch(cx, alloc)
            } else {
                of_service(cx, alloc)
            }
        })
    }

    /// For allocations that become unknown in this pass.
    pub fn of_disconnecting(cx: &PassContext<'a>, set: &AllocSet<'a>) -> Rescheduling<'a> {
        Rescheduling::split(cx, set, |alloc| {
            if !replaces(alloc) {
                return Decision::Stays;
            }
            Decision::Candidate(reschedule::due(cx.state, alloc, cx.now))
        })
    }

    fn split(
        cx: &PassContext<'a>,
        set: &AllocSet<'a>,
        decide: impl Fn(&'a Alloc) -> Decision,
    ) -> Rescheduling<'a> {
        let (mut untainted, mut now, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for alloc in set.iter() {
            match decide(alloc) {
                Decision::Skip => {}
                // The deployment decides what becomes of its members.
                Decision::Candidate(_) if cx.rollout.active().is_some() && is_member(cx, alloc) => {
                    untainted.push(alloc);
                }
                Decision::Candidate(_) if alloc.transition.force_reschedule && alloc.client.is_terminal() => {
                    now.push(alloc);
                }
                Decision::Candidate(Some(time)) if is_due(cx, alloc, time) => now.push(alloc),
                Decision::Candidate(Some(time)) => {
                    // Until it is replaced it counts as if it ran.
                    untainted.push(alloc);
                    later.push((time, alloc));
                }
                Decision::Stays | Decision::Candidate(None) => untainted.push(alloc),
            }
        }
        let set = |allocs: Vec<&'a Alloc>| allocs.into_iter().collect();
        Rescheduling { untainted: set(untainted), now: set(now), later }
    }
}

/// It is part of the current deployment, which has not requested that it be rescheduled.
fn is_member(cx: &PassContext, alloc: &Alloc) -> bool {
    cx.rollout.holds(alloc) && !alloc.transition.reschedule
}

/// Nomad replaces an unknown allocation only in the one evaluation that was created for it. Here any evaluation does,
/// so that nothing is lost if that evaluation found no room or was canceled.
fn of_unknown(cx: &PassContext, alloc: &Alloc, leaving: &Leaving) -> Decision {
    let since = alloc.last_unknown();
    // P1: once its node is connected again, the original goes on.
    if node_condition(cx.state, alloc) == NodeCondition::Present
        || !replaces(alloc)
        || since == Time::ZERO
        || is_replaced(cx, alloc, leaving)
    {
        return Decision::Stays;
    }
    Decision::Candidate(reschedule::due(cx.state, alloc, since))
}

fn of_service(cx: &PassContext, alloc: &Alloc) -> Decision {
    let ended = matches!(alloc.client, ClientStatus::Complete | ClientStatus::Lost);
    if alloc.is_stopping() || ended {
        return Decision::Skip;
    }
    Decision::Candidate(reschedule::due_after_failure(cx.state, alloc))
}

fn of_batch(cx: &PassContext, alloc: &Alloc) -> Decision {
    if alloc.transition.disable_placement {
        return Decision::Stays;
    }
    if alloc.transition.reschedule {
        return Decision::Candidate(reschedule::due_after_failure(cx.state, alloc));
    }
    if alloc.is_stopping() {
        return if alloc.ran_successfully() { Decision::Stays } else { Decision::Skip };
    }
    match alloc.client {
        ClientStatus::Failed => Decision::Candidate(reschedule::due_after_failure(cx.state, alloc)),
        _ => Decision::Stays,
    }
}

fn is_due(cx: &PassContext, alloc: &Alloc, time: Time) -> bool {
    let own = alloc.follow_up == Some(cx.eval_id());
    own || time.since(cx.now) <= CLOCK_TOLERANCE || is_awaited(cx, time)
}

/// This evaluation was created for allocations that are due in its window. A failed allocation does not store which
/// evaluation it waits for: that follows from its due time.
fn is_awaited(cx: &PassContext, time: Time) -> bool {
    let facts = &cx.eval.facts;
    let made_for_it = matches!(facts.trigger, Trigger::RescheduleLater | Trigger::AllocFailure);
    made_for_it && facts.wait_until != Time::ZERO && time.since(facts.wait_until) < WINDOW
}

/// It has ended, and a successor took its place. Not so an original that reconnected and was kept: its replacement was
/// stopped, and when it ends later it counts like any other.
fn is_superseded(cx: &PassContext, alloc: &Alloc, leaving: &Leaving) -> bool {
    alloc.next.is_some() && (alloc.is_stopping() || alloc.is_terminal() && is_replaced(cx, alloc, leaving))
}

/// Allocations that this pass has already stopped or marked as lost: they replace nothing any more.
pub type Leaving = BTreeSet<AllocId>;

/// Some successor, however far down the chain, is neither being stopped nor leaving.
pub fn is_replaced(cx: &PassContext, alloc: &Alloc, leaving: &Leaving) -> bool {
    successors(cx.state, alloc).any(|successor| !successor.is_stopping() && !leaving.contains(&successor.id))
}
