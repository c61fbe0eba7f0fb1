use model::document::{Allocation, TaskState};
use model::event::{
    AllocReported, AllocTransitionRequested, EvalCreated, EvalsCanceled, Event, HealthVerdict, NewEval,
    NodeAllocsReported,
};
use model::{AllocId, ClientStatus, Desired, Doc, EvalId, NodeId, NodeStatus, Rejection, Report, Trigger};
use state::State;
use state::alloc::Alloc;
use state::alloc::reschedule::may_be_rescheduled;
use state::job::JobRow;

use crate::decision::{Context, Decision};
use crate::{eval, node};

/// A node reports the status of its allocations.
///
/// A report is accepted or rejected as a whole. That of a silent node is rejected: it may be older than what was
/// decided since.
pub fn report(
    state: &State,
    ctx: &mut Context,
    node: NodeId,
    updates: &[Allocation],
) -> Result<Decision, Rejection> {
    if updates.is_empty() {
        return Err(Rejection::NoUpdates);
    }
    let row = node::decide::known(state, node)?;
    let status = state.nodes.hot(row).status;
    if status.is_silent() {
        return Err(Rejection::NodeSilent(node, status));
    }
    let mut reported = Reported::default();
    for update in updates {
        reported.add(state, node, update)?;
    }
    let mut events = reported.events;
    // A repetition changes nothing, but it proves that the node has reported: a returning node needs that to be ready.
    if events.is_empty() && status == NodeStatus::Initializing {
        events.push(NodeAllocsReported { node }.into());
    }
    for (job, trigger) in reported.jobs {
        events.extend(eval::created(eval::unless_pending(state, ctx, job, trigger)));
    }
    if !reported.canceled.is_empty() {
        let cause = "allocs reconnected".to_string();
        events.push(Event::EvalsCanceled(EvalsCanceled { evals: reported.canceled, cause }));
    }
    Ok(Decision::of(events))
}

/// An operator has one allocation stopped and placed again.
pub fn stop(
    state: &State,
    ctx: &mut Context,
    id: AllocId,
    no_shutdown_delay: bool,
    reschedule: bool,
) -> Result<Decision, Rejection> {
    let alloc = state.allocs.lookup(id).ok_or(Rejection::AllocUnknown(id))?;
    // It is being stopped already, and nothing is placed again.
    if state.jobs.get(alloc.job).purged {
        return Ok(Decision::nothing());
    }
    let requested = AllocTransitionRequested {
        allocs: vec![id],
        migrate: true,
        reschedule,
        no_shutdown_delay,
        force_reschedule: false,
        disable_placement: false,
        cause: "operator-stop".to_string(),
    };
    let eval = eval::for_job(ctx, state.jobs.get(alloc.job), Trigger::AllocStop);
    let eval = NewEval { node: None, ..eval };
    Ok(Decision::of(vec![Event::AllocTransitionRequested(requested), EvalCreated { eval }.into()]))
}

/// What one call reports, update by update.
#[derive(Default)]
struct Reported {
    events: Vec<Event>,
    seen: Vec<AllocId>,
    /// Jobs to evaluate, each once, for the first reason.
    jobs: Vec<(JobRow, Trigger)>,
    canceled: Vec<EvalId>,
}

