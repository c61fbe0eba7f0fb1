use std::fmt::Display;

use base::{Index, Time};
use journal::{EncodedBatch, FrameError};
use model::document::Timestamp;
use model::event::{AllocsPlaced, DrainOrder, NodeMessage, Observed};
use model::{Actor, Caller, Event};

use crate::label::label;

/// Ids that a line names; of more it gives the number.
const IDS_SHOWN: usize = 3;

/// One fact about an object, with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub index: Index,
    pub ordinal: u16,
    /// The servers' time.
    pub time: Time,
    /// The kind of event, as the log names it.
    pub event: &'static str,
    /// What it is about: `job/default/web`, `node/ID`.
    pub object: String,
    pub actor: Actor,
    /// What happened, in words.
    pub description: String,
}

impl Line {
    /// Who asked for it, if somebody did.
    pub fn requester(&self) -> Option<&Caller> {
        self.actor.caller()
    }

    /// The event at `ordinal` of a batch, in words.
    ///
    /// # Errors
    /// The batch cannot be read.
    pub(crate) fn read(batch: &EncodedBatch, ordinal: u16) -> Result<Line, FrameError> {
        let row = batch.rows().nth(usize::from(ordinal));
        let row = row.ok_or(FrameError::Malformed("it ends before the event that was indexed"))?;
        let actor = batch.commands()?[usize::from(row.command)].actor.clone();
        let line = Line::of((batch.index(), batch.time()), ordinal, &batch.event(&row)?, actor);
        Ok(line.marked(mark(batch, row.command)?.as_ref()))
    }

    /// All events of a batch that are there.
    ///
    /// # Errors
    /// The batch cannot be read.
    pub fn all(batch: &EncodedBatch) -> Result<Vec<Line>, FrameError> {
        let commands = batch.commands()?;
        let mut lines = Vec::new();
        let mut observed = None;
        for (ordinal, row) in batch.rows().enumerate().filter(|(_, row)| !row.left_out) {
            let actor = commands[usize::from(row.command)].actor.clone();
            let event = batch.event(&row)?;
            let line = Line::of((batch.index(), batch.time()), ordinal as u16, &event, actor);
            if let Event::Observed(e) = event {
                observed = Some((row.command, e));
            }
            let mark = observed.as_ref().filter(|(command, _)| *command == row.command);
            lines.push(line.marked(mark.map(|(_, mark)| mark)));
        }
        Ok(lines)
    }

    /// Says of what was observed in another cluster when it happened there.
    pub(crate) fn marked(mut self, mark: Option<&Observed>) -> Line {
        let Some(text) = mark.and_then(|mark| observed(mark, &self.object)) else { return self };
        self.description =
            if self.description.is_empty() { text } else { format!("{}; {text}", self.description) };
        self
    }

    pub(crate) fn of((index, time): (Index, Time), ordinal: u16, event: &Event, actor: Actor) -> Line {
        let description = sentence(event);
        Line { index, ordinal, time, event: event.name(), object: label(event), actor, description }
    }
}

/// Where an object was observed, and when it changed there. `None` for one that the mark does not name.
pub(crate) fn observed(mark: &Observed, object: &str) -> Option<String> {
    let at = mark.objects.iter().position(|named| named == object)?;
    let text = format!("observed at index {} of {}", mark.indexes[at], mark.source);
    match mark.happened[at] {
        Time::ZERO => Some(text),
        time => Some(format!("{text}, where it happened at {}", Timestamp::from(time))),
    }
}

/// What the command says that it observed. It is the command's first event.
pub(crate) fn mark(batch: &EncodedBatch, command: u16) -> Result<Option<Observed>, FrameError> {
    let first = batch.rows().find(|row| row.command == command);
    let Some(first) = first.filter(|row| row.kind == Observed::KIND && !row.left_out) else {
        return Ok(None);
    };
    match batch.event(&first)? {
        Event::Observed(mark) => Ok(Some(mark)),
        _ => Ok(None),
    }
}

