//! What a fact followed from, as the log shows it.
//!
//! | fact | followed from |
//! |---|---|
//! | an evaluation that was created | what the same command decided about its job, its node or its deployment; the evaluation it names as the one before it; by a controller also the newest health of its deployment, or the version of its job |
//! | a plan | the creation of its evaluation |
//! | the end of an evaluation | the plan of the same command, or its creation |
//! | what a plan's command decided besides | the plan |
//! | a report of an allocation | the newest decision about that, and the report before it |
//! | services and volumes of an allocation | the newest decision about that, or report |
//! | what a controller decided of a deployment | what the same command decided before it, or the newest health |
//! | what a controller decided of a drain | the newest change of the drain |
//! | what else a controller decided | the first fact of the same command |
//!
//! Nothing else is a cause: not that something happened shortly before.

use model::event::{AllocTransitionRequested, EvalCreated, NewEval};
use model::{Actor, AllocId, DeploymentId, EvalId, Event, JobKey, Trigger};

use super::reading::{Facts, Reading};
use super::{How, Link, once};
use crate::entries::Position;
use crate::history::HistoryError;
use crate::index::{Side, What};
use crate::object::Object;

/// Facts of one command that are looked at for one fact.
const MATES_MAX: usize = 256;
/// Facts about an allocation that are looked at for the newest of a kind.
const OF_ALLOC_MAX: usize = 64;
/// Facts about a deployment that are read for its allocations, and how many of these are looked at.
const OF_DEPLOYMENT_MAX: usize = 64;
const DEPLOYED_MAX: usize = 256;
/// Reports that are read for the newest health of a deployment.
const REPORTS_MAX: usize = 256;
/// Facts about a node, or a job, that are looked at for the newest of a kind.
const OF_OBJECT_MAX: usize = 64;

/// What the same command decided besides a fact.
struct Mates {
    actor: Actor,
    events: Vec<(Position, Event)>,
}

impl Mates {
    fn of(batch: &Facts, at: Position) -> Mates {
        let command = batch.command_of(at.ordinal);
        let same = |(ordinal, logged): &(&u16, &model::LoggedEvent)| {
            logged.command == command && **ordinal != at.ordinal
        };
        let place = |ordinal: &u16| Position { index: batch.index, ordinal: *ordinal };
        let events = batch.events.iter().filter(same).take(MATES_MAX);
        Mates {
            actor: batch.commands[usize::from(command)].actor.clone(),
            events: events.map(|(ordinal, logged)| (place(ordinal), logged.event.clone())).collect(),
        }
    }

    fn find(&self, is_wanted: impl Fn(&Event) -> bool) -> Option<Position> {
        self.events.iter().find(|(_, event)| is_wanted(event)).map(|(at, _)| *at)
    }

    fn plan(&self) -> Option<Position> {
        self.find(|event| matches!(event, Event::PlanCommitted(_)))
    }

    fn is_of_controller(&self) -> bool {
        matches!(self.actor, Actor::Server(_))
    }
}

