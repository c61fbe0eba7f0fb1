use std::collections::{BTreeMap, BTreeSet};

use base::{Index, Time};
use model::command::{EvalEnd, Plan, Settlement, failed_groups};
use model::event::{EvalOutcome, PlanCommitted};
use model::{AllocId, Batch, CommandKind, EvalId, EvalStatus, Event, NodeId};
use state::{Delta, Moment, State};

use super::Past;

/// A decision as the log has it: what one settlement led to.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Of its batch, which was decided by the rules of an epoch, and of the command in that.
    pub index: Index,
    pub epoch: u16,
    pub command: u16,
    pub eval: EvalId,
    /// All that it follows from.
    pub snapshot: Index,
    pub seed: u64,
    pub now: Time,
    /// Of the end of its evaluation; empty unless it ended.
    pub description: String,
    pub status: Option<EvalStatus>,
    /// The plan was not accepted in full.
    pub partial: bool,
    pub effects: Effects,
}

/// What a settlement does. Of documents only what was decided is looked at: another release may write more into them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub placed: BTreeMap<AllocId, NodeId>,
    pub stopped: BTreeSet<AllocId>,
    pub preempted: BTreeSet<AllocId>,
    pub updated: BTreeSet<AllocId>,
    pub cut_off: BTreeSet<AllocId>,
    pub reconnected: BTreeSet<AllocId>,
    pub end: Option<End>,
}

/// How an evaluation ended: its status, what is still wanted of each group, and how many found no node.
pub(crate) type End = (String, BTreeMap<String, u32>, BTreeMap<String, u64>);

impl Effects {
    fn add(&mut self, event: &Event) {
        match event {
            Event::AllocsPlaced(of) => {
                self.placed.extend(of.ids.iter().copied().zip(of.nodes.iter().copied()));
            }
            Event::AllocsStopped(of) => self.stopped.extend(&of.allocs),
            Event::AllocsPreempted(of) => self.preempted.extend(&of.allocs),
            Event::AllocsUpdatedInPlace(of) => self.updated.extend(&of.allocs),
            Event::AllocsMarkedUnknown(of) => self.cut_off.extend(&of.allocs),
            Event::AllocsReconnected(of) => self.reconnected.extend(&of.allocs),
            Event::EvalUpdated(of) => self.end = Some(end(of.status, &of.outcome)),
            _ => {}
        }
    }

    fn of_events<'e>(events: impl IntoIterator<Item = &'e Event>) -> Effects {
        let mut effects = Effects::default();
        events.into_iter().for_each(|event| effects.add(event));
        effects
    }

    /// What a settlement wants, which is what it does if it is accepted in full.
    pub(crate) fn wanted(settlement: &Settlement) -> Effects {
        let Settlement { plan, end: ended, .. } = settlement;
        let Plan { placed, stopped, preempted, updated, unknown, reconnected, .. } = plan;
        let pairs = |placed: &model::event::AllocsPlaced| {
            placed.ids.iter().copied().zip(placed.nodes.iter().copied()).collect::<Vec<_>>()
        };
        Effects {
            placed: placed.iter().flat_map(pairs).collect(),
            stopped: stopped.iter().flat_map(|of| &of.allocs).copied().collect(),
            preempted: preempted.iter().flat_map(|of| &of.allocs).copied().collect(),
            updated: updated.iter().flat_map(|of| &of.allocs).copied().collect(),
            cut_off: unknown.iter().flat_map(|of| &of.allocs).copied().collect(),
            reconnected: reconnected.iter().flat_map(|of| &of.allocs).copied().collect(),
            end: ended.as_ref().map(|EvalEnd { status, outcome, .. }| end(*status, outcome)),
        }
    }
}

fn end(status: EvalStatus, outcome: &EvalOutcome) -> End {
    let queued = outcome.queued.iter().filter(|(_, count)| *count > 0).cloned().collect();
    let lacking = failed_groups(outcome)
        .into_iter()
        .map(|(group, failed)| (group, failed.coalesced_failures.max(0) as u64 + 1))
        .collect();
    (status.to_string(), queued, lacking)
}

