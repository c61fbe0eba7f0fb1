//! Which spans a fact ends, and what they say.

use std::collections::BTreeMap;

use base::Time;
use model::document::{AllocationMetric, TaskEvent, TaskState};
use model::event::{
    AllocReported, AllocsPlaced, AllocsStopped, DeploymentStatusChanged, EvalOutcome, NewEval, Observed,
    PlanCommitted,
};
use model::{
    Actor, AllocId, Caller, ClientStatus, CommandKind, CommandRecord, DeploymentStatus, EvalId, EvalStatus,
    Event, JobKey, Report, Subject,
};

use super::ids::{SpanId, fact};
use super::parents::{Anchor, facts_of};
use super::{LINKS_MAX, Span, Traced, Tracing, Value};
use crate::causes::{Facts, is_report};
use crate::entries::Position;
use crate::history::HistoryError;

/// Evaluations of one command that are looked at for whether it began them.
const BEGUN_MAX: usize = 16;

type Attributes = Vec<(&'static str, Value)>;

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn of_job(key: &JobKey) -> Attributes {
    vec![("sojourn.namespace", text(&key.namespace)), ("sojourn.job.id", text(&key.id))]
}

/// What is known of a span besides where it stands.
struct About {
    of: Traced,
    name: String,
    began: Option<Time>,
    ended: Time,
    failed: Option<String>,
    attributes: Attributes,
}

impl Tracing<'_> {
    pub fn of_batch(&mut self, batch: &Facts) -> Result<Vec<Span>, HistoryError> {
        let mut spans = Vec::new();
        let mut firsts = BTreeMap::new();
        for (ordinal, logged) in &batch.events {
            let at = Position { index: batch.index, ordinal: *ordinal };
            let first = *firsts.entry(logged.command).or_insert(at);
            if batch.events[&first.ordinal].event.kind() == Observed::KIND {
                continue;
            }
            // A batch has hundreds of commands, and each fact may read as much as a walk.
            self.reading.renew();
            if at == first {
                spans.extend(self.of_command(batch, first)?);
            }
            self.of_fact(batch, at, &logged.event, &mut spans)?;
        }
        Ok(spans)
    }

    fn of_fact(
        &mut self,
        batch: &Facts,
        at: Position,
        event: &Event,
        spans: &mut Vec<Span>,
    ) -> Result<(), HistoryError> {
        match event {
            Event::PlanCommitted(e) => spans.push(self.of_plan(batch, at, e)?),
            Event::EvalUpdated(e) if e.status.is_terminal() => {
                let end = (e.status, e.description.as_str(), Some(&e.outcome));
                spans.push(self.of_evaluation(batch, at, e.eval, end)?);
            }
            Event::EvalsCanceled(e) => {
                for eval in &e.evals {
                    self.reading.renew();
                    let end = (EvalStatus::Canceled, e.cause.as_str(), None);
                    spans.push(self.of_evaluation(batch, at, *eval, end)?);
                }
            }
            Event::AllocReported(e) => self.of_report(batch, at, e, spans)?,
            Event::AllocsStopped(e) if e.client.is_some_and(ClientStatus::is_terminal) => {
                self.of_lost(batch, at, e, spans)?;
            }
            Event::DeploymentStatusChanged(e) if !e.status.is_active() => {
                spans.push(self.of_deployment(batch, at, e)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts a span where it stands. What is no longer in the log when it began has no length.
    fn placed_at(&mut self, at: Position, anchor: &Anchor, about: About) -> Result<Span, HistoryError> {
        let parent = self.parent(anchor)?;
        let trace = self.trace(anchor)?;
        let About { of, name, began, ended, failed, mut attributes } = about;
        if began.is_none() {
            attributes.push(("sojourn.begin", text("gone")));
        }
        attributes.push(("sojourn.fact", text(format!("{}:{}", at.index, at.ordinal))));
        let began = began.unwrap_or(ended);
        Ok(Span {
            at,
            of,
            trace,
            id: self.span(anchor),
            parent: parent.map(|parent| self.span(&parent)),
            links: Vec::new(),
            name,
            is_call: false,
            began,
            ended: ended.max(began),
            failed,
            attributes,
        })
    }

    fn time_of(&mut self, at: Option<Position>) -> Result<Option<Time>, HistoryError> {
        let Some(at) = at else { return Ok(None) };
        Ok(self.reading.batch(at.index)?.map(|batch| batch.time))
    }

    /// A command that began something: evaluations, or what controllers make evaluations of later.
    fn of_command(&mut self, batch: &Facts, first: Position) -> Result<Option<Span>, HistoryError> {
        let facts = || facts_of(batch, first);
        if facts().any(|(_, event)| matches!(event, Event::PlanCommitted(_))) {
            return Ok(None);
        }
        let anchor = Anchor::Command(first);
        if !facts().any(|(_, event)| begins(event)) && !self.begins_evaluations(batch, first, &anchor)? {
            return Ok(None);
        }
        let Some((at, of)) = facts().find_map(|(at, event)| Some((at, listed(event)?))) else {
            return Ok(None);
        };
        let record = &batch.commands[usize::from(batch.command_of(first.ordinal))];
        let mut attributes = of_request(record);
        match &of {
            Traced::Job(key) => attributes.extend(of_job(key)),
            Traced::Node(id) => attributes.push(("host.id", text(id))),
            Traced::Eval(id) => attributes.push(("sojourn.eval.id", text(id))),
            Traced::Alloc(id) => attributes.push(("sojourn.alloc.id", text(id))),
            Traced::Deployment(id) => attributes.push(("sojourn.deployment.id", text(id))),
        }
        let (began, ended) = (Some(batch.time), batch.time);
        let about = About { of, name: name(record), began, ended, failed: None, attributes };
        let span = self.placed_at(at, &anchor, about)?;
        let mut links = Vec::new();
        for (_, event) in facts() {
            // What a node says by itself begins a trace, which the one of the allocation leads to.
            if let Event::AllocReported(e) = event
                && e.to == ClientStatus::Failed
                && links.len() < LINKS_MAX
            {
                let failed = Anchor::Allocation(e.alloc);
                links.push((self.trace(&failed)?, self.span(&failed)));
            }
        }
        Ok(Some(Span { links, is_call: matches!(record.actor, Actor::Caller(_)), ..span }))
    }

    fn begins_evaluations(
        &mut self,
        batch: &Facts,
        first: Position,
        anchor: &Anchor,
    ) -> Result<bool, HistoryError> {
        let created = facts_of(batch, first).filter_map(|(_, event)| match event {
            Event::EvalCreated(created) => Some(created.eval.id),
            _ => None,
        });
        for eval in created.take(BEGUN_MAX) {
            if self.parent(&Anchor::Evaluation(eval))?.as_ref() == Some(anchor) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn of_plan(&mut self, batch: &Facts, at: Position, e: &PlanCommitted) -> Result<Span, HistoryError> {
        let created = self.reading.creation(e.eval)?;
        let created = self.time_of(created)?;
        // The clock of the server that made it may be another one.
        let made = (e.now > Time::ZERO).then_some(e.now);
        let began = made.or(created).map(|began| began.max(created.unwrap_or(began)).min(batch.time));
        let mut attributes = vec![
            ("sojourn.eval.id", text(e.eval)),
            ("sojourn.plan.snapshot", Value::Number(e.snapshot.0 as i64)),
        ];
        if !e.rejected.is_empty() {
            let rejected = e.rejected.iter().map(|one| format!("{}: {}", one.node, one.reason));
            attributes.push(("sojourn.plan.rejected_nodes", Value::Texts(rejected.collect())));
        }
        let of = Traced::Eval(e.eval);
        let about = About { of, name: "plan".into(), began, ended: batch.time, failed: None, attributes };
        self.placed_at(at, &Anchor::Plan(at), about)
    }

    fn of_evaluation(
        &mut self,
        batch: &Facts,
        at: Position,
        id: EvalId,
        (status, description, outcome): (EvalStatus, &str, Option<&EvalOutcome>),
    ) -> Result<Span, HistoryError> {
        let created = self.reading.creation(id)?;
        let began = self.time_of(created)?;
        let mut attributes =
            vec![("sojourn.eval.id", text(id)), ("sojourn.eval.status", text(status.word()))];
        if !description.is_empty() {
            attributes.push(("sojourn.eval.description", text(description)));
        }
        if let Some(created) = created
            && let Some(Event::EvalCreated(created)) = self.reading.event(created)?
        {
            attributes.extend(of_eval(&created.eval));
        }
        if let Some(outcome) = outcome {
            attributes.extend(of_outcome(outcome));
        }
        let failed = (status == EvalStatus::Failed).then(|| description.to_string());
        let of = Traced::Eval(id);
        let about = About { of, name: "evaluation".into(), began, ended: batch.time, failed, attributes };
        self.placed_at(at, &Anchor::Evaluation(id), about)
    }

    fn of_deployment(
        &mut self,
        batch: &Facts,
        at: Position,
        e: &DeploymentStatusChanged,
    ) -> Result<Span, HistoryError> {
        let object = crate::object::Object::Deployment(e.deployment);
        let created = self.reading.shared.index.first_about(&object)?;
        let mut attributes = vec![
            ("sojourn.deployment.id", text(e.deployment)),
            ("sojourn.deployment.status", text(e.status.word())),
        ];
        let mut began = None;
        if let Some(place) = created
            && let Some(Event::DeploymentCreated(created)) = self.reading.event(place)?
        {
            began = self.time_of(Some(place))?;
            attributes.extend(of_job(&created.key));
            attributes.push(("sojourn.job.version", Value::Number(created.version as i64)));
        }
        let failed = (e.status == DeploymentStatus::Failed).then(|| e.description.clone());
        let of = Traced::Deployment(e.deployment);
        let about = About { of, name: "deployment".into(), began, ended: batch.time, failed, attributes };
        self.placed_at(at, &Anchor::Deployment(e.deployment), about)
    }

    fn placement(&mut self, alloc: AllocId) -> Result<(Option<Time>, Attributes), HistoryError> {
        let placed = self.placed(alloc)?;
        let began = self.time_of(placed)?;
        let event = match placed {
            Some(placed) => self.reading.event(placed)?,
            None => None,
        };
        let mut attributes = vec![("sojourn.alloc.id", text(alloc))];
        if let Some(Event::AllocsPlaced(placed)) = event {
            attributes.extend(of_placement(&placed, alloc));
        }
        Ok((began, attributes))
    }

    fn of_report(
        &mut self,
        batch: &Facts,
        at: Position,
        e: &AllocReported,
        spans: &mut Vec<Span>,
    ) -> Result<(), HistoryError> {
        let before = self.reading.newest_of(e.alloc, at, is_report)?;
        let before = match before {
            Some(before) => self.reading.event(before)?,
            None => None,
        };
        let known: Option<Report> = match &before {
            Some(Event::AllocReported(before)) => Some(before.report.read()),
            // It is no longer kept: what was new then is not sent again.
            _ if e.from.is_terminal() || e.from == ClientStatus::Running => None,
            _ => Some(Report::default()),
        };
        let report: Report = e.report.read();
        let (began, attributes) = self.placement(e.alloc)?;
        let anchor = Anchor::Allocation(e.alloc);
        if e.to != ClientStatus::Pending && !self.has_begun(e.alloc, e.from, at)? {
            let failed = (e.to == ClientStatus::Failed).then(|| e.description.clone());
            let mut attributes = attributes.clone();
            attributes.push(("sojourn.alloc.client_status", text(e.to.word())));
            let (of, ended) = (Traced::Alloc(e.alloc), batch.time);
            let about = About { of, name: "allocation".into(), began, ended, failed, attributes };
            spans.push(self.placed_at(at, &anchor, about)?);
        }
        for (name, task) in report.task_states.iter() {
            let before = known.as_ref().map(|known| known.task_states.get(name));
            let ended = before.and_then(|before| first_end(task, before, batch.time));
            let Some((ended, failed)) = ended else { continue };
            let received = task.events.iter().find(|event| event.kind == "Received");
            let mut attributes = attributes.clone();
            attributes.push(("sojourn.task.name", text(name)));
            let about = About {
                of: Traced::Alloc(e.alloc),
                name: format!("task {name}"),
                began: received.map(|event| Time(event.time)).or(began),
                ended,
                failed,
                attributes,
            };
            let id = SpanId::of_text(&format!("{}/{name}", e.alloc));
            spans.push(self.below(at, &anchor, id, about)?);
        }
        if let Some(verdict) = e.health {
            let started = report.task_states.values().map(|task| task.started_at.time());
            let ended = if verdict.time > Time::ZERO { verdict.time } else { batch.time };
            let about = About {
                of: Traced::Alloc(e.alloc),
                name: "health".into(),
                began: started.max().filter(|started| *started > Time::ZERO).or(Some(ended)),
                ended,
                failed: (!verdict.healthy).then(|| "unhealthy".to_string()),
                attributes,
            };
            let id = SpanId::of_text(&format!("{}/health", fact(at, self.cluster)));
            spans.push(self.below(at, &anchor, id, about)?);
        }
        Ok(())
    }

    /// The same for what nothing stands under.
    fn below(
        &mut self,
        at: Position,
        parent: &Anchor,
        id: SpanId,
        about: About,
    ) -> Result<Span, HistoryError> {
        let span = self.placed_at(at, parent, about)?;
        Ok(Span { parent: Some(span.id), id, ..span })
    }

    /// It was more than placed before, whatever was known of it then.
    fn has_begun(&mut self, alloc: AllocId, known: ClientStatus, at: Position) -> Result<bool, HistoryError> {
        match known {
            ClientStatus::Pending => Ok(false),
            ClientStatus::Running | ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost => {
                Ok(true)
            }
            ClientStatus::Unknown => self.has_run(alloc, at),
        }
    }

    fn has_run(&mut self, alloc: AllocId, at: Position) -> Result<bool, HistoryError> {
        let begun = |event: &Event| matches!(event, Event::AllocReported(e) if e.to != ClientStatus::Pending);
        Ok(self.reading.newest_of(alloc, at, begun)?.is_some())
    }

    /// Servers concluded that they have ended: those that were never said to run end here.
    fn of_lost(
        &mut self,
        batch: &Facts,
        at: Position,
        e: &AllocsStopped,
        spans: &mut Vec<Span>,
    ) -> Result<(), HistoryError> {
        for alloc in &e.allocs {
            self.reading.renew();
            if self.has_run(*alloc, at)? {
                continue;
            }
            let (began, mut attributes) = self.placement(*alloc)?;
            let status = e.client.unwrap_or(ClientStatus::Lost);
            attributes.push(("sojourn.alloc.client_status", text(status.word())));
            let failed = (status != ClientStatus::Complete).then(|| e.description.clone());
            let (of, ended) = (Traced::Alloc(*alloc), batch.time);
            let about = About { of, name: "allocation".into(), began, ended, failed, attributes };
            spans.push(self.placed_at(at, &Anchor::Allocation(*alloc), about)?);
        }
        Ok(())
    }
}

/// When a task had started for the first time, or had failed before it did; if that is new.
fn first_end(task: &TaskState, before: Option<&TaskState>, now: Time) -> Option<(Time, Option<String>)> {
    let has_started = |task: &TaskState| task.started_at.time() > Time::ZERO;
    let is_over = |task: &TaskState| task.state == "dead" && task.failed;
    if before.is_some_and(|before| has_started(before) || is_over(before)) {
        return None;
    }
    if has_started(task) {
        return Some((task.started_at.time(), None));
    }
    let ended = Some(task.finished_at.time()).filter(|ended| *ended > Time::ZERO);
    is_over(task).then(|| (ended.unwrap_or(now), Some(why(task))))
}

/// What went wrong last, before what only says that nothing more is tried.
fn why(task: &TaskState) -> String {
    let is_error = |event: &&TaskEvent| {
        let errors =
            [&event.setup_error, &event.driver_error, &event.download_error, &event.validation_error];
        errors.iter().any(|error| !error.is_empty())
    };
    let said = task.events.iter().rfind(is_error);
    let said = said.or_else(|| task.events.iter().rfind(|event| event.fails_task));
    said.or(task.events.last()).map(|event| event.display_message.clone()).unwrap_or_default()
}

/// Controllers make evaluations of these later.
fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::JobRegistered(_)
            | Event::JobStopped(_)
            | Event::NodeDrainStarted(_)
            | Event::NodeDrainUpdated(_)
    )
}

/// What the stream lists a fact for.
fn listed(event: &Event) -> Option<Traced> {
    let is_listed = begins(event)
        || matches!(
            event,
            Event::JobPurged(_)
                | Event::NodeRegistered(_)
                | Event::NodeUpdated(_)
                | Event::NodeStatusChanged(_)
                | Event::NodeEligibilityChanged(_)
                | Event::NodeDrainEnded(_)
                | Event::NodeDeregistered(_)
                | Event::AllocReported(_)
                | Event::AllocTransitionRequested(_)
                | Event::AllocHealthSet(_)
                | Event::DeploymentStatusChanged(_)
                | Event::DeploymentPromoted(_)
                | Event::EvalCreated(_)
        );
    match event.subject() {
        _ if !is_listed => None,
        Subject::Job(key) => Some(Traced::Job(key.clone())),
        Subject::Node(id) => Some(Traced::Node(id)),
        Subject::Deployment(id) => Some(Traced::Deployment(id)),
        Subject::Evals(ids) => ids.first().map(|id| Traced::Eval(*id)),
        Subject::Allocs(ids) => ids.first().map(|id| Traced::Alloc(*id)),
        Subject::Cluster => None,
    }
}

/// `job.register` of `RegisterJob`: what is done comes after what it is done to.
fn name(record: &CommandRecord) -> String {
    let Some(kind) = CommandKind::from_number(record.kind) else { return "command".to_string() };
    let mut words: Vec<String> = Vec::new();
    for c in kind.name().chars() {
        if c.is_ascii_uppercase() {
            words.push(String::new());
        }
        words.last_mut().expect("names begin with a capital").push(c.to_ascii_lowercase());
    }
    let object = words[1..].join("_");
    format!("{object}.{}", words[0])
}

/// Who asked, by OpenTelemetry's names where it has some.
fn of_request(record: &CommandRecord) -> Attributes {
    let kind = CommandKind::from_number(record.kind).map_or("", CommandKind::name);
    let mut attributes = vec![("sojourn.command", text(kind)), ("sojourn.actor", text(&record.actor))];
    if !record.request.0.is_nil() {
        attributes.push(("sojourn.request.id", text(record.request)));
    }
    if let Actor::Caller(Caller { accessor, name, address, agent }) = &record.actor {
        let said = [("user.id", accessor), ("user.name", name), ("user_agent.original", agent)];
        let said = said.into_iter().filter(|(_, said)| !said.is_empty());
        attributes.extend(said.map(|(key, said)| (key, text(said))));
        attributes.extend(address.map(|address| ("client.address", text(address))));
    }
    attributes
}

fn of_eval(eval: &NewEval) -> Attributes {
    let mut attributes = of_job(&eval.key);
    attributes.push(("sojourn.job.type", text(eval.kind.word())));
    attributes.push(("sojourn.eval.triggered_by", text(eval.trigger.word())));
    attributes.push(("sojourn.eval.priority", Value::Number(i64::from(eval.priority))));
    attributes.extend(eval.node.map(|node| ("host.id", text(node))));
    attributes.extend(eval.previous.map(|id| ("sojourn.eval.previous", text(id))));
    attributes
}

fn of_outcome(outcome: &EvalOutcome) -> Attributes {
    let mut attributes = Vec::new();
    let queued = outcome.queued.iter().filter(|(_, count)| *count > 0);
    let queued: Vec<String> = queued.map(|(group, count)| format!("{group}={count}")).collect();
    if !queued.is_empty() {
        attributes.push(("sojourn.eval.queued", Value::Texts(queued)));
    }
    if !outcome.failed_groups.is_empty() {
        let failed: std::collections::BTreeMap<String, AllocationMetric> = outcome.failed_groups.read();
        attributes.push(("sojourn.eval.failed_groups", Value::Texts(failed.into_keys().collect())));
    }
    attributes.extend(outcome.blocked.map(|id| ("sojourn.eval.blocked", text(id))));
    attributes.extend(outcome.next.map(|id| ("sojourn.eval.next", text(id))));
    attributes
}

fn of_placement(placed: &AllocsPlaced, alloc: AllocId) -> Attributes {
    let mut attributes = of_job(&placed.key);
    attributes.push(("sojourn.job.version", Value::Number(placed.version as i64)));
    attributes.push(("sojourn.group", text(&placed.group)));
    attributes.push(("sojourn.eval.id", text(placed.eval)));
    attributes.extend(placed.deployment.map(|id| ("sojourn.deployment.id", text(id))));
    if let Some(at) = placed.ids.iter().position(|id| *id == alloc) {
        let name = placed.names.get(at).map(|nth| format!("{}.{}[{nth}]", placed.key.id, placed.group));
        attributes.extend(name.map(|name| ("sojourn.alloc.name", text(name))));
        attributes.extend(placed.nodes.get(at).map(|node| ("host.id", text(node))));
        let previous = placed.previous.get(at).filter(|id| **id != AllocId::default());
        attributes.extend(previous.map(|id| ("sojourn.alloc.previous", text(id))));
    }
    attributes
}
