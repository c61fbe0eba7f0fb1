//! Decisions of a part of the log, made again one after the other by this program.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use api::{DecisionAgain, DecisionsAgain, PlacementAgain};
use base::{Index, Time};
use control::worker::GROUP_MAX;
use history::{History, HistoryError};
use model::{Algorithm, AllocId, Batch, EvalId, FIRST_EPOCH, NodeId};
use state::State;
use state::eval::Eval;
use state::operator::Configured;

use super::Past;
use super::recorded::{Effects, Recorded, decisions};
use super::round::{Ahead, PLANNED_WITHIN, again, ended};

/// Log that is looked at at once, about.
const PART_BYTES: usize = 4 << 20;

/// Decisions that are made again at once, and the rest of the batch: a second or two.
const PART_DECISIONS: usize = 2_000;

/// Decisions of a part that are listed. The counts are of all.
const LISTED_MAX: usize = 500;

/// Allocations of a decision that are listed.
const PLACEMENTS_MAX: usize = 64;

/// How a part of the log is made again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Regression {
    /// Scheduled by this algorithm instead of the one that was configured.
    pub algorithm: Option<Algorithm>,
}

/// Makes the decisions again that came after `from`, as many as a part has.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn regression(
    history: &History,
    from: Index,
    how: Regression,
) -> Result<DecisionsAgain, HistoryError> {
    let past = Past { history, fork_of: None };
    let newest = history.newest();
    let part = read(history, from, newest)?;
    let mut report = Report {
        past,
        how,
        answer: DecisionsAgain { from: from.0, to: part.to.0, newest: newest.0, ..DecisionsAgain::default() },
    };
    for ((snapshot, now), planned) in &part.rounds {
        report.rounds(from, *snapshot, *now, planned, &part.ended);
    }
    report.answer.differences.sort_by_key(|one| one.index);
    Ok(report.answer)
}

/// Plans by their seeds, of one snapshot and one time.
type Planned = BTreeMap<u64, Recorded>;

#[derive(Default)]
struct Part {
    to: Index,
    rounds: BTreeMap<(Index, Time), Planned>,
    ended: BTreeSet<EvalId>,
}