/// The decisions of a batch.
pub(crate) fn decisions(batch: &Batch) -> Vec<Recorded> {
    let mut decisions = Vec::new();
    for same in batch.events.chunk_by(|one, other| one.command == other.command) {
        let record = &batch.commands[usize::from(same[0].command)];
        if CommandKind::from_number(record.kind) != Some(CommandKind::SettleEval) {
            continue;
        }
        let (mut plan, mut ended) = (None, None);
        for logged in same {
            match &logged.event {
                Event::PlanCommitted(committed) => plan = Some(committed),
                Event::EvalUpdated(updated) => ended = Some(updated),
                _ => {}
            }
        }
        let (snapshot, seed, now, eval) = match (plan, ended) {
            (Some(plan), _) => (plan.snapshot, plan.seed, plan.now, plan.eval),
            (None, Some(ended)) => {
                (ended.outcome.snapshot, ended.outcome.seed, ended.outcome.now, ended.eval)
            }
            (None, None) => continue,
        };
        decisions.push(Recorded {
            index: batch.index,
            epoch: batch.epoch,
            command: same[0].command,
            eval,
            snapshot,
            seed,
            now,
            description: ended.map(|ended| ended.description.clone()).unwrap_or_default(),
            status: ended.map(|ended| ended.status),
            partial: plan.is_some_and(|plan| !plan.rejected.is_empty()),
            effects: Effects::of_events(same.iter().map(|logged| &logged.event)),
        });
    }
    decisions
}

/// The verdict on the plan of an evaluation in a batch that placed an allocation.
pub(crate) fn plan_of(batch: &Batch, eval: EvalId, alloc: AllocId) -> Option<PlanCommitted> {
    let mut decisions = decisions(batch).into_iter();
    let found = decisions.find(|one| one.eval == eval && one.effects.placed.contains_key(&alloc))?;
    let mut events = batch.events.iter().filter(|logged| logged.command == found.command);
    events.find_map(|logged| match &logged.event {
        Event::PlanCommitted(plan) => Some(plan.clone()),
        _ => None,
    })
}

impl Recorded {
    /// The evaluation was given up after plans that were not accepted.
    pub(crate) fn is_given_up(&self) -> bool {
        self.status == Some(EvalStatus::Failed) && self.description.starts_with(placement::GIVEN_UP)
    }

    /// Its scheduler did not survive it: it must not be made again.
    pub(crate) fn is_quarantined(&self) -> bool {
        self.status.is_some_and(|status| placement::is_quarantine(status, &self.description))
    }

    /// The settlement leads to what the log has.
    pub(crate) fn is_settled_by(&self, past: Past<'_>, settlement: &Settlement) -> bool {
        self.settled_by(past, settlement).as_ref() == Ok(&self.effects)
    }

    /// What the settlement leads to where this one was decided.
    ///
    /// # Errors
    /// Why that cannot be found out, in words.
    pub(crate) fn settled_by(&self, past: Past<'_>, settlement: &Settlement) -> Result<Effects, String> {
        let wanted = Effects::wanted(settlement);
        if !self.partial && wanted == self.effects {
            return Ok(wanted);
        }
        // Between the snapshot and the decision something else may have happened.
        let state = self.state_before(past)?;
        let settled = rules::fork::settled(&state, settlement, state.time);
        match settled {
            Ok((_, decision)) => Ok(Effects::of_events(&decision.events)),
            Err(rejection) => Err(format!("it is not accepted any more: {rejection}")),
        }
    }

    /// The state that it was decided on: that of the batch before, and what was decided before it in its own.
    fn state_before(&self, past: Past<'_>) -> Result<State, String> {
        let before = past.state_at(Index(self.index.0.saturating_sub(1)))?;
        let batch = past.batch(self.index).map_err(|error| error.to_string())?;
        let batch = batch.ok_or_else(|| format!("batch {} is not in the log", self.index))?;
        let batch = batch.decode().map_err(|error| error.to_string())?;
        let mut state = State::clone(&before);
        let at = Moment { index: batch.index, time: batch.time, epoch: batch.epoch };
        let mut delta = Delta::default();
        for (number, record) in batch.commands.iter().enumerate().take(usize::from(self.command)) {
            let own = batch.events.iter().filter(|logged| usize::from(logged.command) == number);
            state.absorb(at, record, own.map(|logged| &logged.event), &mut delta);
        }
        Ok(state)
    }
}
