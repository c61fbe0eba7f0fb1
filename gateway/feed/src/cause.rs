//! What made a command, as far as its batch says.

use model::{Actor, Batch, CommandKind, Event, RequestId, Subject};
use serde::Serialize;

/// A request, something that had happened, or a time that was due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Cause {
    pub kind: &'static str,
    /// The name of the request, if it has one; the object that a controller looked at; or the controller at its deadline.
    #[serde(rename = "ID")]
    pub id: String,
}

impl Cause {
    /// Of the command at a position in the batch.
    pub(crate) fn of(batch: &Batch, command: usize) -> Cause {
        let record = &batch.commands[command];
        let Actor::Server(_) = &record.actor else {
            let named = Some(record.request).filter(|request| *request != RequestId::default());
            let id = named.map(|request| request.to_string()).unwrap_or_default();
            return Cause { kind: "request", id };
        };
        // Events stand in the order of their commands.
        let first = batch.events.partition_point(|logged| usize::from(logged.command) < command);
        let mut own =
            batch.events[first..].iter().take_while(|logged| usize::from(logged.command) == command);
        let looked_at = match CommandKind::from_number(record.kind) {
            Some(CommandKind::SettleEval | CommandKind::FailEval) => {
                own.find_map(|one| evaluation(&one.event))
            }
            Some(CommandKind::AdvanceDeployment) => own.find_map(|one| deployment(&one.event)),
            Some(CommandKind::AdvanceDrain) => own.find_map(|one| drained(&one.event)),
            _ => None,
        };
        match looked_at {
            Some(id) => Cause { kind: "event", id },
            None => Cause { kind: "deadline", id: record.actor.to_string() },
        }
    }
}

fn evaluation(event: &Event) -> Option<String> {
    let eval = match event {
        Event::PlanCommitted(plan) => plan.eval,
        Event::EvalUpdated(updated) => updated.eval,
        _ => return None,
    };
    Some(format!("eval/{eval}"))
}

/// The node, or the first of the allocations that have to leave it.
fn drained(event: &Event) -> Option<String> {
    match event {
        Event::NodeDrainEnded(ended) => Some(format!("node/{}", ended.node)),
        Event::AllocTransitionRequested(asked) => asked.allocs.first().map(|alloc| format!("alloc/{alloc}")),
        _ => None,
    }
}

fn deployment(event: &Event) -> Option<String> {
    match (event, event.subject()) {
        (_, Subject::Deployment(id)) => Some(format!("deployment/{id}")),
        (Event::EvalCreated(created), _) => {
            created.eval.outcome.deployment.map(|id| format!("deployment/{id}"))
        }
        _ => None,
    }
}
