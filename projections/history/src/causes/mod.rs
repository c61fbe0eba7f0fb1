//! Why a fact happened, and what followed from it: walks over the log, by the index.
//!
//! Nothing is stored for it. `links.rs` says what a fact followed from, by what stands in it and beside it; what followed
//! from a fact is found among those that name one of its objects, by asking each of them the same. So a link that is
//! followed in one direction is there in the other one too.

mod candidates;
mod links;
mod reading;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use base::Index;
use model::{Actor, CommandKind, Event, JobKey, NodeId, RequestId, VariableKey};

use crate::entries::Position;
use crate::history::{History, HistoryError};
use crate::line::Line;
pub(crate) use links::is_report;
pub use reading::Facts;
pub(crate) use reading::Reading;

/// Facts of one chain, those that it began with included.
pub const CHAIN_FACTS_MAX: usize = 256;
/// Steps from where it began.
pub const CHAIN_DEPTH_MAX: u32 = 16;
/// Batches with a command of one name that are looked at. A name is for one command, which is in one batch.
const REQUEST_BATCHES_MAX: usize = 4;

/// Where a walk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Fact(Position),
    /// All that the command of this name led to at once.
    Request(RequestId),
}

/// In which direction it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Causes,
    Effects,
}

/// Facts that led to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// In the order in which they were reached.
    pub facts: Vec<Fact>,
    /// There is more than was followed.
    pub cut_short: bool,
    /// The log no longer has some of it.
    pub gone: bool,
    /// Facts that were reached and that the reader may not see. What lies behind them was not followed.
    pub hidden: usize,
}

/// A fact of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub line: Line,
    pub request: RequestId,
    /// `None` for one that a newer release added.
    pub command: Option<CommandKind>,
    /// Steps from where the walk began.
    pub depth: u32,
    /// What it followed from; where that is empty, `root` says why nothing is there.
    pub causes: Vec<Link>,
    pub root: Option<Root>,
}

impl Fact {
    pub fn at(&self) -> Position {
        Position { index: self.line.index, ordinal: self.line.ordinal }
    }
}

/// A fact that led to another, and how the log shows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: Position,
    pub how: How,
}

/// What a link is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// They were decided by one command, this one because of that one.
    Command,
    /// It names the evaluation.
    Evaluation,
    /// It was decided with the plan.
    Plan,
    /// The evaluation names the one before it.
    PreviousEvaluation,
    /// It is about an allocation, and this was the newest decision about that.
    Allocation,
    /// The report before it.
    Report,
    /// The newest health of the deployment's allocations.
    Health,
    /// The newest change of the drain.
    Drain,
    /// The version of the job that the evaluation names.
    Job,
}

impl How {
    pub const fn word(self) -> &'static str {
        match self {
            How::Command => "command",
            How::Evaluation => "evaluation",
            How::Plan => "plan",
            How::PreviousEvaluation => "previous evaluation",
            How::Allocation => "allocation",
            How::Report => "report",
            How::Health => "health",
            How::Drain => "drain",
            How::Job => "job",
        }
    }
}

/// What a chain of causes ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Somebody asked for it: a caller, or a node.
    Request,
    /// A controller of the leader gave the command, at a time that was due.
    Deadline,
    /// It was read of another cluster, which does not say why.
    Observed,
    /// What it followed from is no longer in the log.
    Gone,
}

impl Root {
    pub const fn word(self) -> &'static str {
        match self {
            Root::Request => "request",
            Root::Deadline => "deadline",
            Root::Observed => "observed",
            Root::Gone => "gone",
        }
    }
}

/// Whose a fact is, for who may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Job(JobKey),
    Node(NodeId),
    Variable(VariableKey),
    Cluster,
    /// What would say it is no longer in the log.
    Unknown,
}

