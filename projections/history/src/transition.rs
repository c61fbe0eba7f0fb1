use base::{Index, Time};
use journal::{EncodedBatch, FrameError};
use model::event::{AllocReported, AllocsPlaced};
use model::{Actor, AllocId, Caller, ClientStatus, Desired, EvalId, Event, NodeId, Report, Topic};

use crate::entries::{node_of, successor_of};
use crate::line::{counted, mark, observed};

/// Events of a task that are lines of their own; the others say only that all goes its way.
const TASK_EVENTS: [&str; 16] = [
    "Terminated",
    "Restarting",
    "Not Restarting",
    "Restart Signaled",
    "Setup Failure",
    "Driver Failure",
    "Failed Validation",
    "Failed Artifact Download",
    "Task hook failed",
    "Signaling",
    "Killing",
    "Killed",
    "Sibling Task Failed",
    "Leader Task Dead",
    "Main Tasks Dead",
    "Alloc Unhealthy",
];

/// What was wanted and what was known of an allocation. Unset where that part of the log is no longer kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub desired: Option<Desired>,
    pub client: Option<ClientStatus>,
}

/// One fact about an allocation, with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub index: Index,
    pub ordinal: u16,
    /// The servers' time.
    pub time: Time,
    /// Nothing is set before the placement.
    pub old: View,
    pub new: View,
    pub actor: Actor,
    /// Who asked for what led to it, if somebody did: the caller itself, or that of the job's registration whose
    /// evaluation the scheduler worked on.
    pub requester: Option<Caller>,
    /// What brought it about, in words.
    pub cause: String,
    /// The evaluation that decided it.
    pub eval: Option<EvalId>,
    pub description: String,
}

/// Where an allocation was placed, and as what.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    pub index: Index,
    pub node: NodeId,
    /// The number in its name.
    pub name_index: u32,
    pub event: AllocsPlaced,
}

/// Reads an allocation's events in order and lists what each one changed.
pub(crate) struct Walk {
    alloc: AllocId,
    view: View,
    /// The last report and what was said with it: the next one is compared with it.
    report: Report,
    described: String,
    pub transitions: Vec<Transition>,
    pub placement: Option<Placement>,
    pub successors: Vec<AllocId>,
}

impl Walk {
    pub fn of(alloc: AllocId) -> Walk {
        Walk {
            alloc,
            view: View::default(),
            report: Report::default(),
            described: String::new(),
            transitions: Vec::new(),
            placement: None,
            successors: Vec::new(),
        }
    }

    /// It has ended: nothing that happens to its node concerns it any more.
    pub fn has_ended(&self) -> bool {
        self.view.client.is_some_and(ClientStatus::is_terminal)
    }

    /// Tells the event at `ordinal` of a batch.
    ///
    /// # Errors
    /// The batch cannot be read.
    pub fn add(&mut self, batch: &EncodedBatch, ordinal: u16) -> Result<(), FrameError> {
        let row = batch.rows().nth(usize::from(ordinal));
        let row = row.ok_or(FrameError::Malformed("it ends before the event that was indexed"))?;
        let event = batch.event(&row)?;
        let commands = batch.commands()?;
        let record = &commands[usize::from(row.command)];
        if !self.concerns(&event) {
            return Err(FrameError::Malformed("the event that was indexed is about another allocation"));
        }
        if let Event::AllocsPlaced(placed) = &event
            && let Some(at) = placed.ids.iter().position(|id| *id == self.alloc)
        {
            let (node, name_index) = (placed.nodes[at], placed.names[at]);
            let event = placed.clone();
            self.placement = Some(Placement { index: batch.index(), node, name_index, event });
        }
        if let Event::AllocsPlaced(placed) = &event {
            self.successors.extend(successor_of(placed, self.alloc).map(|(id, _)| id));
        }
        let (old, new) = (self.view, self.after(&event));
        self.view = new;
        let (cause, eval, description) = self.words(batch, row.command, &event)?;
        let line = |old: View, description: String| Transition {
            index: batch.index(),
            ordinal,
            time: batch.time(),
            old,
            new,
            actor: record.actor.clone(),
            requester: record.actor.caller().cloned(),
            cause: cause.clone(),
            eval,
            description,
        };
        let Event::AllocReported(reported) = &event else {
            self.transitions.push(line(old, description));
            return Ok(());
        };
        let (says_more, of_tasks) = self.news(reported);
        // A report says what it changed; that also holds when what came before is no longer kept.
        let old = View { client: Some(reported.from), ..old };
        if old.client != new.client || says_more {
            self.transitions.push(line(old, description));
        }
        self.transitions.extend(of_tasks.into_iter().map(|text| line(new, text)));
        Ok(())
    }