/// Reads a part of the log, and what of the rounds in it came before.
fn read(history: &History, from: Index, newest: Index) -> Result<Part, HistoryError> {
    let mut part = Part { to: from, ..Part::default() };
    let (mut bytes, mut found) = (0, 0);
    while part.to < newest && bytes < PART_BYTES && found < PART_DECISIONS {
        let Some(batch) = history.batch(part.to.next())? else { break };
        bytes += batch.bytes().len();
        let batch = batch.decode()?;
        found += part.add(&batch, |_| true);
        part.to = batch.index;
    }
    let begun: BTreeSet<(Index, Time)> = part.rounds.keys().copied().filter(|(at, _)| *at < from).collect();
    let Some((first, _)) = begun.first() else { return Ok(part) };
    for index in first.0.max(from.0.saturating_sub(PLANNED_WITHIN)) + 1..=from.0 {
        match history.batch(Index(index)) {
            Ok(Some(batch)) => {
                part.add(&batch.decode()?, |one| begun.contains(&(one.snapshot, one.now)));
            }
            // What is no longer kept is found missing when its state is.
            Ok(None) | Err(HistoryError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(part)
}

impl Part {
    fn add(&mut self, batch: &Batch, is_wanted: impl Fn(&Recorded) -> bool) -> usize {
        let own: Vec<Recorded> = decisions(batch).into_iter().filter(is_wanted).collect();
        let count = own.len();
        for one in own {
            self.rounds.entry((one.snapshot, one.now)).or_default().insert(one.seed, one);
        }
        self.ended.extend(ended(batch));
        count
    }
}

struct Report<'h> {
    past: Past<'h>,
    how: Regression,
    answer: DecisionsAgain,
}

impl Report<'_> {
    /// Rounds of one snapshot and time: seeds that are far apart are of different workers.
    fn rounds(
        &mut self,
        from: Index,
        snapshot: Index,
        now: Time,
        planned: &Planned,
        ended: &BTreeSet<EvalId>,
    ) {
        let state = match self.past.state_at(snapshot) {
            Ok(state) => self.scheduled_by(&state),
            Err(why) => {
                planned.values().filter(|one| one.index > from).for_each(|one| self.unmade(None, one, &why));
                return;
            }
        };
        let none = BTreeSet::new();
        // With other settings a plan that is missing shows in nothing.
        let ended = if self.how.algorithm.is_some() { &none } else { ended };
        let mut ahead = Ahead::new(self.past, &state, ended, now);
        let (mut last, mut broken): (Option<u64>, Option<EvalId>) = (None, None);
        for recorded in planned.values() {
            if last.is_some_and(|last| recorded.seed - last >= GROUP_MAX as u64) {
                (ahead, broken) = (Ahead::new(self.past, &state, ended, now), None);
            }
            last = Some(recorded.seed);
            self.decision(&mut ahead, recorded, recorded.index > from, &mut broken);
        }
    }

    fn scheduled_by(&self, state: &State) -> State {
        let mut state = state.clone();
        if let Some(algorithm) = self.how.algorithm {
            let index = state.index;
            let unset = Configured { rules: Default::default(), created: index, modified: index };
            state.operator.scheduler.get_or_insert(unset).rules.algorithm = algorithm;
        }
        state
    }

    /// Makes one decision again. Once one of a round comes out differently, those after it rest on another plan.
    fn decision(
        &mut self,
        ahead: &mut Ahead<'_>,
        recorded: &Recorded,
        is_asked: bool,
        broken: &mut Option<EvalId>,
    ) {
        if recorded.is_quarantined() {
            if is_asked {
                self.unmade(None, recorded, "it ended a scheduler, and is not made again");
            }
            return;
        }
        let made = catch_unwind(AssertUnwindSafe(|| {
            ahead.come_to(recorded);
            again(&ahead.state, recorded)
        }));
        let eval = ahead.state.evals.lookup(recorded.eval);
        let settlement = match made {
            Ok(Some(settlement)) => settlement,
            Ok(None) => {
                let snapshot = recorded.snapshot;
                let why = format!("the state at index {snapshot} does not know the evaluation");
                return if is_asked {
                    self.unmade(eval, recorded, &why)
                };
            }
            Err(panic) => {
                let why = format!("the scheduler panicked: {}", base::panic_text(&*panic));
                return if is_asked {
                    self.unmade(eval, recorded, &why)
                };
            }
        };
        if is_asked {
            self.answer.decisions += 1;
            match recorded.settled_by(self.past, &settlement) {
                Ok(effects) if effects == recorded.effects => self.answer.same += 1,
                settled => {
                    let rests_on = *broken;
                    broken.get_or_insert(recorded.eval);
                    self.differs(&ahead.state, eval, recorded, settled, rests_on);
                }
            }
        }
        ahead.put_made(recorded, &settlement);
    }

    fn unmade(&mut self, eval: Option<&Eval>, recorded: &Recorded, why: &str) {
        self.answer.decisions += 1;
        self.answer.not_made += 1;
        self.list(DecisionAgain { reason: why.to_string(), ..named(eval, recorded) });
    }

    fn differs(
        &mut self,
        state: &State,
        eval: Option<&Eval>,
        recorded: &Recorded,
        settled: Result<Effects, String>,
        rests_on: Option<EvalId>,
    ) {
        self.answer.differing += 1;
        let mut shown = DecisionAgain { made: true, ..named(eval, recorded) };
        match settled {
            Ok(now) => {
                let (placements, cut_short) = placements(state, &recorded.effects, &now);
                (shown.placements, shown.cut_short) = (placements.into(), cut_short);
                shown.changes = changes(&recorded.effects, &now).into();
            }
            Err(why) => shown.changes = vec![why].into(),
        }
        shown.reason = self.reason(recorded, rests_on);
        self.list(shown);
    }

    /// As far as it is known. Otherwise it is this release that decides differently.
    fn reason(&self, recorded: &Recorded, rests_on: Option<EvalId>) -> String {
        let mut reasons = Vec::new();
        if let Some(before) = rests_on {
            reasons.push(format!("it rests on the plan for evaluation {before}, which differs"));
        }
        if let Some(algorithm) = self.how.algorithm {
            reasons.push(format!("scheduled by {algorithm}"));
        }
        let epoch = recorded.epoch;
        if epoch < FIRST_EPOCH {
            reasons.push(format!(
                "it was decided by the rules of epoch {epoch}, and these are of {FIRST_EPOCH}"
            ));
        }
        reasons.join("; ")
    }

    fn list(&mut self, shown: DecisionAgain) {
        if self.answer.differences.len() < LISTED_MAX {
            self.answer.differences.push(shown);
        } else {
            self.answer.cut_short = true;
        }
    }
}

fn named(eval: Option<&Eval>, recorded: &Recorded) -> DecisionAgain {
    let facts = eval.map(|eval| &eval.facts);
    DecisionAgain {
        index: recorded.index.0,
        snapshot: recorded.snapshot.0,
        eval_id: recorded.eval.to_string(),
        namespace: facts.map(|facts| facts.key.namespace.clone()).unwrap_or_default(),
        job_id: facts.map(|facts| facts.key.id.clone()).unwrap_or_default(),
        triggered_by: facts.map(|facts| facts.trigger.to_string()).unwrap_or_default(),
        ..DecisionAgain::default()
    }
}

/// Allocations that are placed on another node, or by one of the two only.
fn placements(state: &State, logged: &Effects, now: &Effects) -> (Vec<PlacementAgain>, bool) {
    let all: BTreeSet<AllocId> = logged.placed.keys().chain(now.placed.keys()).copied().collect();
    let mut differing = all.into_iter().filter(|id| logged.placed.get(id) != now.placed.get(id));
    let name = |node: Option<&NodeId>| {
        let row = node.and_then(|node| state.nodes.find(*node));
        row.map(|row| state.nodes.cold(row).document.name.clone()).unwrap_or_default()
    };
    let id = |node: Option<&NodeId>| node.map(ToString::to_string).unwrap_or_default();
    let shown = differing.by_ref().take(PLACEMENTS_MAX).map(|alloc| {
        let (before, after) = (logged.placed.get(&alloc), now.placed.get(&alloc));
        PlacementAgain {
            id: alloc.to_string(),
            logged_node_id: id(before),
            logged_node_name: name(before),
            node_id: id(after),
            node_name: name(after),
        }
    });
    let shown = shown.collect();
    (shown, differing.next().is_some())
}

/// What else differs, in words.
fn changes(logged: &Effects, now: &Effects) -> Vec<String> {
    let sets = [
        ("stopped", &logged.stopped, &now.stopped),
        ("preempted", &logged.preempted, &now.preempted),
        ("updated in place", &logged.updated, &now.updated),
        ("marked unknown", &logged.cut_off, &now.cut_off),
        ("reconnected", &logged.reconnected, &now.reconnected),
    ];
    let differing = sets.into_iter().filter(|(_, logged, now)| logged != now);
    let mut changes: Vec<String> = differing
        .map(|(what, logged, now)| {
            let (less, more) = (logged.difference(now).count(), now.difference(logged).count());
            format!("{what}: {} of the log not, {more} others", less)
        })
        .collect();
    if logged.end != now.end {
        changes.push(format!("ends {} instead of {}", end(now), end(logged)));
    }
    changes
}

fn end(effects: &Effects) -> String {
    let Some((status, queued, lacking)) = &effects.end else { return "not".to_string() };
    let queued = queued.iter().map(|(group, count)| format!("{count} of {group} queued"));
    let lacking = lacking.iter().map(|(group, count)| format!("{count} of {group} without a node"));
    let details: Vec<String> = queued.chain(lacking).collect();
    if details.is_empty() { status.clone() } else { format!("{status} ({})", details.join(", ")) }
}