impl Reading<'_> {
    /// What the fact followed from, the nearest reason first.
    pub(crate) fn causes(&mut self, at: Position, event: &Event) -> Result<Vec<Link>, HistoryError> {
        let Some(batch) = self.batch(at.index)? else { return Ok(Vec::new()) };
        let mates = Mates::of(&batch, at);
        let mut found = Vec::new();
        let mut add = |from: Option<Position>, how: How| found.extend(from.map(|from| Link { from, how }));
        match event {
            Event::EvalCreated(EvalCreated { eval }) => {
                return self.of_evaluation(at, eval, &mates).map(once);
            }
            Event::PlanCommitted(e) => add(self.creation(e.eval)?, How::Evaluation),
            Event::EvalUpdated(e) => match mates.plan() {
                Some(plan) => add(Some(plan), How::Plan),
                None => add(self.creation(e.eval)?, How::Evaluation),
            },
            Event::EvalAcked(e) => {
                let end = mates.find(|mate| matches!(mate, Event::EvalUpdated(end) if end.eval == e.eval));
                match end {
                    Some(end) => add(Some(end), How::Command),
                    None => add(self.creation(e.eval)?, How::Evaluation),
                }
            }
            _ if mates.plan().is_some() => add(mates.plan(), How::Plan),
            Event::EvalsCanceled(_) => add(mates.find(|mate| !is_of_evaluations(mate, true)), How::Command),
            Event::AllocReported(e) => {
                add(self.newest_of(e.alloc, at, is_decision)?, How::Allocation);
                add(self.newest_of(e.alloc, at, is_report)?, How::Report);
            }
            Event::ServicesRegistered(_)
            | Event::ServicesDeregistered(_)
            | Event::CsiVolumeClaimed(_)
            | Event::CsiClaimDetached(_)
            | Event::CsiClaimReleased(_) => {
                if let [alloc, ..] = event.subject().allocs() {
                    let newest =
                        self.newest_of(*alloc, at, |event| is_decision(event) || is_report(event))?;
                    add(newest, How::Allocation);
                }
            }
            _ if mates.is_of_controller() => return self.by_controller(at, event, &mates).map(once),
            // Somebody asked for it.
            _ => {}
        }
        Ok(once(found))
    }

    fn of_evaluation(
        &mut self,
        at: Position,
        eval: &NewEval,
        mates: &Mates,
    ) -> Result<Vec<Link>, HistoryError> {
        let link = |how: How| move |from: Position| Link { from, how };
        let mut found: Vec<Link> = mates.plan().map(link(How::Plan)).into_iter().collect();
        if found.is_empty() {
            let (mut of_job, mut of_others) = (Vec::new(), Vec::new());
            for (place, mate) in mates.events.iter().filter(|(_, mate)| !is_of_evaluations(mate, false)) {
                match self.is_of_job(mate, &eval.key)? {
                    Some(true) => of_job.push(link(How::Command)(*place)),
                    Some(false) => {}
                    None => of_others.push(link(How::Command)(*place)),
                }
            }
            // A node that came back reports its allocations: each evaluation is for those of its job.
            found = if of_job.is_empty() { of_others } else { of_job };
        }
        if let Some(previous) = eval.previous {
            found.extend(self.creation(previous)?.map(link(How::PreviousEvaluation)));
        }
        if found.is_empty() && mates.is_of_controller() {
            match eval.outcome.deployment {
                Some(deployment) if eval.trigger == Trigger::DeploymentWatcher => {
                    found.extend(self.health(deployment, at, |_| true)?.map(link(How::Health)));
                }
                _ => {
                    let of_job = Object::Job(eval.key.clone());
                    let is_version = |event: &Event| {
                        matches!(event, Event::JobRegistered(_) | Event::JobStopped(_) | Event::JobScaled(_))
                    };
                    let version = self.nearest(What::Object(&of_job), at, OF_OBJECT_MAX, is_version)?;
                    let version = version.filter(|version| version.index == eval.job_modify);
                    found.extend(version.map(link(How::Job)));
                }
            }
        }
        Ok(found)
    }

    /// `None` for what is about no job.
    fn is_of_job(&mut self, event: &Event, key: &JobKey) -> Result<Option<bool>, HistoryError> {
        let Event::AllocTransitionRequested(asked) = event else {
            return Ok(self.job(event)?.map(|job| job == *key));
        };
        for alloc in asked.allocs.iter().take(OF_OBJECT_MAX) {
            if self.placement(*alloc)?.is_some_and(|(job, _)| job == *key) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    fn by_controller(
        &mut self,
        at: Position,
        event: &Event,
        mates: &Mates,
    ) -> Result<Vec<Link>, HistoryError> {
        let (from, how) = match event {
            Event::DeploymentStatusChanged(e) => {
                let promoted = mates.find(|mate| matches!(mate, Event::DeploymentPromoted(_)));
                match promoted {
                    Some(promoted) => (Some(promoted), How::Command),
                    // One that failed for the time it took has no unhealthy allocation.
                    None => (self.health(e.deployment, at, |healthy| !healthy)?, How::Health),
                }
            }
            Event::DeploymentPromoted(e) => (self.health(e.deployment, at, |healthy| healthy)?, How::Health),
            Event::AllocTransitionRequested(e) => return self.of_transition(at, e),
            Event::NodeDrainEnded(e) => {
                let node = Object::Node(e.node);
                (self.nearest(What::Object(&node), at, OF_OBJECT_MAX, is_drain)?, How::Drain)
            }
            _ => {
                let first = mates.events.first().filter(|(first, _)| *first < at);
                (first.map(|(first, _)| *first), How::Command)
            }
        };
        Ok(from.map(|from| Link { from, how }).into_iter().collect())
    }

    /// What a drain, or the deployment of an unhealthy allocation, asks for.
    fn of_transition(
        &mut self,
        at: Position,
        asked: &AllocTransitionRequested,
    ) -> Result<Vec<Link>, HistoryError> {
        let mut found = Vec::new();
        for alloc in asked.allocs.iter().take(OF_OBJECT_MAX) {
            if asked.reschedule {
                let is_verdict = |event: &Event| verdict(event) == Some(false);
                let from = self.newest_of(*alloc, at, is_verdict)?;
                found.extend(from.map(|from| Link { from, how: How::Health }));
                continue;
            }
            let placed = self.newest_of(*alloc, at, |event| matches!(event, Event::AllocsPlaced(_)))?;
            let Some(placed) = placed else { continue };
            let Some(Event::AllocsPlaced(placed)) = self.event(placed)? else { continue };
            let Some(node) = crate::entries::node_of(&placed, *alloc) else { continue };
            let node = Object::Node(node);
            let from = self.nearest(What::Object(&node), at, OF_OBJECT_MAX, is_drain)?;
            found.extend(from.map(|from| Link { from, how: How::Drain }));
        }
        Ok(found)
    }

    pub(crate) fn creation(&mut self, eval: EvalId) -> Result<Option<Position>, HistoryError> {
        let first = self.shared.index.first_about(&Object::Eval(eval))?;
        let Some(first) = first else { return Ok(None) };
        let event = self.event(first)?;
        Ok(event.is_some_and(|event| matches!(event, Event::EvalCreated(_))).then_some(first))
    }

    pub(crate) fn newest_of(
        &mut self,
        alloc: AllocId,
        before: Position,
        is_wanted: impl Fn(&Event) -> bool,
    ) -> Result<Option<Position>, HistoryError> {
        let is_own = |event: &Event| match event {
            // Of one that took its place.
            Event::AllocsPlaced(placed) => placed.ids.contains(&alloc),
            _ => true,
        };
        self.nearest(What::Alloc(alloc), before, OF_ALLOC_MAX, |event| is_own(event) && is_wanted(event))
    }

    /// The newest that is known of the health of a deployment's allocations before a place.
    fn health(
        &mut self,
        deployment: DeploymentId,
        before: Position,
        is_wanted: impl Fn(bool) -> bool,
    ) -> Result<Option<Position>, HistoryError> {
        let object = Object::Deployment(deployment);
        let of_deployment = self.around(What::Object(&object), Side::Before(before), OF_DEPLOYMENT_MAX)?;
        let (mut allocs, mut places) = (Vec::new(), Vec::new());
        for at in of_deployment {
            match self.event(at)? {
                Some(Event::AllocsPlaced(placed)) => allocs.extend(placed.ids),
                Some(Event::AllocsUpdatedInPlace(updated)) => allocs.extend(updated.allocs),
                Some(Event::AllocHealthSet(set)) if is_wanted(set.healthy) => places.push(at),
                _ => {}
            }
        }
        self.cut_short |= allocs.len() > DEPLOYED_MAX;
        for alloc in allocs.into_iter().take(DEPLOYED_MAX) {
            places.extend(self.shared.index.around(
                What::Alloc(alloc),
                Side::Before(before),
                OF_ALLOC_MAX,
            )?);
        }
        places.sort_unstable();
        places.dedup();
        self.cut_short |= places.len() > REPORTS_MAX;
        for at in places.into_iter().rev().take(REPORTS_MAX) {
            if self.event(at)?.and_then(|event| verdict(&event)).is_some_and(&is_wanted) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// It says something of an allocation's health.
pub(super) fn verdict(event: &Event) -> Option<bool> {
    match event {
        Event::AllocReported(reported) => reported.health.map(|verdict| verdict.healthy),
        Event::AllocHealthSet(set) => Some(set.healthy),
        _ => None,
    }
}

/// Of evaluations alone: what such a fact leads to is found by their ids. `but_end` leaves out their ends.
fn is_of_evaluations(event: &Event, but_end: bool) -> bool {
    match event {
        Event::EvalUpdated(_) => !but_end,
        Event::EvalCreated(_) | Event::EvalAcked(_) | Event::EvalsCanceled(_) => true,
        _ => false,
    }
}

/// Servers, or somebody who asked them, decided it of an allocation.
fn is_decision(event: &Event) -> bool {
    matches!(
        event,
        Event::AllocsPlaced(_)
            | Event::AllocsUpdatedInPlace(_)
            | Event::AllocsStopped(_)
            | Event::AllocsPreempted(_)
            | Event::AllocsMarkedUnknown(_)
            | Event::AllocsReconnected(_)
            | Event::JobPurged(_)
    )
}

pub(crate) fn is_report(event: &Event) -> bool {
    matches!(event, Event::AllocReported(_))
}

pub(super) fn is_drain(event: &Event) -> bool {
    matches!(event, Event::NodeDrainStarted(_) | Event::NodeDrainUpdated(_))
}
