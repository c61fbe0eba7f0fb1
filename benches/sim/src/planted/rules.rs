//! Rules with a bug in them, in place of `rules::decide`.

use control::sequencer::Rules;
use model::event::{
    AllocsReconnected, AllocsStopped, Event, EventCursorMemberAcked, NodeStatusChanged, VariableSet,
};
use model::{Actor, AllocId, Command, CommandRecord, Desired, NodeId, NodeStatus, Rejection};
use rules::{Context, Decision, decide};
use state::alloc::endings::NOT_NEEDED;
use state::{Moment, State};

use super::{Bug, volumes};

impl Bug {
    /// The rules that a server with the bug judges by; `None` if the bug is elsewhere.
    pub fn rules(self) -> Option<Rules> {
        match self {
            Bug::SilentNodeAccepted => Some(accept_silent),
            Bug::RegisterSetsReady => Some(register_sets_ready),
            Bug::AckCancelsNothing => Some(ack_cancels_nothing),
            Bug::ReturnRecordedAgain => Some(record_again),
            Bug::TwoSubstitutes => Some(two_substitutes),
            Bug::OldReturnsEnd => Some(end_old_returns),
            Bug::AheadAcknowledged => Some(take_what_is_ahead),
            Bug::ForgottenWritten => Some(write_what_was_forgotten),
            Bug::ManyWriters => Some(volumes::many_writers),
            Bug::ForgottenInUse => Some(volumes::forget_in_use),
            Bug::StickyWanders => Some(volumes::sticky_wanders),
            Bug::VolumesWakeNobody => Some(volumes::wake_nobody),
            _ => None,
        }
    }
}

pub(super) type Judged = Result<Decision, Rejection>;

fn accept_silent(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    match decide(state, ctx, actor, command) {
        Err(Rejection::NodeSilent(node, status)) => {
            let heard = with_status(state, ctx, node, status, NodeStatus::Initializing);
            decide(&heard, ctx, actor, command)
        }
        judged => judged,
    }
}

/// As if the node had another status.
fn with_status(state: &State, ctx: &Context, node: NodeId, from: NodeStatus, to: NodeStatus) -> State {
    let mut other = state.clone();
    let at = Moment { index: ctx.index, time: ctx.time, epoch: model::EPOCH };
    let record = CommandRecord { request: Default::default(), kind: 0, actor: Actor::ANONYMOUS };
    let changed = Event::from(NodeStatusChanged { node, from, to, message: None });
    other.absorb(at, &record, std::iter::once(&changed), &mut Default::default());
    other
}

fn register_sets_ready(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let Command::RegisterNode { document } = command else { return Ok(decision) };
    let Ok(node) = document.id.parse() else { return Ok(decision) };
    let row = state.nodes.find(node);
    let from = row.map_or(NodeStatus::Initializing, |row| state.nodes.hot(row).status);
    if from != NodeStatus::Ready {
        decision.events.push(NodeStatusChanged { node, from, to: NodeStatus::Ready, message: None }.into());
    }
    Ok(decision)
}

fn take_what_is_ahead(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let judged = decide(state, ctx, actor, command);
    match (&judged, command) {
        (
            Err(Rejection::EventCursorInvalid { field, .. }),
            Command::AckEventCursorMember { name, member, after },
        ) if field == "ID" => {
            Ok(EventCursorMemberAcked { name: name.clone(), member: *member, position: *after }.into())
        }
        _ => judged,
    }
}

fn write_what_was_forgotten(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let judged = decide(state, ctx, actor, command);
    match (&judged, command) {
        (Err(Rejection::VariableInvalid(_)), Command::SetVariable(wanted))
            if state.erasure.forgotten_at(&wanted.key, wanted.items.sealed.key).is_some() =>
        {
            Ok(VariableSet { key: wanted.key.clone(), items: wanted.items.clone() }.into())
        }
        _ => judged,
    }
}

fn ack_cancels_nothing(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let superseded = |event: &Event| match event {
        Event::EvalsCanceled(canceled) => canceled.cause.contains("more recent eval"),
        _ => false,
    };
    decision.events.retain(|event| !superseded(event));
    Ok(decision)
}

fn record_again(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let running = decision.events.iter().filter_map(|event| match event {
        Event::AllocReported(reported) if reported.to == model::ClientStatus::Running => Some(reported.alloc),
        _ => None,
    });
    let back = AllocsReconnected { allocs: running.collect() };
    if !back.allocs.is_empty() {
        decision.events.push(back.into());
    }
    Ok(decision)
}

fn two_substitutes(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    let again = decision.events.iter().filter_map(|event| match event {
        Event::AllocsPlaced(placed) if !placed.previous.is_empty() => {
            let mut again = placed.clone();
            again.ids.iter_mut().for_each(|id| id.0.0[0] ^= 0x55);
            Some(Event::from(again))
        }
        _ => None,
    });
    let again: Vec<Event> = again.collect();
    decision.events.extend(again);
    Ok(decision)
}

fn end_old_returns(state: &State, ctx: &mut Context, actor: &Actor, command: &Command) -> Judged {
    let mut decision = decide(state, ctx, actor, command)?;
    for event in &mut decision.events {
        let Event::AllocsReconnected(back) = &event else { continue };
        let is_old = |id: &AllocId| {
            let alloc = state.allocs.lookup(*id);
            alloc.is_some_and(|alloc| alloc.version.version < state.jobs.get(alloc.job).current().version)
        };
        let (old, current): (Vec<AllocId>, Vec<AllocId>) = back.allocs.iter().copied().partition(is_old);
        if current.is_empty() && !old.is_empty() {
            let description = NOT_NEEDED.to_string();
            let desired = Desired::Stop;
            *event =
                AllocsStopped { allocs: old, desired, description, client: None, follow_up: None }.into();
        }
    }
    Ok(decision)
}
