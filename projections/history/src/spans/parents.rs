//! What stands under what.
//!
//! | span | stands under |
//! |---|---|
//! | a plan | its evaluation |
//! | an evaluation | the plan that made it; else, by a controller, the evaluation before it, the deployment that it is for, or the registration of its job; else the command that made it |
//! | an allocation, a deployment | the plan that made it |
//! | a task, its health | its allocation |
//! | a command of a controller | the deployment that it advances, or the command that began the drain |
//! | a command of a caller or a node, another one of a controller | nothing: a trace begins there |

use model::{Actor, AllocId, CommandKind, DeploymentId, EvalId, Event, Subject, Trigger};

use super::Tracing;
use super::ids::{SpanId, TraceId, fact};
use crate::causes::{Facts, How};
use crate::entries::Position;
use crate::history::HistoryError;
use crate::index::{Side, What};
use crate::object::Object;

/// Spans above one, of which each is looked up. Where a chain is longer, its trace begins there.
const ANCESTORS_MAX: usize = 1024;
/// Facts of a controller's command that are looked at for what it followed from.
const FACTS_MAX: usize = 64;

/// Spans that others stand under, by where the log has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anchor {
    /// By its first fact.
    Command(Position),
    /// By the verdict.
    Plan(Position),
    Evaluation(EvalId),
    Allocation(AllocId),
    Deployment(DeploymentId),
}

/// The first fact of the command that decided one.
fn first_of(batch: &Facts, at: Position) -> Position {
    let command = batch.command_of(at.ordinal);
    let first = batch.events.iter().find(|(_, logged)| logged.command == command);
    Position { ordinal: first.map_or(at.ordinal, |(first, _)| *first), ..at }
}

/// What the command decided that has its first fact there, with the places.
pub(super) fn facts_of(batch: &Facts, first: Position) -> impl Iterator<Item = (Position, &Event)> {
    let command = batch.command_of(first.ordinal);
    let all = batch.events.range(first.ordinal..);
    let own = all.filter(move |(_, logged)| logged.command == command);
    own.map(move |(ordinal, logged)| (Position { ordinal: *ordinal, ..first }, &logged.event))
}

pub(super) fn plan_of(batch: &Facts, at: Position) -> Option<Position> {
    let mut facts = facts_of(batch, first_of(batch, at));
    facts.find(|(_, event)| matches!(event, Event::PlanCommitted(_))).map(|(plan, _)| plan)
}

