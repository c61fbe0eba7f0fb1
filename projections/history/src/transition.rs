use base::{Index, Time};
use journal::{EncodedBatch, FrameError};
use model::{Actor, AllocId, ClientStatus, Desired, Event, Topic};

use crate::entries::node_of;

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
    /// What brought it about, in words.
    pub cause: String,
    pub description: String,
}

/// Reads an allocation's events in order and lists what each one changed.
pub(crate) struct Walk {
    alloc: AllocId,
    view: View,
    pub transitions: Vec<Transition>,
}

impl Walk {
    pub fn of(alloc: AllocId) -> Walk {
        Walk { alloc, view: View::default(), transitions: Vec::new() }
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
        if !matches!(event, Event::JobPurged(_)) && !event.subject().allocs().contains(&self.alloc) {
            return Err(FrameError::Malformed("the event that was indexed is about another allocation"));
        }
        let (old, new) = (self.view, after(self.view, &event));
        self.view = new;
        let (cause, description) = self.words(batch, row.command, &event)?;
        self.transitions.push(Transition {
            index: batch.index(),
            ordinal,
            time: batch.time(),
            // A report says what it changed; that also holds when what came before is no longer kept.
            old: if let Event::AllocReported(e) = &event {
                View { client: Some(e.from), ..old }
            } else {
                old
            },
            new,
            actor: record.actor.clone(),
            cause,
            description,
        });
        Ok(())
    }

    /// Cause and description.
    fn words(
        &self,
        batch: &EncodedBatch,
        command: u16,
        event: &Event,
    ) -> Result<(String, String), FrameError> {
        let plan = || planned_for(batch, command);
        Ok(match event {
            Event::AllocsPlaced(e) => {
                let node = node_of(e, self.alloc).map(|node| format!("placed on node {node}"));
                (format!("evaluation {}", e.eval), node.unwrap_or_default())
            }
            Event::AllocsUpdatedInPlace(e) => (
                format!("evaluation {}", e.eval),
                format!("updated in place to version {} of its job", e.version),
            ),
            Event::AllocsStopped(e) => (plan()?, e.description.clone()),
            Event::AllocsPreempted(e) => (plan()?, format!("preempted by allocation {}", e.by)),
            Event::AllocsMarkedUnknown(_) => (plan()?, "its node is disconnected".to_string()),
            Event::AllocsReconnected(_) => (plan()?, "its node came back and it stays".to_string()),
            Event::AllocReported(e) => (format!("report of node {}", e.node), e.description.clone()),
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
        })
    }
}

fn after(view: View, event: &Event) -> View {
    match event {
        Event::AllocsPlaced(_) => View { desired: Some(Desired::Run), client: Some(ClientStatus::Pending) },
        Event::AllocsStopped(e) => View { desired: Some(e.desired), client: e.client.or(view.client) },
        Event::AllocsPreempted(_) => View { desired: Some(Desired::Evict), ..view },
        Event::AllocsMarkedUnknown(_) => View { client: Some(ClientStatus::Unknown), ..view },
        Event::AllocReported(e) => View { client: Some(e.to), ..view },
        // They say something about the allocation and leave what is wanted and known as it is.
        _ => view,
    }
}

/// The evaluation whose plan the command brought.
fn planned_for(batch: &EncodedBatch, command: u16) -> Result<String, FrameError> {
    for row in batch.rows().filter(|row| row.command == command && row.topic == Topic::Plan) {
        if let Event::PlanCommitted(plan) = batch.event(&row)? {
            return Ok(format!("evaluation {}", plan.eval));
        }
    }
    Ok(String::new())
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