impl History {
    /// What a fact followed from, or what followed from it, nearest first, up to the index `at`. What `may_see` refuses is
    /// left out, and not followed.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `at` within `patience`; [`HistoryError::Gone`] when it begins
    /// below what is kept. Empty when there is no such fact.
    pub fn chain(
        &self,
        start: Start,
        direction: Direction,
        at: Index,
        patience: Duration,
        may_see: impl Fn(&Scope) -> bool,
    ) -> Result<Chain, HistoryError> {
        let shared = self.reached(at, patience)?;
        let mut reading = Reading::of(shared);
        let first = reading.first(start)?;
        let mut chain = Chain::default();
        let mut seen: BTreeSet<Position> = first.iter().copied().collect();
        let mut next: VecDeque<(Position, u32)> = first.into_iter().map(|at| (at, 0)).collect();
        while let Some((place, depth)) = next.pop_front() {
            if place.index > at {
                continue;
            }
            let Some(event) = reading.event(place)? else { continue };
            if !may_see(&reading.scope(place, &event)?) {
                chain.hidden += 1;
                continue;
            }
            if chain.facts.len() == CHAIN_FACTS_MAX {
                chain.cut_short = true;
                break;
            }
            let fact = reading.fact(place, &event, depth)?;
            let onward: Vec<Position> = match direction {
                Direction::Causes => fact.causes.iter().map(|link| link.from).collect(),
                Direction::Effects => reading.effects(place, &event)?,
            };
            chain.facts.push(fact);
            if depth == CHAIN_DEPTH_MAX {
                chain.cut_short |= onward.iter().any(|at| !seen.contains(at));
                continue;
            }
            next.extend(onward.into_iter().filter(|at| seen.insert(*at)).map(|at| (at, depth + 1)));
        }
        (chain.cut_short, chain.gone) = (chain.cut_short || reading.cut_short, reading.gone);
        Ok(chain)
    }
}

impl Reading<'_> {
    /// # Errors
    /// [`HistoryError::Gone`] when it is no longer kept.
    pub(crate) fn first(&mut self, start: Start) -> Result<Vec<Position>, HistoryError> {
        let (indexes, wanted) = match start {
            Start::Fact(at) => (vec![at.index], Some(at.ordinal)),
            Start::Request(request) => (self.shared.index.of_request(request, REQUEST_BATCHES_MAX)?, None),
        };
        let mut first = Vec::new();
        for index in indexes {
            let oldest = self.shared.journal.horizon();
            let Some(batch) = self.batch(index)? else {
                if index < oldest {
                    return Err(HistoryError::Gone { oldest });
                }
                continue;
            };
            let is_first = |ordinal: u16, command: RequestId| match (start, wanted) {
                (Start::Request(request), _) => command == request,
                (Start::Fact(_), wanted) => wanted == Some(ordinal),
            };
            let request = |command: u16| batch.commands[usize::from(command)].request;
            let found = batch.events.iter();
            let found = found.filter(|(ordinal, logged)| is_first(**ordinal, request(logged.command)));
            first.extend(found.map(|(ordinal, _)| Position { index, ordinal: *ordinal }));
            if first.is_empty() && index < oldest {
                return Err(HistoryError::Gone { oldest });
            }
        }
        Ok(first)
    }

    fn fact(&mut self, at: Position, event: &Event, depth: u32) -> Result<Fact, HistoryError> {
        let was_gone = std::mem::take(&mut self.gone);
        let causes = self.causes(at, event)?;
        let misses = std::mem::replace(&mut self.gone, was_gone);
        self.gone |= misses;
        let batch = self.batch(at.index)?.expect("its event was read");
        let logged = &batch.events[&at.ordinal];
        let record = &batch.commands[usize::from(logged.command)];
        let first = batch.events.values().find(|other| other.command == logged.command);
        let mark = first.and_then(|first| match &first.event {
            Event::Observed(mark) => Some(mark),
            _ => None,
        });
        let root = match &record.actor {
            _ if !causes.is_empty() => None,
            _ if misses => Some(Root::Gone),
            _ if mark.is_some() => Some(Root::Observed),
            Actor::Caller(_) | Actor::Node(_) => Some(Root::Request),
            Actor::Server(_) => Some(Root::Deadline),
        };
        Ok(Fact {
            line: Line::of((at.index, batch.time), at.ordinal, event, record.actor.clone()).marked(mark),
            request: record.request,
            command: CommandKind::from_number(record.kind),
            depth,
            causes,
            root,
        })
    }
}

/// One link from each fact: a fact that is there for two reasons is named once, with the first.
fn once(links: Vec<Link>) -> Vec<Link> {
    let mut known = BTreeSet::new();
    links.into_iter().filter(|link| known.insert(link.from)).collect()
}