impl Reported {
    fn add(&mut self, state: &State, node: NodeId, update: &Allocation) -> Result<(), Rejection> {
        let invalid =
            |field: &'static str| Rejection::AllocInvalid { alloc: update.id.clone(), field: field.into() };
        let id: AllocId = update.id.parse().map_err(|_| invalid("ID: expected a UUID"))?;
        let to = match ClientStatus::from_word(&update.client_status) {
            Some(ClientStatus::Lost | ClientStatus::Unknown) | None => {
                return Err(invalid("ClientStatus: expected pending, running, complete or failed"));
            }
            Some(status) => status,
        };
        // It was garbage-collected meanwhile.
        let Some(alloc) = state.allocs.lookup(id) else { return Ok(()) };
        if alloc.node_id != node {
            return Err(Rejection::NodeForeignAlloc { node, alloc: update.id.clone() });
        }
        if self.seen.contains(&id) {
            return Err(invalid("ID: expected each allocation once"));
        }
        self.seen.push(id);
        let report = Report::of(update);
        if was_overtaken(alloc, to, &report) {
            return Ok(());
        }
        let description = update.client_description.clone();
        if alloc.client == to && *alloc.client_description == *description && *alloc.report == report {
            return Ok(());
        }
        self.events.push(Event::AllocReported(AllocReported {
            alloc: id,
            node,
            from: alloc.client,
            to,
            description,
            health: new_health(alloc, &report),
            report: Doc::of(&report),
        }));
        self.follow(state, alloc, to);
        Ok(())
    }

    /// The evaluations that follow from it.
    fn follow(&mut self, state: &State, alloc: &Alloc, to: ClientStatus) {
        let trigger = if alloc.client == ClientStatus::Unknown {
            Some(Trigger::Reconnect)
        } else if to == ClientStatus::Failed && is_unhandled(alloc) && may_be_rescheduled(state, alloc) {
            Some(Trigger::AllocFailure)
        } else if to == ClientStatus::Complete
            && alloc.desired == Desired::Run
            && !alloc.version.kind.is_batch()
        {
            // A service ended though nothing stopped it (after a restored state, for one): it has to be replaced.
            Some(Trigger::AllocStop)
        } else {
            None
        };
        if let Some(trigger) = trigger.filter(|_| self.jobs.iter().all(|(job, _)| *job != alloc.job)) {
            self.jobs.push((alloc.job, trigger));
        }
        let waiting =
            alloc.follow_up.filter(|_| alloc.client == ClientStatus::Unknown && alloc.needs_to_reconnect());
        if let Some(eval) = waiting.filter(|eval| !self.is_awaited(state, alloc, *eval)) {
            self.canceled.push(eval);
        }
    }

    /// Another allocation still waits for the evaluation, or it is over already.
    fn is_awaited(&self, state: &State, alloc: &Alloc, eval: EvalId) -> bool {
        let ended = state.evals.lookup(eval).is_none_or(|eval| eval.status.is_terminal());
        let mut others = state.jobs.get(alloc.job).allocs.iter().map(|row| state.allocs.get(*row));
        let shared = others.any(|other| {
            !self.seen.contains(&other.id) && other.follow_up == Some(eval) && !other.is_terminal()
        });
        ended || shared || self.canceled.contains(&eval)
    }
}

/// The health that the node reports for the first time. A node repeats it in every report, while an operator may have
/// set another since, or another deployment may have begun.
fn new_health(alloc: &Alloc, report: &Report) -> Option<HealthVerdict> {
    let given = |report: &Report| {
        let status = report.deployment_status.as_ref()?;
        Some(HealthVerdict { healthy: status.healthy?, time: status.timestamp.time() })
    };
    given(report).filter(|verdict| given(&alloc.report) != Some(*verdict))
}

/// A newer report came first. Reports carry no numbers, but what ended does not run again, and a task that ran only
/// waits to be started again with one more restart to its count.
fn was_overtaken(alloc: &Alloc, to: ClientStatus, report: &Report) -> bool {
    if matches!(alloc.client, ClientStatus::Complete | ClientStatus::Failed) {
        return !to.is_terminal();
    }
    let has_run = |name: &String, now: &TaskState| {
        let before = alloc.report.task_states.get(name);
        before.is_some_and(|before| before.state == "running" && now.restarts <= before.restarts)
    };
    to == ClientStatus::Pending
        && report.task_states.iter().any(|(name, now)| now.state == "pending" && has_run(name, now))
}

/// No evaluation has handled its failure yet.
fn is_unhandled(alloc: &Alloc) -> bool {
    alloc.client != ClientStatus::Failed && alloc.follow_up.is_none()
}
