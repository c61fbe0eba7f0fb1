//! Which allocations are to be replaced, now or later (section 4.5).

use base::{Duration, Time};
use model::{ClientStatus, Trigger};
use state::alloc::Alloc;

use super::Situation;
use super::classify::{Fate, fate, replaces};
use super::sets::Set;
use crate::reschedule;

/// Two clocks may differ by this: what is due so soon is due.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// Moments closer than this to the first of them share a follow-up evaluation.
pub const WINDOW: Duration = Duration::from_secs(5);

/// What became of a set of allocations.
#[derive(Debug, Default)]
pub struct Due<'a> {
    pub untainted: Set<'a>,
    pub now: Set<'a>,
    pub later: Vec<(Time, &'a Alloc)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Has been replaced or is to be replaced by a fresh one: does not count.
    Skip,
    Stays,
    Candidate(Option<Time>),
}

impl<'a> Due<'a> {
    /// Of allocations on nodes that are heard, and of cut-off ones whose node stays silent.
    ///
    /// `lost` are the allocations that this pass gives up: they replace nothing any more.
    pub fn of(cx: &Situation<'a>, set: &Set<'a>, lost: &Set<'a>) -> Due<'a> {
        Due::split(cx, set, |alloc| {
            if alloc.next.is_some() && alloc.is_terminal() {
                Verdict::Skip
            } else if alloc.client == ClientStatus::Unknown && !alloc.is_stopping() {
                of_unknown(cx, alloc, lost)
            } else if cx.job.current().kind.is_batch() {
                of_batch(cx, alloc)
            } else {
                of_service(cx, alloc)
            }
        })
    }

    /// Of allocations whose node falls silent in this pass.
    pub fn of_disconnecting(cx: &Situation<'a>, set: &Set<'a>) -> Due<'a> {
        Due::split(cx, set, |alloc| {
            if !replaces(alloc) {
                return Verdict::Stays;
            }
            Verdict::Candidate(reschedule::due(cx.state, alloc, cx.now))
        })
    }

    fn split(cx: &Situation<'a>, set: &Set<'a>, judge: impl Fn(&'a Alloc) -> Verdict) -> Due<'a> {
        let mut due = Due::default();
        for alloc in set.iter() {
            match judge(alloc) {
                Verdict::Skip => {}
                // A deployment decides itself what becomes of its members.
                Verdict::Candidate(_) if cx.rollout.active().is_some() && is_member(cx, alloc) => {
                    due.untainted.insert(alloc);
                }
                Verdict::Candidate(_) if alloc.transition.force_reschedule && alloc.client.is_terminal() => {
                    due.now.insert(alloc);
                }
                Verdict::Candidate(Some(time)) if is_due(cx, alloc, time) => due.now.insert(alloc),
                Verdict::Candidate(Some(time)) => {
                    // No substitute yet: until then it counts as if it ran.
                    due.untainted.insert(alloc);
                    due.later.push((time, alloc));
                }
                Verdict::Stays | Verdict::Candidate(None) => due.untainted.insert(alloc),
            }
        }
        due
    }
}

/// Part of the wanted version's deployment, which has not asked for it to be replaced.
fn is_member(cx: &Situation, alloc: &Alloc) -> bool {
    cx.rollout.holds(alloc) && !alloc.transition.reschedule
}

/// The reference replaces an unknown allocation only in the one evaluation that was made for it. Here any
/// evaluation does, so that an evaluation that found no room, or was canceled, loses nothing.
fn of_unknown<'a>(cx: &Situation<'a>, alloc: &'a Alloc, lost: &Set<'a>) -> Verdict {
    let since = alloc.last_unknown();
    // P1: once its node is heard again, it is the original's turn.
    if fate(cx.state, alloc) == Fate::Present
        || !replaces(alloc)
        || since == Time::ZERO
        || is_replaced(cx, alloc, lost)
    {
        return Verdict::Stays;
    }
    Verdict::Candidate(reschedule::due(cx.state, alloc, since))
}

fn of_service(cx: &Situation, alloc: &Alloc) -> Verdict {
    let ended = matches!(alloc.client, ClientStatus::Complete | ClientStatus::Lost);
    if alloc.is_stopping() || ended {
        return Verdict::Skip;
    }
    Verdict::Candidate(reschedule::due_after_failure(cx.state, alloc))
}

fn of_batch(cx: &Situation, alloc: &Alloc) -> Verdict {
    if alloc.transition.disable_placement {
        return Verdict::Stays;
    }
    if alloc.transition.reschedule {
        return Verdict::Candidate(reschedule::due_after_failure(cx.state, alloc));
    }
    if alloc.is_stopping() {
        return if alloc.ran_successfully() { Verdict::Stays } else { Verdict::Skip };
    }
    match alloc.client {
        ClientStatus::Failed => Verdict::Candidate(reschedule::due_after_failure(cx.state, alloc)),
        _ => Verdict::Stays,
    }
}

fn is_due(cx: &Situation, alloc: &Alloc, time: Time) -> bool {
    let own = alloc.follow_up == Some(cx.eval_id());
    own || time.since(cx.now) <= CLOCK_TOLERANCE || is_awaited(cx, time)
}

/// This evaluation was made for allocations that are due in its window. Which ones is not stored with
/// those that failed: their due time says it.
fn is_awaited(cx: &Situation, time: Time) -> bool {
    let facts = &cx.eval.facts;
    let made_for_it = matches!(facts.trigger, Trigger::RescheduleLater | Trigger::AllocFailure);
    made_for_it && facts.wait_until != Time::ZERO && time.since(facts.wait_until) < WINDOW
}

/// Some successor, however far down the chain, is still wanted and not being given up.
pub fn is_replaced<'a>(cx: &Situation<'a>, alloc: &'a Alloc, lost: &Set<'a>) -> bool {
    successors(cx, alloc).any(|successor| !successor.is_stopping() && !lost.contains(successor))
}

/// The allocations that replaced one, nearest first.
pub fn successors<'a>(cx: &Situation<'a>, alloc: &'a Alloc) -> impl Iterator<Item = &'a Alloc> {
    let state = cx.state;
    let next = move |alloc: &&'a Alloc| alloc.next.and_then(|id| state.allocs.lookup(id));
    // A chain is as long as its allocations are many: the bound only guards against a damaged log.
    std::iter::successors(next(&alloc), next).take(cx.job.allocs.len())
}
