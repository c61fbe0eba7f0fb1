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

/// A node tells how its allocations are.
///
/// What is refused is refused whole: a silent node may speak of a past that others have decided about since.
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
    let mut told = Told::default();
    for update in updates {
        told.hear(state, node, update)?;
    }
    let mut events = told.events;
    // A repetition says nothing new, but it says it now: that is what a returning node is asked for.
    if events.is_empty() && status == NodeStatus::Initializing {
        events.push(NodeAllocsReported { node }.into());
    }
    for (job, trigger) in told.jobs {
        let eval = eval::for_job(ctx, state.jobs.get(job), trigger);
        events.push(EvalCreated { eval }.into());
    }
    if !told.canceled.is_empty() {
        let cause = "allocs reconnected".to_string();
        events.push(Event::EvalsCanceled(EvalsCanceled { evals: told.canceled, cause }));
    }
    Ok(Decision::of(events))
}

/// Somebody wants one allocation moved elsewhere.
pub fn stop(
    state: &State,
    ctx: &mut Context,
    id: AllocId,
    no_shutdown_delay: bool,
    reschedule: bool,
) -> Result<Decision, Rejection> {
    let alloc = state.allocs.lookup(id).ok_or(Rejection::AllocUnknown(id))?;
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

/// What one call tells, as it is heard.
#[derive(Default)]
struct Told {
    events: Vec<Event>,
    seen: Vec<AllocId>,
    /// Jobs that have to be looked at, each once, for the first reason.
    jobs: Vec<(JobRow, Trigger)>,
    canceled: Vec<EvalId>,
}

impl Told {
    fn hear(&mut self, state: &State, node: NodeId, update: &Allocation) -> Result<(), Rejection> {
        let invalid =
            |field: &'static str| Rejection::AllocInvalid { alloc: update.id.clone(), field: field.into() };
        let id: AllocId = update.id.parse().map_err(|_| invalid("ID: expected a UUID"))?;
        let to = match ClientStatus::from_word(&update.client_status) {
            Some(ClientStatus::Lost | ClientStatus::Unknown) | None => {
                return Err(invalid("ClientStatus: expected pending, running, complete or failed"));
            }
            Some(status) => status,
        };
        // What the servers forgot meanwhile is no news to anybody.
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
            health: news_of_health(alloc, &report),
            report: Doc::of(&report),
        }));
        self.follow(state, alloc, to);
        Ok(())
    }

    /// What the servers have to do about it.
    fn follow(&mut self, state: &State, alloc: &Alloc, to: ClientStatus) {
        let trigger = if alloc.client == ClientStatus::Unknown {
            Some(Trigger::Reconnect)
        } else if to == ClientStatus::Failed && waits_for_nothing(alloc) && may_be_rescheduled(state, alloc) {
            Some(Trigger::AllocFailure)
        } else if to == ClientStatus::Complete
            && alloc.desired == Desired::Run
            && !alloc.version.kind.is_batch()
        {
            // A service that nobody told to end is missing now; after a restored state, for one.
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

/// A verdict that the node did not give before. It repeats itself in every report; in between somebody else may
/// have judged, or another deployment asked again.
fn news_of_health(alloc: &Alloc, report: &Report) -> Option<HealthVerdict> {
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

/// Nobody looks at it yet: whoever failed before was looked at then.
fn waits_for_nothing(alloc: &Alloc) -> bool {
    alloc.client != ClientStatus::Failed && alloc.follow_up.is_none()
}