    fn concerns(&self, event: &Event) -> bool {
        match event {
            Event::JobPurged(_) => true,
            Event::AllocsPlaced(e) => e.ids.contains(&self.alloc) || e.previous.contains(&self.alloc),
            Event::AllocsPreempted(e) => e.allocs.contains(&self.alloc) || e.by == self.alloc,
            other => other.subject().allocs().contains(&self.alloc),
        }
    }

    /// Whether a report says anything new of the allocation besides its status, and what is new of its tasks.
    fn news(&mut self, event: &AllocReported) -> (bool, Vec<String>) {
        let report: Report = event.report.read();
        let mut lines = Vec::new();
        for (name, task) in &report.task_states {
            let before = self.report.task_states.get(name);
            let known = |one: &model::document::TaskEvent| {
                before.is_some_and(|before| {
                    before.events.iter().any(|old| old.time == one.time && old.kind == one.kind)
                })
            };
            for one in
                task.events.iter().filter(|one| TASK_EVENTS.contains(&one.kind.as_str()) && !known(one))
            {
                let text = if one.display_message.is_empty() { &one.message } else { &one.display_message };
                let text = if text.is_empty() { String::new() } else { format!(": {text}") };
                lines.push(format!("task {name:?}: {}{text}", one.kind));
            }
        }
        let says_more = event.health.is_some() || self.described != event.description;
        self.report = report;
        self.described.clone_from(&event.description);
        (says_more, lines)
    }

    /// Cause, the evaluation if it is one, and description.
    fn words(
        &self,
        batch: &EncodedBatch,
        command: u16,
        event: &Event,
    ) -> Result<(String, Option<EvalId>, String), FrameError> {
        let eval = match event {
            Event::AllocsPlaced(e) => Some(e.eval),
            Event::AllocsUpdatedInPlace(e) => Some(e.eval),
            Event::AllocsStopped(_)
            | Event::AllocsPreempted(_)
            | Event::AllocsMarkedUnknown(_)
            | Event::AllocsReconnected(_) => planned_for(batch, command)?,
            _ => None,
        };
        let by_eval = || eval.map(|eval| format!("evaluation {eval}")).unwrap_or_default();
        let (cause, description) = match event {
            Event::AllocsPlaced(e) => (by_eval(), self.placed(e)),
            Event::AllocsUpdatedInPlace(e) => {
                (by_eval(), format!("updated in place to version {} of its job", e.version))
            }
            Event::AllocsStopped(e) => (by_eval(), e.description.clone()),
            Event::AllocsPreempted(e) if e.by == self.alloc => {
                let verb = if e.allocs.len() == 1 { "is" } else { "are" };
                let allocs = counted(e.allocs.len(), "allocation");
                (by_eval(), format!("{allocs} {verb} stopped to make room for it"))
            }
            Event::AllocsPreempted(e) => (by_eval(), format!("preempted by allocation {}", e.by)),
            Event::AllocsMarkedUnknown(_) => (by_eval(), "its node is disconnected".to_string()),
            Event::AllocsReconnected(_) => (by_eval(), "its node came back and it stays".to_string()),
            Event::AllocReported(e) => (format!("report of node {}", e.node), reported(e)),
            Event::AllocTransitionRequested(e) => (e.cause.clone(), asked(e)),
            Event::AllocHealthSet(e) => {
                let verdict = if e.healthy { "healthy" } else { "unhealthy" };
                (format!("deployment {}", e.deployment), format!("said to be {verdict}"))
            }
            Event::JobPurged(e) => {
                (format!("job {} purged", e.key), "forgotten once it has ended".to_string())
            }
            Event::AllocsCollected(_) => ("garbage collection".to_string(), "forgotten".to_string()),
            other => (other.name().to_string(), String::new()),
        };
        let mark = mark(batch, command)?;
        let mark = mark.and_then(|mark| observed(&mark, &format!("alloc/{}", self.alloc)));
        let parts = [Some(description).filter(|text| !text.is_empty()), mark];
        Ok((cause, eval, parts.into_iter().flatten().collect::<Vec<_>>().join("; ")))
    }