fn sentence(event: &Event) -> String {
    match event {
        Event::NodeRegistered(_) => "joined".to_string(),
        Event::NodeUpdated(_) => "described itself anew".to_string(),
        Event::NodeStatusChanged(e) => with(&e.message, format!("{} -> {}", e.from, e.to)),
        Event::NodeEligibilityChanged(e) => format!("{}: {}", e.to, e.message.text),
        Event::NodeMessagesEmitted(e) => {
            let texts = e.messages.iter().map(|message| format!("{}: {}", message.subsystem, message.text));
            texts.collect::<Vec<_>>().join("; ")
        }
        Event::NodeDeregistered(_) => "forgotten".to_string(),
        Event::NodeAllocsReported(_) => "said what it runs".to_string(),
        Event::NodeDrainStarted(e) => format!("drain began{}: {}", limits(&e.order), e.message.text),
        Event::NodeDrainUpdated(e) => format!("drain changed{}: {}", limits(&e.order), e.message.text),
        Event::NodeDrainEnded(e) => format!("drain is {}: {}", e.status, e.message.text),
        Event::JobRegistered(e) => format!("registered as version {}", e.version),
        Event::JobStopped(e) => format!("stopped, as version {}", e.version),
        Event::JobPurged(_) => "purged".to_string(),
        Event::JobStabilityChanged(e) => {
            format!("version {} is {}", e.version, if e.stable { "stable" } else { "not stable" })
        }
        Event::JobLaunched(e) => format!("launched {}{}", e.child, if e.forced { ", by hand" } else { "" }),
        Event::JobScaled(e) => format!("group {:?} was scaled", e.group),
        Event::JobVersionTagged(e) => format!("version {} is named {:?}", e.version, e.name),
        Event::JobVersionUntagged(e) => format!("no version is named {:?} any more", e.name),
        Event::EvalCreated(e) => {
            let text = format!("evaluation {} ({}) is {}", e.eval.id, e.eval.trigger, e.eval.status);
            if e.eval.description.is_empty() { text } else { format!("{text}: {}", e.eval.description) }
        }
        Event::EvalUpdated(e) => described(format!("is {}", e.status), &e.description),
        Event::EvalAcked(_) => "its worker is done".to_string(),
        Event::EvalsCanceled(e) => format!("canceled: {}", e.cause),
        Event::PlanCommitted(e) => match e.rejected.first() {
            None => format!("plan made on the state {}", e.snapshot),
            Some(first) => {
                let (nodes, node, reason) = (counted(e.rejected.len(), "node"), first.node, &first.reason);
                format!("plan made on the state {}; {nodes} rejected, such as {node}: {reason}", e.snapshot)
            }
        },
        Event::AllocsPlaced(e) => placed(e),
        Event::AllocsUpdatedInPlace(e) => {
            format!("updated {} in place to version {}", ids(&e.allocs), e.version)
        }
        Event::AllocsStopped(e) => described(format!("stops {}", ids(&e.allocs)), &e.description),
        Event::AllocsPreempted(e) => format!("preempts {} for {}", ids(&e.allocs), e.by),
        Event::AllocsMarkedUnknown(e) => format!("{} unknown: node disconnected", ids(&e.allocs)),
        Event::AllocsReconnected(e) => format!("{} stay: node is back", ids(&e.allocs)),
        Event::DeploymentCreated(e) => {
            let begun = format!("deployment {} of version {} began", e.deployment, e.version);
            described(begun, &e.description)
        }
        Event::DeploymentGoalsChanged(e) => {
            let goals = e.groups.iter();
            let goals = goals.map(|goal| format!("{:?} wants {} healthy", goal.group, goal.desired_total));
            goals.collect::<Vec<_>>().join(", ")
        }
        Event::DeploymentStatusChanged(e) => described(format!("is {}", e.status), &e.description),
        Event::DeploymentCollected(_) => "forgotten: it ended long ago".to_string(),
        Event::DeploymentPromoted(e) => format!("promoted: {}", e.groups.join(", ")),
        Event::AllocHealthSet(e) => {
            format!("{} said to be {}", ids(&e.allocs), if e.healthy { "healthy" } else { "unhealthy" })
        }
        Event::AllocReported(e) => {
            let verdict = e.health.map(|verdict| if verdict.healthy { "; healthy" } else { "; unhealthy" });
            described(format!("{} -> {}", e.from, e.to), &e.description) + verdict.unwrap_or_default()
        }
        Event::AllocTransitionRequested(e) => format!("{} asked to move", ids(&e.allocs)),
        Event::AllocsCollected(e) => format!("forgotten: {}", ids(&e.allocs)),
        Event::Observed(e) => format!("read {} of {}", counted(e.objects.len(), "changed object"), e.source),
        Event::ObservationGap(e) => {
            format!(
                "not seen: what {} did between its indexes {} and {}: {}",
                e.source, e.from, e.to, e.reason
            )
        }
        Event::DeploymentProgressObserved(e) => {
            let groups = e.groups.iter();
            let groups =
                groups.map(|g| format!("{:?} has {} of {} placed healthy", g.group, g.healthy, g.placed));
            groups.collect::<Vec<_>>().join(", ")
        }
        Event::EpochRaised(e) => format!("to {}: every server knows it", e.epoch),
        Event::HistoryDropped(e) => format!("it reads from index {} on", e.oldest),
        Event::JobEndObserved(_) => "is dead".to_string(),
        // The name of the event says it.
        _ => String::new(),
    }
}

/// `1 node`, `2 nodes`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn placed(event: &AllocsPlaced) -> String {
    let kind = match (event.canary, event.ids.len()) {
        (true, 1) => "canary",
        (true, _) => "canaries",
        (false, 1) => "allocation",
        (false, _) => "allocations",
    };
    let first = event.ids.iter().zip(&event.nodes).take(IDS_SHOWN);
    let first: Vec<String> = first.map(|(id, node)| format!("{id} on {node}")).collect();
    let more = event.ids.len().saturating_sub(IDS_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (count, group, version) = (event.ids.len(), &event.group, event.version);
    format!("{count} {kind} of group {group:?} version {version} placed: {}{more}", first.join(", "))
}

/// The first ids, and how many more there are.
pub(crate) fn ids<I: Display>(ids: &[I]) -> String {
    let first: Vec<String> = ids.iter().take(IDS_SHOWN).map(ToString::to_string).collect();
    let more = ids.len().saturating_sub(IDS_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

fn limits(order: &DrainOrder) -> String {
    match order.deadline.0 {
        0 => ", without a limit".to_string(),
        below if below < 0 => ", everything at once".to_string(),
        _ => format!(", within {}", order.deadline),
    }
}

fn with(message: &Option<NodeMessage>, text: String) -> String {
    message.as_ref().map_or(text.clone(), |message| described(text, &message.text))
}

fn described(text: String, description: &str) -> String {
    if description.is_empty() { text } else { format!("{text}: {description}") }
}