impl Tracing<'_> {
    pub fn span(&self, anchor: &Anchor) -> SpanId {
        match anchor {
            Anchor::Command(at) | Anchor::Plan(at) => SpanId::of_text(&fact(*at, self.cluster)),
            Anchor::Evaluation(id) => SpanId::of_object(id.0),
            Anchor::Allocation(id) => SpanId::of_object(id.0),
            Anchor::Deployment(id) => SpanId::of_object(id.0),
        }
    }

    /// The trace of a span: that of the first one above it.
    pub fn trace(&mut self, anchor: &Anchor) -> Result<TraceId, HistoryError> {
        let mut way = vec![anchor.clone()];
        let trace = loop {
            let last = way.last().expect("it begins with one");
            if let Some(known) = self.known.get(last) {
                break *known;
            }
            match self.parent(&last.clone())?.filter(|_| way.len() < ANCESTORS_MAX) {
                Some(parent) if !way.contains(&parent) => way.push(parent),
                _ => break self.begun(&last.clone())?,
            }
        };
        self.known.extend(way.into_iter().map(|anchor| (anchor, trace)));
        Ok(trace)
    }

    /// The trace that begins with a span.
    fn begun(&mut self, anchor: &Anchor) -> Result<TraceId, HistoryError> {
        let at = match anchor {
            Anchor::Command(at) | Anchor::Plan(at) => *at,
            // Of what is no longer kept the id is left.
            Anchor::Evaluation(id) => return Ok(TraceId::of_text(&id.to_string())),
            Anchor::Allocation(id) => return Ok(TraceId::of_text(&id.to_string())),
            Anchor::Deployment(id) => return Ok(TraceId::of_text(&id.to_string())),
        };
        if let (Anchor::Command(_), Some(batch)) = (anchor, self.reading.batch(at.index)?) {
            let command = batch.command_of(at.ordinal);
            let request = batch.commands[usize::from(command)].request;
            if !request.0.is_nil() {
                return Ok(TraceId::of_request(request));
            }
        }
        Ok(TraceId::of_text(&fact(at, self.cluster)))
    }

    /// The span that one stands under; `None` where a trace begins, or the log no longer says.
    pub fn parent(&mut self, anchor: &Anchor) -> Result<Option<Anchor>, HistoryError> {
        match anchor {
            Anchor::Command(first) => self.above_command(*first),
            Anchor::Plan(at) => Ok(match self.reading.event(*at)? {
                Some(Event::PlanCommitted(plan)) => Some(Anchor::Evaluation(plan.eval)),
                _ => None,
            }),
            Anchor::Evaluation(id) => self.above_evaluation(*id),
            Anchor::Allocation(id) => {
                let placed = self.placed(*id)?;
                self.decider(placed)
            }
            Anchor::Deployment(id) => {
                let created = self.reading.shared.index.first_about(&Object::Deployment(*id))?;
                self.decider(created)
            }
        }
    }

    /// The fact that placed an allocation.
    pub fn placed(&mut self, alloc: AllocId) -> Result<Option<Position>, HistoryError> {
        let first =
            self.reading.shared.index.around(What::Alloc(alloc), Side::After(Position::default()), 1)?;
        let Some(first) = first.first().copied() else { return Ok(None) };
        let is_own = |event: Event| matches!(event, Event::AllocsPlaced(e) if e.ids.contains(&alloc));
        Ok(self.reading.event(first)?.is_some_and(is_own).then_some(first))
    }

    /// The plan, or else the command, that decided a fact.
    fn decider(&mut self, at: Option<Position>) -> Result<Option<Anchor>, HistoryError> {
        let Some(at) = at else { return Ok(None) };
        let batch = self.reading.batch(at.index)?;
        // The index names also what is left out of an old batch.
        let Some(batch) = batch.filter(|batch| batch.events.contains_key(&at.ordinal)) else {
            return Ok(None);
        };
        let plan = plan_of(&batch, at).map(Anchor::Plan);
        Ok(plan.or_else(|| Some(Anchor::Command(first_of(&batch, at)))))
    }

    fn above_evaluation(&mut self, id: EvalId) -> Result<Option<Anchor>, HistoryError> {
        let Some(at) = self.reading.creation(id)? else { return Ok(None) };
        let (Some(batch), Some(event)) = (self.reading.batch(at.index)?, self.reading.event(at)?) else {
            return Ok(None);
        };
        let Event::EvalCreated(created) = &event else { return Ok(None) };
        if let Some(plan) = plan_of(&batch, at) {
            return Ok(Some(Anchor::Plan(plan)));
        }
        let own = Anchor::Command(first_of(&batch, at));
        let command = batch.command_of(at.ordinal);
        if !matches!(batch.commands[usize::from(command)].actor, Actor::Server(_)) {
            return Ok(Some(own));
        }
        if let Some(previous) = created.eval.previous {
            return Ok(Some(Anchor::Evaluation(previous)));
        }
        let watched = created.eval.outcome.deployment;
        if let Some(deployment) = watched.filter(|_| created.eval.trigger == Trigger::DeploymentWatcher) {
            return Ok(Some(Anchor::Deployment(deployment)));
        }
        let causes = self.reading.causes(at, &event)?;
        match causes.first().filter(|link| link.how == How::Job) {
            Some(version) => self.decider(Some(version.from)),
            None => Ok(Some(own)),
        }
    }

    fn above_command(&mut self, first: Position) -> Result<Option<Anchor>, HistoryError> {
        let Some(batch) = self.reading.batch(first.index)? else { return Ok(None) };
        let command = batch.command_of(first.ordinal);
        let record = &batch.commands[usize::from(command)];
        let facts = facts_of(&batch, first).take(FACTS_MAX);
        match (&record.actor, CommandKind::from_number(record.kind)) {
            (Actor::Server(_), Some(CommandKind::AdvanceDeployment)) => {
                let mut own = facts.filter_map(|(_, event)| deployment(event));
                Ok(own.next().map(Anchor::Deployment))
            }
            (Actor::Server(_), Some(CommandKind::AdvanceDrain)) => {
                for (at, event) in facts {
                    let causes = self.reading.causes(at, event)?;
                    if let Some(drain) = causes.first().filter(|link| link.how == How::Drain) {
                        return self.decider(Some(drain.from));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The span that a fact belongs to: the one it begins or ends, or that of what decided it.
    pub fn anchor(&mut self, at: Position) -> Result<Option<Anchor>, HistoryError> {
        Ok(match self.reading.event(at)? {
            None => None,
            Some(Event::PlanCommitted(_)) => Some(Anchor::Plan(at)),
            Some(Event::EvalCreated(e)) => Some(Anchor::Evaluation(e.eval.id)),
            Some(Event::EvalUpdated(e)) => Some(Anchor::Evaluation(e.eval)),
            Some(Event::EvalAcked(e)) => Some(Anchor::Evaluation(e.eval)),
            Some(Event::AllocReported(e)) => Some(Anchor::Allocation(e.alloc)),
            Some(Event::DeploymentStatusChanged(e)) => Some(Anchor::Deployment(e.deployment)),
            Some(_) => self.decider(Some(at))?,
        })
    }
}

/// The deployment that a controller's fact is for.
fn deployment(event: &Event) -> Option<DeploymentId> {
    match (event, event.subject()) {
        (Event::EvalCreated(created), _) => created.eval.outcome.deployment,
        (_, Subject::Deployment(id)) => Some(id),
        _ => None,
    }
}