    fn placed(&self, event: &AllocsPlaced) -> String {
        if let Some(node) = node_of(event, self.alloc) {
            return format!("placed on node {node}");
        }
        let successor = successor_of(event, self.alloc);
        successor
            .map_or_else(String::new, |(id, node)| format!("allocation {id} takes its place on node {node}"))
    }

    fn after(&self, event: &Event) -> View {
        let view = self.view;
        match event {
            Event::AllocsPlaced(e) if e.ids.contains(&self.alloc) => {
                View { desired: Some(Desired::Run), client: Some(ClientStatus::Pending) }
            }
            Event::AllocsStopped(e) => View { desired: Some(e.desired), client: e.client.or(view.client) },
            Event::AllocsPreempted(e) if e.by != self.alloc => View { desired: Some(Desired::Evict), ..view },
            Event::AllocsMarkedUnknown(_) => View { client: Some(ClientStatus::Unknown), ..view },
            Event::AllocReported(e) => View { client: Some(e.to), ..view },
            // They say something about the allocation and leave what is wanted and known as it is.
            _ => view,
        }
    }
}

/// What the node says with its report, and of its health.
fn reported(event: &AllocReported) -> String {
    let verdict =
        event.health.map(|verdict| if verdict.healthy { "it is healthy" } else { "it is unhealthy" });
    let parts = [Some(event.description.as_str()).filter(|text| !text.is_empty()), verdict];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The evaluation whose plan the command brought.
fn planned_for(batch: &EncodedBatch, command: u16) -> Result<Option<EvalId>, FrameError> {
    for row in batch.rows().filter(|row| row.command == command && row.topic == Topic::Plan) {
        if let Event::PlanCommitted(plan) = batch.event(&row)? {
            return Ok(Some(plan.eval));
        }
    }
    Ok(None)
}

fn asked(request: &model::event::AllocTransitionRequested) -> String {
    let flags = [
        (request.migrate, "migrate"),
        (request.reschedule, "reschedule"),
        (request.no_shutdown_delay, "no shutdown delay"),
        (request.force_reschedule, "reschedule at once"),
        (request.disable_placement, "no placement elsewhere"),
    ];
    let wanted: Vec<&str> = flags.iter().filter(|(wanted, _)| *wanted).map(|(_, word)| *word).collect();
    format!("asked for: {}", wanted.join(", "))
}

/// What a change of its node means for an allocation there; nothing for the node's other events.
pub(crate) fn of_node(batch: &EncodedBatch, ordinal: u16) -> Result<Option<Transition>, FrameError> {
    let row = batch.rows().nth(usize::from(ordinal));
    let row = row.ok_or(FrameError::Malformed("it ends before the event that was indexed"))?;
    let Event::NodeStatusChanged(changed) = batch.event(&row)? else { return Ok(None) };
    let message = changed.message.as_ref().map(|message| format!(": {}", message.text));
    let actor = batch.commands()?[usize::from(row.command)].actor.clone();
    Ok(Some(Transition {
        index: batch.index(),
        ordinal,
        time: batch.time(),
        old: View::default(),
        new: View::default(),
        requester: actor.caller().cloned(),
        actor,
        cause: format!("node {}", changed.node),
        eval: None,
        description: format!("its node is {}{}", changed.to, message.unwrap_or_default()),
    }))
}

/// Both in the order of the log. What happened to the node leaves the allocation as it was.
pub(crate) fn merged(own: Vec<Transition>, of_node: Vec<Transition>) -> Vec<Transition> {
    let mut all: Vec<(bool, Transition)> = own.into_iter().map(|one| (true, one)).collect();
    all.extend(of_node.into_iter().map(|one| (false, one)));
    all.sort_by_key(|(_, one)| (one.index, one.ordinal));
    let mut view = View::default();
    let follow = |(own, one): (bool, Transition)| {
        if own {
            view = one.new;
            return one;
        }
        Transition { old: view, new: view, ..one }
    };
    all.into_iter().map(follow).collect()
}
